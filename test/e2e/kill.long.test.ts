// A short kill run: what a client saw complete survives `kill -9` of gateways, jobs and Postgres and is
// charged exactly once, and no limit is passed; of some organizations guardrails change and block what passes. The long
// one is kill-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AT_LENGTH_ONLY, howMany } from '../support/at-length.ts';
import { runKills } from './kill-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const REQUESTS = howMany({ short: 800, long: 4_000 });
const KILLS = howMany({ short: 3, long: 10 });

for (const guardrails of [true, false]) {
  const name = `every account agrees after ${KILLS} kills among ${REQUESTS} requests`;
  // A fourth of the clients have none in either run.
  const options = guardrails ? {} : AT_LENGTH_ONLY;
  test(`${name}${guardrails ? ', with guardrails' : ''} (TEST_SEED=${SEED})`, options, () => checkRun(guardrails));
}

async function checkRun(guardrails: boolean): Promise<void> {
  const report = await runKills({
    seed: SEED,
    requests: REQUESTS,
    kills: KILLS,
    victims: ['gateway', 'jobs', 'postgres'],
    guardrails,
  });
  assert.deepEqual(report.problems, []);
  assert.equal(report.picoUsd.provider, report.picoUsd.ledger);
  assert.equal(report.picoUsd.facts, report.picoUsd.ledger);
  assert.ok(report.complete > REQUESTS / 4, `${report.complete} were complete`);
  assert.equal(
    Object.values(report.kills).reduce((sum, count) => sum + count, 0),
    KILLS,
  );
}
