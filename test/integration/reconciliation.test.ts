// Reconciliation as an operator meets it: jobs run on request, their state in metrics, late executions, epochs that are
// given up, wallets by command.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { createJobGauges } from '../../jobs/scheduling/job-gauges.ts';
import { RequestedJobs } from '../../jobs/scheduling/run-requested-jobs.ts';
import { JOBS, type Job, nextDueTime, runDueJob } from '../../jobs/scheduling/schedule.ts';
import { createWatchedGauges } from '../../jobs/scheduling/watch-jobs.ts';
import { checkPending } from '../../jobs/tasks/check-pending.ts';
import type { Command } from '../../src/commands/command/command.ts';
import { creditCommand } from '../../src/commands/credit.ts';
import { epochCommand } from '../../src/commands/epoch.ts';
import { reconcileCommand } from '../../src/commands/reconcile.ts';
import { walletCommand } from '../../src/commands/wallet.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { listAudit } from '../../src/storage/postgres/identity/audit.ts';
import { claimRequestedRun, listLastRuns, requestJobRun, withdrawJobRun } from '../../src/storage/postgres/job-runs.ts';
import { closeDeadEpoch } from '../../src/storage/postgres/ledger/epochs.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { admittedRecord } from '../support/execution-records.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';

const HOUR_MS = 3_600_000;
const MASTER_KEY = Buffer.alloc(32, 3);

