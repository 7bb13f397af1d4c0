// A short kill run (DESIGN 4): what a client saw complete survives `kill -9` and is posted exactly once. The long one is kill-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runKills } from './kill-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const KILLS = 6;

test(`every account agrees after ${KILLS} kills under load (TEST_SEED=${SEED})`, async () => {
  const report = await runKills({ seed: SEED, kills: KILLS });
  assert.deepEqual(report.problems, []);
  assert.equal(report.gatewayKills + report.jobsKills, KILLS);
  assert.ok(report.complete > 0, 'some responses were complete');
});
