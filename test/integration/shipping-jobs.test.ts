// The jobs process as a whole, and its scheduled jobs, on a real Postgres and the embedded ClickHouse.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { runJobs } from '../../jobs/run-jobs.ts';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { createJobGauges } from '../../jobs/scheduling/job-gauges.ts';
import { JOBS, runDueJob, startSchedule } from '../../jobs/scheduling/schedule.ts';
import type { ShippingLimits } from '../../jobs/shipping/shipping-limits.ts';
import { checkLedger } from '../../jobs/tasks/check-ledger.ts';
import { compareFacts } from '../../jobs/tasks/compare-facts.ts';
import { resolvePendingExecutions } from '../../jobs/tasks/resolve-pending.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { createClickHouse } from '../../src/storage/clickhouse/clickhouse.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { closeDeadEpoch } from '../../src/storage/postgres/ledger/epochs.ts';
import { notifyAboutSpools, POSTING_WANTED_CHANNEL } from '../../src/storage/postgres/ledger/open-spools.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { listEpochs } from '../../src/storage/spool/spool-directory.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { JOBS_SETTINGS } from '../support/jobs-settings.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { appendRecords } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const SETTINGS = { ...JOBS_SETTINGS, reportsListen: { host: '127.0.0.1', port: 0 } };

let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());

describe('the jobs process', () => {
  test('ships from the start of a spool to its end, and leaves both stores equal', async (context) => {
    const dataDirectory = temporaryDirectory(context);
    const databaseUrl = await server.createDatabase();
    const postgres = createPostgres({ url: databaseUrl, log: silentLog, max: 2 });
    const payer = await shipping.createPayer(postgres);
    const epoch = await shipping.createEpoch(postgres, payer, 100);
    const metrics = new MetricsRegistry();
    const parts = {
      config: { ...SETTINGS, dataDirectory, databaseUrl, clickhouseUrl: null },
      log: silentLog,
      clock: systemClock,
    };
    const first = await runJobs({ ...parts, metrics });
    const writer = shipping.openSpool(join(dataDirectory, 'spool'), epoch);
    const ids = Array.from({ length: 20 }, () => shipping.appendExecution(writer, payer));
    await waitFor(
      'the postings',
      () => shipping.readGenerations(postgres),
      (rows) => rows.length === 20,
    );
    ids.push(shipping.appendExecution(writer, payer));
    await first.drain(5_000);
    assert.equal(shipping.metricValue(metrics, 'tollgate_facts_inserted_total'), 21);
    ids.push(shipping.appendExecution(writer, payer));
    await writer.close();
    const second = await runJobs({ ...parts, metrics: new MetricsRegistry() });
    await waitFor(
      'the end of the spool',
      () => listEpochs(join(dataDirectory, 'spool')).length,
      (count) => count === 0,
    );
    await second.drain(5_000);
    const client = await createClickHouse({ directory: join(dataDirectory, 'clickhouse') }, systemClock);
    const facts = await shipping.readFactRows(client);
    await client.close();
    assert.deepEqual(facts.map((fact) => fact.id).sort(), [...ids].sort());
    assert.deepEqual(
      (await shipping.readGenerations(postgres)).map((row) => row.id),
      [...ids].sort(),
    );
    await postgres.close();
  });

  test('what is recorded is posted as soon as a gateway says that somebody waits for it', async (context) => {
    const pauses = { pollMs: 3_600_000, admittedWaitMs: 3_600_000 };
    const { jobs, postgres, payer, writer } = await withoutClickHouse(context, pauses);
    shipping.appendExecution(writer, payer);
    const postedOnce = async () => {
      await notifyAboutSpools(postgres, POSTING_WANTED_CHANNEL, '');
      return (await shipping.readGenerations(postgres)).length;
    };
    await waitFor('the first posting', postedOnce, (count) => count === 1);
    shipping.appendExecution(writer, payer);
    await waitFor('the second posting', postedOnce, (count) => count === 2);
    appendRecords(writer, admittedRecord(shipping.billedStart(payer)));
    await waitFor('an admission whose end is not there', postedOnce, (count) => count === 3);
    await jobs.drain(5_000);
    await writer.close();
    await postgres.close();
  });

  test('postings do not wait for a ClickHouse that is away', async (context) => {
    const { jobs, postgres, payer, writer } = await withoutClickHouse(context);
    const id = shipping.appendExecution(writer, payer);
    await waitFor(
      'the posting',
      () => shipping.readGenerations(postgres),
      (rows) => rows[0]?.id === id,
    );
    await jobs.drain(5_000);
    await writer.close();
    await postgres.close();
  });
});

