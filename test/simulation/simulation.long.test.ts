// Runs the accounting core under the many seeds that are too slow for every run of the tests; simulation.test.ts has
// the first seeds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRST_SEEDS, runSeeds } from './run-seeds.ts';

const SEEDS = 20_000 - FIRST_SEEDS;

test(`${SEEDS} further seeds`, async () => {
  const { code, output } = await runSeeds(['--from', `${FIRST_SEEDS + 1}`, '--seeds', `${SEEDS}`, '--workers', '2']);
  assert.equal(code, 0, output);
  console.log(output.trim());
});
