// Work that goes on in the background rests as its steps say, and no wake is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackgroundLoop } from '../../jobs/scheduling/background-loop.ts';
import { silentLog } from '../support/postgres.ts';

const LONG_MS = 3_600_000;

/** Whatever the loop does without a wake it has done then. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
}

test('a wake ends the rest, and one during a step leaves out the rest behind it, once', async () => {
  const ends: ((restMs: number) => void)[] = [];
  const step = (): Promise<number> => new Promise((resolve) => ends.push(resolve));
  const loop = new BackgroundLoop({ name: 'a test', log: silentLog, step });
  loop.start();
  loop.wake();
  loop.wake();
  ends[0]?.(LONG_MS);
  await settle();
  const afterWakes = ends.length;
  ends[1]?.(LONG_MS);
  await settle();
  const atRest = ends.length;
  loop.wake();
  await settle();
  const afterRest = ends.length;
  const stopped = loop.stop();
  for (const end of ends) end(LONG_MS);
  await stopped;
  assert.deepEqual([afterWakes, atRest, afterRest], [2, 2, 3]);
});
