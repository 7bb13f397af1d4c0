// Rounds of the exact wallet: 500 parallel requests over 4 processes on one that affords 7. Many rounds are
// exact-wallet-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { howMany } from '../support/at-length.ts';
import { runExactWallets } from './exact-wallet-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const ROUNDS = howMany({ short: 1, long: 20 });

test(`exactly 7 of 500 parallel requests are answered, ${ROUNDS} times (TEST_SEED=${SEED})`, async () => {
  const report = await runExactWallets({ seed: SEED, rounds: ROUNDS });
  assert.deepEqual(report.problems, []);
  assert.deepEqual(report.answered, { 7: ROUNDS });
  assert.equal(report.providerCalls, 7 * ROUNDS);
});