describe('reconciliation', () => {
  let server: TestPostgres;
  let url: string;
  let postgres: Postgres;
  let metrics: MetricsRegistry;
  let context: JobContext;
  let payer: shipping.Payer;
  let dataDirectory: string;

  before(async () => {
    server = await startTestPostgres();
  });
  after(() => server.stop());
  beforeEach(async () => {
    dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    url = await server.createDatabase();
    postgres = createPostgres({ url, log: silentLog });
    metrics = new MetricsRegistry();
    const clickhouse = () => assert.fail('ClickHouse is away');
    context = {
      postgres,
      clickhouse,
      facts: { insert: clickhouse },
      sealedDays: () => null,
      log: silentLog,
      clock: systemClock,
      gauges: createJobGauges(metrics),
      factsRetentionDays: null,
      media: null,
      box: secretsOf(Buffer.alloc(32, 1)).box,
    };
    payer = await shipping.createPayer(postgres);
  });
  afterEach(async () => {
    rmSync(dataDirectory, { recursive: true, force: true });
    await postgres.close();
  });

  /** What a command prints, and its exit code. */
  async function run(command: Command, line: string): Promise<{ lines: readonly string[]; code: number }> {
    const lines: string[] = [];
    const environment = {
      DATABASE_URL: url,
      MASTER_KEY: MASTER_KEY.toString('base64'),
      DATA_DIR: dataDirectory,
      USER: 'operator',
    };
    const code = await command.run(line === '' ? [] : line.split(' '), {
      environment,
      print: (text) => void lines.push(text),
    });
    return { lines, code };
  }

  async function admit(epoch: number, admittedAtMs: number): Promise<string> {
    const start = shipping.billedStart(payer, { admittedAtMs });
    const batch = { epoch, segment: 1, fromOffset: 0, toOffset: 1, records: [admittedRecord(start)] };
    await postgres.transaction((client) => postExecutions(client, batch));
    return start.id;
  }

  test(
    'tollgate reconcile runs every job now, wherever jobs runs, and says what it found; a difference or ' +
      'a failure is exit code 1',
    async () => {
      const requested = new RequestedJobs(
        context,
        'elsewhere',
        JOBS.filter(({ name }) => !name.startsWith('compare-facts')),
      );
      const { lines: found, code } = await run(reconcileCommand, 'check-ledger');
      assert.deepEqual([code, found.length], [0, 1]);
      assert.match(found[0] ?? '', /^check-ledger: ok, \d+ ms, \{"broken":\[\]\}$/);
      await postgres.query('UPDATE wallets SET balance = balance + 1');
      const drifted = await run(reconcileCommand, 'check-ledger');
      assert.equal(drifted.code, 1);
      assert.match(drifted.lines[0] ?? '', /^check-ledger: DIFFERENT \(\d\), .*balance is what the ledger says/);
      const failed = await run(reconcileCommand, 'compare-facts');
      assert.equal(failed.code, 1);
      assert.match(failed.lines[0] ?? '', /^compare-facts: failed: this version has no job/);
      await assert.rejects(
        run(reconcileCommand, 'no-such-job'),
        /there is no job "no-such-job"; there are resolve-pending, /,
      );
      await requested.stop();
      const [last] = await listLastRuns(postgres, ['check-ledger']);
      assert.deepEqual([last?.machine, last?.error], ['elsewhere', null]);
    },
  );

  test('tollgate reconcile without a name runs all that have a schedule, in order', async () => {
    const requested = new RequestedJobs(context, 'here', JOBS);
    const { lines, code } = await run(reconcileCommand, '');
    await requested.stop();
    assert.deepEqual(
      lines.map((line) => line.split(':')[0]),
      JOBS.filter(({ cron }) => cron !== null).map(({ name }) => name),
    );
    assert.equal(code, 1);
    for (const line of lines) if (!line.startsWith('compare-facts')) assert.match(line, /^[\w-]+: ok, /);
    assert.match(lines.find((line) => line.startsWith('compare-facts:')) ?? '', /failed: ClickHouse is away/);
  });

  test('a request is taken once, and not at all once it is withdrawn', async () => {
    const id = await requestJobRun(postgres, 'check-ledger');
    const takers = await Promise.all(['a', 'b', 'c'].map((machine) => claimRequestedRun(postgres, machine)));
    assert.deepEqual(
      takers.filter((taken) => taken !== null),
      [{ id, name: 'check-ledger' }],
    );
    assert.equal(await withdrawJobRun(postgres, id), false);
    const another = await requestJobRun(postgres, 'check-ledger');
    assert.equal(await withdrawJobRun(postgres, another), true);
    assert.equal(await claimRequestedRun(postgres, 'a'), null);
  });

  test('the metrics say what the last runs found, on whichever machine they ran', async () => {
    const watched = createWatchedGauges(metrics, context.gauges);
    const job = (name: string, result: () => Promise<Record<string, unknown>>): Job => ({
      name,
      cron: '* * * * *',
      run: result,
    });
    const elsewhere = { ...context, gauges: createJobGauges(new MetricsRegistry()) };
    const due = { dueAtMs: systemClock.nowMs(), machine: 'elsewhere' };
    await runDueJob(
      elsewhere,
      job('check-ledger', async () => ({ drift: 2 })),
      due,
    );
    await runDueJob(
      elsewhere,
      job('resolve-pending', () => Promise.reject(new Error('no'))),
      due,
    );
    const epoch = await shipping.createEpoch(postgres, payer, 1);
    await admit(epoch, systemClock.nowMs() - 2 * HOUR_MS);
    await watched.refresh(postgres, ['check-ledger', 'resolve-pending', 'compare-facts']);
    assert.equal(shipping.metricValue(metrics, 'tollgate_ledger_drift'), 2);
    assert.ok(
      shipping.metricValue(metrics, 'tollgate_job_last_success_timestamp_seconds', 'check-ledger') >
        due.dueAtMs / 1000 - 60,
    );
    assert.equal(shipping.metricValue(metrics, 'tollgate_job_failed', 'resolve-pending'), 1);
    assert.equal(shipping.metricValue(metrics, 'tollgate_pending_executions'), 1);
    assert.ok(shipping.metricValue(metrics, 'tollgate_pending_oldest_seconds') >= 7_200);
    assert.equal(shipping.metricValue(metrics, 'tollgate_pending_late'), 1);
    await runDueJob(
      elsewhere,
      job('check-ledger', async () => ({ drift: 0 })),
      { ...due, dueAtMs: due.dueAtMs + 60_000 },
    );
    await watched.refresh(postgres, ['check-ledger']);
    assert.equal(shipping.metricValue(metrics, 'tollgate_ledger_drift'), 0);
  });

  test('a difference that is hours old stays in the metrics until the job that sees it finds it no more', async () => {
    const watched = createWatchedGauges(metrics, context.gauges);
    const finds = async (name: string, drift: number, dueAtMs: number): Promise<number> => {
      const job: Job = { name, cron: null, run: async () => ({ drift }) };
      await runDueJob(context, job, { dueAtMs, machine: 'any' });
      await watched.refresh(postgres, ['compare-facts', 'compare-facts-daily']);
      return shipping.metricValue(metrics, 'tollgate_facts_drift');
    };
    const nowMs = systemClock.nowMs();
    assert.equal(await finds('compare-facts-daily', 3, nowMs), 3);
    assert.equal(await finds('compare-facts', 0, nowMs), 3);
    assert.equal(await finds('compare-facts', 4, nowMs + 60_000), 4);
    assert.equal(await finds('compare-facts', 0, nowMs + 120_000), 3);
    assert.equal(await finds('compare-facts-daily', 0, nowMs + 60_000), 0);
  });

  test(
    'an execution is late when it is pending for longer than its provider may take, or after its epoch ' + 'is closed',
    async () => {
      const epoch = await shipping.createEpoch(postgres, payer, 3);
      await admit(epoch, systemClock.nowMs() - HOUR_MS);
      assert.equal((await checkPending(context)).drift, 0);
      await postgres.query(`UPDATE generations SET admitted_at = now() - interval '2 hours'`);
      assert.equal((await checkPending(context)).drift, 1);
      await postgres.query(
        `INSERT INTO providers (id, base_url, auth, api_key_sealed, on_disconnect, timeouts)
        VALUES ('slow', 'http://slow.test', 'bearer', '', 'cancel', '{"totalMs": 86400000}')`,
      );
      assert.equal((await checkPending(context)).drift, 0, 'a provider may take a day');
      await postgres.transaction((client) => closeDeadEpoch(client, epoch));
      assert.equal((await checkPending(context)).drift, 0, 'reconciliation has a few minutes');
      await postgres.query(`UPDATE process_epochs SET returned_at = now() - interval '10 minutes'`);
      const found = await checkPending(context);
      assert.equal(found.drift, 1);
      assert.deepEqual(
        (found['late'] as { epoch: number; closed: boolean }[]).map(({ epoch: of, closed }) => [of, closed]),
        [[epoch, true]],
      );
    },
  );

  test('tollgate epoch: lists what holds money; gives up one whose machine is gone, and only that', async () => {
    const epoch = await shipping.createEpoch(postgres, payer, 2);
    const id = await admit(epoch, systemClock.nowMs() - 2 * HOUR_MS);
    const { lines } = await run(epochCommand, 'list');
    assert.match(
      lines.join('\n'),
      new RegExp(`^${epoch}  test  gateway ${process.pid}  since .* last posted .* holds 0\\.000002 USD  1 pending$`),
    );
    await assert.rejects(run(epochCommand, `abandon ${epoch + 1} --machine test`), /there is no open epoch/);
    await assert.rejects(run(epochCommand, `abandon ${epoch} --machine ${hostname()}-x`), /is one of "test"/);
    await assert.rejects(run(epochCommand, `abandon ${epoch}`), /--machine is missing/);
    await assert.rejects(run(epochCommand, `abandon ${epoch} --machine test`), /had a posting in the last ten minutes/);
    const writer = shipping.openSpool(join(dataDirectory, 'spool'), epoch);
    await assert.rejects(run(epochCommand, `abandon ${epoch} --machine test --force`), /has its spool here/);
    await writer.close();
    await postgres.query(`UPDATE spool_cursors SET updated_at = now() - interval '1 day'`);
    rmSync(join(dataDirectory, 'spool'), { recursive: true });
    const { lines: abandoned } = await run(epochCommand, `abandon ${epoch} --machine test`);
    assert.deepEqual(abandoned, [
      `epoch ${epoch} of test is closed: 0.000001 USD returned, 1 open executions cancelled`,
    ]);
    assert.deepEqual(await shipping.readGenerations(postgres), [{ id, billing_status: 'cancelled', charge: '0' }]);
    assert.equal((await shipping.readWallet(postgres, payer.walletId)).leased, 0n);
    assert.deepEqual(await findBrokenInvariants(postgres), []);
    assert.deepEqual((await run(epochCommand, 'list')).lines, []);
    const entries = await listAudit(postgres, { organizationId: null });
    assert.ok(!isRefused(entries));
    assert.deepEqual(
      entries.items.map(({ action, target }) => [action, target.id]),
      [['epoch.abandon', String(epoch)]],
    );
  });

  test('tollgate wallet and credit: an organization’s and a member’s own', async () => {
    const slug = `test-${payer.organizationId}`;
    await postgres.query(
      `WITH person AS (INSERT INTO users (email) VALUES ('p@own.test') RETURNING id)
       INSERT INTO memberships (organization_id, user_id, role) SELECT $1, id, 'member' FROM person`,
      [payer.organizationId],
    );
    assert.deepEqual((await run(walletCommand, `list --organization ${slug}`)).lines, [
      `${slug}: balance 1000 USD, of it 0 held by open requests, 0 lent to gateways`,
    ]);
    await assert.rejects(run(walletCommand, `freeze --organization ${slug} --user p@own.test`), /has no wallet/);
    const credit = `add --organization ${slug} --user P@own.test --amount 2.50 --reference first`;
    assert.deepEqual((await run(creditCommand, credit)).lines, [
      `2.5 USD posted; balance of "P@own.test" in "${slug}": 2.5 USD`,
    ]);
    assert.match((await run(creditCommand, credit)).lines[0] ?? '', /^posted before, nothing changed/);
    await assert.rejects(run(creditCommand, credit.replace('2.50', '2.51')), /used before for another amount/);
    assert.deepEqual((await run(walletCommand, `freeze --organization ${slug}`)).lines, [
      `${slug}: frozen; balance 1000 USD, of it 0 held by open requests, 0 lent to gateways`,
    ]);
    assert.deepEqual((await run(walletCommand, `list --organization ${slug}`)).lines, [
      `${slug}: frozen; balance 1000 USD, of it 0 held by open requests, 0 lent to gateways`,
      'p@own.test: balance 2.5 USD, of it 0 held by open requests, 0 lent to gateways',
    ]);
    assert.deepEqual((await run(walletCommand, `unfreeze --organization ${slug}`)).lines, [
      `${slug}: balance 1000 USD, of it 0 held by open requests, 0 lent to gateways`,
    ]);
  });

  test('every job is due again, but for those that run on request alone', () => {
    for (const job of JOBS) {
      if (job.cron === null) assert.equal(nextDueTime(job), null, job.name);
      else assert.ok((nextDueTime(job)?.getTime() ?? 0) > systemClock.nowMs(), job.name);
    }
  });
});
