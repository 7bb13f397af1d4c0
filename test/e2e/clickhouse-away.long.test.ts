// ClickHouse is away: requests are served and charged as ever, their facts wait in the spool, also over the death of
// jobs, and afterwards they are the ledger's, one for one. Reports meanwhile, and the hour-long run by hand:
// clickhouse-away-run.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { type ClickHouseServer, startClickHouseServer } from '../support/clickhouse-server.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { readMetrics } from '../support/metric-values.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { runClickHouseAway } from './clickhouse-away-run.ts';
import { compareLedgerWithFacts, readGenerations, selectFacts } from './kill-accounts.ts';
import { startLoad } from './kill-load.ts';
import { createKillWorld } from './kill-world.ts';

const REQUESTS = 150;

describe('ClickHouse is away', { timeout: 300_000 }, () => {
  const world = createKillWorld(10_000);
  let engine: TestClickHouse;
  let clickhouse: ClickHouseServer;
  let provider: SimulatedProvider;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  let seed = 1;

  before(async () => {
    engine = await openTestClickHouse();
    clickhouse = await startClickHouseServer(engine.client);
    provider = await startSimulatedProvider();
    tollgate = await startTollgate({
      configurationYaml: world.configuration(provider.url),
      env: { CLICKHOUSE_URL: clickhouse.url },
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await provider?.stop();
    await clickhouse?.close();
    await engine?.close();
  });

  test('before: facts follow the ledger', async () => {
    await serve();
    await factsFollow();
  });

  test('jobs and a gateway die meanwhile: nothing is lost', async () => {
    await clickhouse.stopListening();
    await serve();
    for (const pid of [tollgate.jobsPid(), ...tollgate.gatewayPids()]) process.kill(pid, 'SIGKILL');
    await serve();
    await clickhouse.listenAgain();
    await factsFollow();
  });

  test('its answers are lost after each insert: nothing is there twice', async () => {
    clickhouse.lose = 'after';
    await serve();
    await pause(3_000);
    clickhouse.lose = 'nothing';
    await factsFollow();
  });

  /** Until so many were served and everything that was admitted is posted. */
  async function serve(): Promise<void> {
    seed += 1;
    const load = startLoad({
      url: tollgate.url,
      seed,
      organizations: world.organizations.slice(0, 1),
      cloaks: new Map(),
    });
    await waitFor(
      'the load',
      () => load.served(),
      (served) => served >= REQUESTS,
      120_000,
    );
    await load.stop();
    const refused = load.seen.filter(({ status }) => status !== 200 && status !== null);
    assert.deepEqual(refused, [], 'nobody is refused for want of ClickHouse');
    await waitFor(
      'the provider to end every call',
      () => provider.openCalls(),
      (open) => open === 0,
    );
    const starts = provider.starts().length;
    await waitFor(
      'every call to be posted',
      async () => (await readGenerations(ledger)).filter((row) => row.outcome !== null).length,
      (count) => count >= starts,
      60_000,
    );
  }

  async function factsFollow(): Promise<void> {
    const problems = await waitFor(
      'the facts to be the ledger’s',
      async () => {
        const facts = await selectFacts((query) => selectRows(engine.client, query));
        return compareLedgerWithFacts(await readGenerations(ledger), facts.rows);
      },
      (found) => found.length === 0,
      60_000,
    );
    assert.deepEqual(problems, []);
    await waitFor('the spool to be shipped', spoolLagBytes, (bytes) => bytes === 0);
  }

  async function spoolLagBytes(): Promise<number> {
    return (await readMetrics(tollgate.adminUrl))('tollgate_spool_lag_bytes{destination="clickhouse"}');
  }
});

const SEED = Number(process.env.TEST_SEED ?? 1);

test(`ClickHouse is away for a while under load, and jobs and a gateway die meanwhile (TEST_SEED=${SEED})`, {
  timeout: 300_000,
}, async () => {
  const report = await runClickHouseAway({ minutes: 0.2, rate: 40, seed: SEED });
  assert.deepEqual(report.problems, []);
  assert.equal(report.facts, report.generations);
  assert.ok(Object.values(report.refusedReports.reports).every(({ statuses }) => Number(statuses['503']) >= 2));
  assert.ok(report.picoUsd.charged > 0n);
});
