// Streams at once, with clients that leave, read slowly or stop reading and providers that cut, stall and refuse: every
// byte is the right one, and all accounts agree. The long one is streams-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runStreams } from './streams-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const STREAMS = 300;

test(`${STREAMS} streams at once lose, double and cut nothing (TEST_SEED=${SEED})`, async () => {
  const report = await runStreams({
    streams: STREAMS,
    seconds: 8,
    seed: SEED,
    unread: 0,
    idleMs: 4_000,
    print: () => undefined,
  });
  assert.deepEqual(report.problems, []);
  assert.ok(report.streams >= STREAMS, `${report.streams} streams`);
  assert.equal(report.generations, report.facts);
  for (const outcome of ['completed/final', 'aborted_mid_stream/final', 'cut_mid_stream/final', 'completed/not_billed'])
    assert.ok((report.outcomes[outcome] ?? 0) > 0, `${outcome}: ${JSON.stringify(report.outcomes)}`);
});
