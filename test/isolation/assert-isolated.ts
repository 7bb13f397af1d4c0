// Asserts what every run must show: no violation, and enough served requests.

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
  // Without requests that must be refused the run would prove nothing. Chance decides how often each kind occurs: the
  // required shares are far below those of real runs.
  for (const [what, share] of [
    ['POST 200', 6],
    ['GET 404', 10],
    ['GET 206', 100],
    ['GET 304', 150],
  ] as const)
    assert.ok((watch.media.get(what) ?? 0) > options.media.steps / share, `${what}: ${watch.report()}`);
}