/** The jobs process, and a spool that it ships. Nobody listens where its ClickHouse should be. */
async function withoutClickHouse(context: TestContext, shippingLimits: Partial<ShippingLimits> = {}) {
  const dataDirectory = temporaryDirectory(context);
  const databaseUrl = await server.createDatabase();
  const postgres = createPostgres({ url: databaseUrl, log: silentLog, max: 2 });
  const payer = await shipping.createPayer(postgres);
  const writer = shipping.openSpool(join(dataDirectory, 'spool'), await shipping.createEpoch(postgres, payer, 10));
  const config = { ...SETTINGS, dataDirectory, databaseUrl, clickhouseUrl: 'http://127.0.0.1:9' };
  const parts = { config, log: silentLog, clock: systemClock, metrics: new MetricsRegistry() };
  return { jobs: await runJobs({ ...parts, shippingLimits }), postgres, payer, writer };
}

describe('scheduled jobs', () => {
  let postgres: Postgres;
  let clickhouse: TestClickHouse;
  let payer: shipping.Payer;
  let job: JobContext;
  before(async () => {
    clickhouse = await openTestClickHouse();
  });
  after(() => clickhouse.close());
  afterEach(() => postgres.close());
  beforeEach(async () => {
    await clickhouse.clear();
    postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 4 });
    payer = await shipping.createPayer(postgres);
    job = {
      postgres,
      clickhouse: () => clickhouse.client,
      facts: { insert: (facts, batch) => insertFacts(clickhouse.client, facts, batch) },
      sealedDays: () => null,
      log: silentLog,
      clock: systemClock,
      gauges: createJobGauges(new MetricsRegistry()),
      factsRetentionDays: null,
      media: null,
      box: secretsOf(Buffer.alloc(32, 1)).box,
    };
  });

  async function post(
    epoch: number,
    records: Parameters<typeof postExecutions>[1]['records'],
    fromOffset = 0,
  ): Promise<void> {
    const result = await postgres.transaction((client) =>
      postExecutions(client, { epoch, segment: 1, fromOffset, toOffset: fromOffset + 1, records }),
    );
    assert.equal(result.status, 'posted');
  }

  test('facts that are missing or different are inserted from the ledger; right ones are left alone', async () => {
    const epoch = await shipping.createEpoch(postgres, payer, 200);
    const ended = { endedAtMs: systemClock.nowMs() - 1_000 };
    const records = Array.from({ length: 100 }, (_, index) => {
      const start = shipping.billedStart(payer, {
        admittedAtMs: systemClock.nowMs() - 2_000 - index,
        tags: ['a', `b${index}`],
        clientRequestId: index % 2 === 0 ? null : `c${index}`,
      });
      return shipping.billedTerminal(start, ended);
    });
    records.push(
      terminalRecord(executionStart({ admittedAtMs: systemClock.nowMs() - 3_000 }), {
        ...ended,
        usage: null,
        usageSource: null,
        ratedCost: null,
      }),
    );
    await post(epoch, records);
    await insertFacts(clickhouse.client, records.slice(0, 50).map(factOf), 'a');
    const [wrong] = records;
    if (wrong === undefined) assert.fail();
    await insertFacts(clickhouse.client, [factOf({ ...wrong, charge: '1' })], 'b');
    const result = await compareFacts(job, { hours: 2, settlingMs: 0 });
    assert.equal(result['repaired'], 52);
    assert.deepEqual(result['stillDiffering'], []);
    const facts = await shipping.readFactRows(clickhouse.client);
    assert.equal(facts.length, 101);
    assert.equal(facts.find((fact) => fact.id === wrong.id)?.total_cost, '0.0000004275');
    assert.deepEqual(await compareFacts(job, { hours: 2, settlingMs: 0 }), {
      differing: [],
      repaired: 0,
      stillDiffering: [],
      drift: 0,
    });
  });

  test('a fact without a ledger row cannot be repaired and is an alarm', async () => {
    await insertFacts(
      clickhouse.client,
      [factOf(terminalRecord(executionStart({ admittedAtMs: systemClock.nowMs() - 5_000 })))],
      'a',
    );
    const result = await compareFacts(job, { hours: 2, settlingMs: 0 });
    assert.deepEqual([result['repaired'], (result['stillDiffering'] as string[]).length, result['drift']], [0, 1, 1]);
    assert.equal(job.gauges.factsDrift.value, 0, 'its gauge is of all runs: watch-jobs.ts sets it');
  });

  test('what ended just now is not compared yet', async () => {
    const epoch = await shipping.createEpoch(postgres, payer, 2);
    await post(epoch, [shipping.billedTerminal(shipping.billedStart(payer), { endedAtMs: systemClock.nowMs() })]);
    assert.deepEqual(await compareFacts(job, { hours: 2 }), {
      differing: [],
      repaired: 0,
      stillDiffering: [],
      drift: 0,
    });
  });

  test('executions that a closed epoch left open are resolved, and have facts', async () => {
    const epoch = await shipping.createEpoch(postgres, payer, 5);
    const start = shipping.billedStart(payer);
    await post(epoch, [admittedRecord(start)]);
    await postgres.transaction((client) => closeDeadEpoch(client, epoch));
    assert.deepEqual(await resolvePendingExecutions(job), { resolved: 1 });
    assert.deepEqual(await shipping.readFactRows(clickhouse.client), [
      { id: start.id, billing_status: 'cancelled', total_cost: '0' },
    ]);
    assert.equal((await shipping.readWallet(postgres, payer.walletId)).leased, 0n);
    assert.deepEqual(await resolvePendingExecutions(job), { resolved: 0 });
  });

  test('the books are right, and when they are not the gauge says so', async () => {
    assert.deepEqual(await checkLedger(job), { broken: [], drift: 0 });
    await postgres.query('UPDATE wallets SET balance = balance + 1');
    const { broken } = await checkLedger(job);
    assert.ok((broken as unknown[]).length > 0);
    assert.equal(job.gauges.ledgerDrift.value, (broken as unknown[]).length);
  });

  test('a due time is run once in the cluster, and recorded whichever way it goes', async () => {
    let runs = 0;
    const good = { name: 'good', cron: '* * * * *', run: async () => ({ runs: ++runs }) };
    const due = { dueAtMs: 1_700_000_000_400, machine: 'one' };
    const results = await Promise.all(
      ['one', 'two', 'three'].map((machine) => runDueJob(job, good, { ...due, machine })),
    );
    assert.deepEqual(results.sort(), ['claimed_elsewhere', 'claimed_elsewhere', 'ran']);
    assert.equal(await runDueJob(job, good, { ...due, dueAtMs: due.dueAtMs + 60_000 }), 'ran');
    const bad = { ...good, name: 'bad', run: async () => Promise.reject(new Error('not today')) };
    assert.equal(await runDueJob(job, bad, due), 'failed');
    const { rows } = await postgres.query(
      `SELECT name, error, details ->> 'runs' AS runs, finished_at >= started_at AS finished FROM job_runs ORDER BY id`,
    );
    assert.deepEqual(rows, [
      { name: 'good', error: null, runs: '1', finished: true },
      { name: 'good', error: null, runs: '2', finished: true },
      { name: 'bad', error: 'not today', runs: null, finished: true },
    ]);
  });

  test('every job of the table runs, and the clockwork starts them', async () => {
    for (const scheduled of JOBS)
      assert.equal(
        await runDueJob(job, scheduled, { dueAtMs: 1_700_000_000_000, machine: 'one' }),
        'ran',
        scheduled.name,
      );
    let ran = Promise.withResolvers<void>();
    const everySecond = {
      name: 'every-second',
      cron: '* * * * * *',
      run: async () => (ran.resolve(), {}),
    };
    const schedule = startSchedule(job, 'one', [everySecond]);
    await ran.promise;
    ran = Promise.withResolvers();
    await ran.promise;
    await schedule.stop();
  });
});
