// What every run must show: no violation, and enough that was served.

import assert from 'node:assert/strict';
import type { Isolation, IsolationOptions } from './isolate.ts';

export async function assertIsolated(isolation: Isolation, options: IsolationOptions): Promise<void> {
  const watch = await isolation.run(options);
  const again =
    `node test/isolation/run.ts ` +
    `--seed ${options.seed} --exchanges ${options.exchanges} --at-once ${options.atOnce}`;
  assert.equal(watch.violationCount, 0, `${watch.report()}\nagain: ${again}`);
  assert.ok((watch.answers.get('provider 200') ?? 0) > options.exchanges / 2, watch.report());
  if (options.media === undefined) return;
  // What is not asked for cannot be refused. Chance decides how often each comes: the shares are far below what runs
  // have.
  for (const [what, share] of [
    ['POST 200', 6],
    ['GET 404', 10],
    ['GET 206', 100],
    ['GET 304', 150],
  ] as const)
    assert.ok((watch.media.get(what) ?? 0) > options.media.steps / share, `${what}: ${watch.report()}`);
}
