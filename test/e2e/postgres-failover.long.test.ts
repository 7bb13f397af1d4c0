// Postgres fails over under load, with a real Patroni, and again soon after it is back; more of them are
// postgres-failover-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsPatroni } from '../support/patroni-cluster.ts';
import { runPostgresFailover } from './postgres-failover-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);

test(`Postgres fails over to its standby under load (TEST_SEED=${SEED})`, needsPatroni(), async () => {
  const report = await runPostgresFailover({ failovers: 2, rate: 30, seed: SEED });
  assert.deepEqual(report.problems, []);
  assert.equal(report.facts, report.generations);
  assert.ok(report.chargedPico > 0n);
  for (const [organization, { answers }] of Object.entries(report.away))
    assert.ok(Number(answers['200']) > 0, organization);
});
