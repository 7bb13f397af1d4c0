// A short kill run: what a client saw complete survives `kill -9` of gateways, jobs and Postgres and is
// charged exactly once, and no limit is passed. The long one is kill-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { howMany } from '../support/at-length.ts';
import { runKills } from './kill-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const REQUESTS = howMany({ short: 1_000, long: 4_000 });
const KILLS = howMany({ short: 4, long: 10 });

test(`every account agrees after ${KILLS} kills among ${REQUESTS} requests (TEST_SEED=${SEED})`, async () => {
  const report = await runKills({
    seed: SEED,
    requests: REQUESTS,
    kills: KILLS,
    victims: ['gateway', 'jobs', 'postgres'],
  });
  assert.deepEqual(report.problems, []);
  assert.equal(report.picoUsd.provider, report.picoUsd.ledger);
  assert.equal(report.picoUsd.facts, report.picoUsd.ledger);
  assert.ok(report.complete > REQUESTS / 4, `${report.complete} were complete`);
  assert.equal(
    Object.values(report.kills).reduce((sum, count) => sum + count, 0),
    KILLS,
  );
});
