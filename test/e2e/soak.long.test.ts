// A load of everything for a quarter of a minute: nobody is refused or cut who need not be, and all accounts agree. The
// long one, which looks at what grows, is soak-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSoak } from './soak-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);

test(`a load of everything fails nobody who need not fail (TEST_SEED=${SEED})`, async () => {
  const report = await runSoak({ minutes: 0.25, rate: 30, streams: 20, seed: SEED, print: () => undefined });
  assert.deepEqual(report.problems, []);
  assert.ok(report.requests > 300, `${report.requests} requests`);
  assert.equal(report.picoUsd.provider, report.picoUsd.reported);
  for (const sort of [
    'chat',
    'auto',
    'embeddings',
    'failing',
    'leaves',
    'look-up',
    'long',
    'stops reading',
    'wrong key',
  ])
    assert.ok(report.answers[sort] !== undefined, `${sort} is among ${Object.keys(report.answers).join(', ')}`);
});
