// Postgres is away for a while under load: what holds a lease goes on, the rest is refused and told when to come again,
// and afterwards all accounts agree. The minutes-long one is database-away-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HowAway, runDatabaseAway } from './database-away-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const SECONDS = 10;
const RATE = 60;

for (const how of ['stopped', 'frozen'] satisfies HowAway[]) {
  test(`Postgres is ${how} for a while under load (TEST_SEED=${SEED})`, async () => {
    const report = await runDatabaseAway({ seconds: SECONDS, rate: RATE, seed: SEED, how });
    assert.deepEqual(report.problems, []);
    assert.equal(report.facts, report.generations);
    assert.ok(report.chargedPico > 0n);
  });
}
