// Postgres is away for a while under load: what holds a lease goes on, the rest is refused and told when to come again,
// and afterwards all accounts agree. The minutes-long one is database-away-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HowAway, runDatabaseAway } from './database-away-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
/** Frozen, it is as long as the connection that listens needs to find that nobody answers, which is then made anew. */
const SECONDS = { stopped: 10, frozen: 16 } satisfies Record<HowAway, number>;
/** That one is there at once when it is back, and hears of it. */
const FLAPS = { stopped: 0, frozen: 1 } satisfies Record<HowAway, number>;
const RATE = 60;

for (const how of ['stopped', 'frozen'] satisfies HowAway[]) {
  test(`Postgres is ${how} for a while under load (TEST_SEED=${SEED})`, async () => {
    const report = await runDatabaseAway({ seconds: SECONDS[how], flaps: FLAPS[how], rate: RATE, seed: SEED, how });
    assert.deepEqual(report.problems, []);
    assert.equal(report.facts, report.generations);
    assert.ok(report.chargedPico > 0n);
  });
}
