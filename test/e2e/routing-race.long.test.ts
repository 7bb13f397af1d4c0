// A race of conversations over four processes (spec 4.11): one model and one question to the classifier for each
// human turn. The long one is routing-race-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runRace } from './routing-race-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const CONVERSATIONS = 200;

test(`${CONVERSATIONS} conversations over four processes have one model a turn (TEST_SEED=${SEED})`, async () => {
  const report = await runRace({ seed: SEED, conversations: CONVERSATIONS });
  assert.deepEqual(report.problems, []);
  assert.equal(report.classifierCalls, report.turns);
  assert.ok(
    report.turnsOverProcesses > CONVERSATIONS / 10,
    `${report.turnsOverProcesses} turns met more than one process`,
  );
});
