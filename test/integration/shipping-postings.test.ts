// Spools shipped into a real Postgres: exactly once, in order, past damage, through outages, and to the end of an
// epoch.

import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { RECORD_FORM } from '../../src/records/fields.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { readSpoolCursors } from '../../src/storage/postgres/ledger/spool-cursors.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { listEpochs, listQuarantine, listSegments, segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import { admittedRecord } from '../support/execution-records.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { appendRecords, putRecord } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

let server: TestPostgres;
let postgres: Postgres;
let payer: shipping.Payer;
let sink: shipping.MemorySink;

before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());
beforeEach(async () => {
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 3 });
  payer = await shipping.createPayer(postgres);
  sink = new shipping.MemorySink();
});
afterEach(() => postgres.close());

async function assertShipped(ids: readonly string[]): Promise<void> {
  const rows = await shipping.readGenerations(postgres);
  assert.deepEqual(
    rows,
    [...ids].sort().map((id) => ({ id, billing_status: 'final', charge: shipping.CHARGE.toString() })),
  );
  assert.deepEqual([...sink.facts.keys()].sort(), [...ids].sort());
  assert.equal(
    (await shipping.readWallet(postgres, payer.walletId)).balance,
    shipping.DEPOSIT - shipping.CHARGE * BigInt(ids.length),
  );
  assert.deepEqual(await findBrokenInvariants(postgres), []);
}

async function setUp(context: TestContext, executions = 200, segmentBytesMax?: number) {
  const spoolDirectory = temporaryDirectory(context);
  const epoch = await shipping.createEpoch(postgres, payer, executions);
  const writer = shipping.openSpool(spoolDirectory, epoch, segmentBytesMax);
  return { spoolDirectory, epoch, writer, directory: writer.directory };
}

describe('shipping', () => {
  test('a live spool is shipped while it grows, complete segments go, the current one stays', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 200, 20_000);
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink });
    const ids: string[] = [];
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 40; index++) ids.push(shipping.appendExecution(writer, payer));
      await shipper.drainOnce();
      await assertShipped(ids);
    }
    assert.equal(listSegments(directory).length, 1);
    assert.ok((listSegments(directory)[0] as number) > 3);
    await writer.close();
  });

  test('in small batches, and by a shipper that begins anew after each, everything is posted once', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 200, 20_000);
    const ids = Array.from({ length: 60 }, () => shipping.appendExecution(writer, payer));
    const limits = { recordsMax: 7, factsMax: 11, bytesMax: 3_000 };
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink, limits }).drainOnce();
    await assertShipped(ids);
    ids.push(shipping.appendExecution(writer, payer));
    await Promise.all([1, 2, 3].map(() => shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce()));
    await assertShipped(ids);
    await writer.close();
  });

  test('an ended spool: its lease returns, open executions are cancelled and become facts, the directory and its cursors go', async (context) => {
    const { spoolDirectory, epoch, writer } = await setUp(context, 10);
    const ids = [shipping.appendExecution(writer, payer), shipping.appendExecution(writer, payer)];
    const open = shipping.billedStart(payer);
    appendRecords(writer, admittedRecord(open));
    await writer.close();
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    assert.deepEqual(listEpochs(spoolDirectory), []);
    assert.deepEqual(await readSpoolCursors(postgres, epoch), []);
    assert.deepEqual(await shipping.readWallet(postgres, payer.walletId), {
      balance: shipping.DEPOSIT - 2n * shipping.CHARGE,
      leased: 0n,
    });
    const rows = await shipping.readGenerations(postgres);
    assert.deepEqual(rows.map((row) => row.billing_status).sort(), ['cancelled', 'final', 'final']);
    assert.deepEqual([...sink.facts.keys()].sort(), [...ids, open.id].sort());
    assert.equal(sink.facts.get(open.id)?.outcome, 'process_killed');
    assert.deepEqual(await findBrokenInvariants(postgres), []);
  });

  test('the torn tail of an ended spool is normal: no alarm, nothing set aside', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 10);
    const id = shipping.appendExecution(writer, payer);
    await writer.close();
    const path = join(directory, segmentFileName(1));
    appendFileSync(path, readFileSync(path).subarray(0, 300));
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    await assertShipped([id]);
    assert.deepEqual(listQuarantine(spoolDirectory), []);
    assert.deepEqual(listEpochs(spoolDirectory), []);
  });

  test('an observer of ended executions that fails fails no posting, and keeps nothing from the next', async (context) => {
    const { spoolDirectory, writer } = await setUp(context);
    const told: string[] = [];
    const stop = async () => undefined;
    const failing = {
      ended: () => {
        throw new Error('a fault of an observer');
      },
      stop,
    };
    const listening = {
      ended: (records: readonly TerminalRecord[]) => void told.push(...records.map(({ id }) => id)),
      stop,
    };
    const ids = [shipping.appendExecution(writer, payer), shipping.appendExecution(writer, payer)];
    const observers = [failing, listening];
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink, observers }).drainOnce();
    await assertShipped(ids);
    assert.deepEqual(told, ids);
    await writer.close();
  });

  test('damage in the middle is set aside with an alarm, and every whole record around it is posted', async (context) => {
    const { spoolDirectory, writer, directory, epoch } = await setUp(context, 10);
    const before = shipping.appendExecution(writer, payer);
    const path = join(directory, segmentFileName(1));
    const damageStart = readFileSync(path).length;
    const damaged = shipping.billedStart(payer);
    appendRecords(writer, admittedRecord(damaged));
    const damageEnd = readFileSync(path).length;
    const behind = shipping.appendExecution(writer, payer);
    const bytes = readFileSync(path);
    bytes[damageStart + 100] = (bytes[damageStart + 100] as number) ^ 0x10;
    writeFileSync(path, bytes);
    const metrics = new MetricsRegistry();
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink, metrics });
    await shipper.drainOnce();
    await assertShipped([before, behind]);
    const [file] = listQuarantine(spoolDirectory);
    assert.equal(file, `${epoch}-${segmentFileName(1)}-${damageStart}.bad`);
    assert.deepEqual(readFileSync(join(spoolDirectory, 'quarantine', file)), bytes.subarray(damageStart, damageEnd));
    assert.equal(shipping.metricValue(metrics, 'tollgate_spool_quarantined_files'), 1);
    // The owner goes on writing behind it.
    const later = shipping.appendExecution(writer, payer);
    await writer.close();
    await shipper.drainOnce();
    await assertShipped([before, behind, later]);
    assert.equal(listQuarantine(spoolDirectory).length, 1);
  });

  test('damage to the last record of an ended spool is set aside, not taken for a torn tail', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 10);
    const id = shipping.appendExecution(writer, payer);
    appendRecords(writer, admittedRecord(shipping.billedStart(payer)));
    await writer.close();
    const path = join(directory, segmentFileName(1));
    const bytes = readFileSync(path);
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] as number) ^ 1;
    writeFileSync(path, bytes);
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    await assertShipped([id]);
    assert.equal(listQuarantine(spoolDirectory).length, 1);
    assert.deepEqual(listEpochs(spoolDirectory), []);
  });

  test('a record that Postgres refuses is found among its batch and set aside; the others are posted', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 100);
    const ids = Array.from({ length: 20 }, () => shipping.appendExecution(writer, payer));
    appendRecords(writer, admittedRecord(shipping.billedStart(payer, { apiKeyId: 'not a uuid' })));
    ids.push(...Array.from({ length: 20 }, () => shipping.appendExecution(writer, payer)));
    await writer.close();
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    await assertShipped(ids);
    assert.equal(listQuarantine(spoolDirectory).length, 1);
  });

  test('of a frame with records that Postgres refuses the others are posted, once, and its bytes are set aside', async (context) => {
    const { spoolDirectory, writer, directory, epoch } = await setUp(context, 100);
    const before = shipping.appendExecution(writer, payer);
    const starts = Array.from({ length: 3 }, (_, index) =>
      shipping.billedStart(payer, index === 1 ? { apiKeyId: 'not a uuid' } : {}),
    );
    const from = readFileSync(join(directory, segmentFileName(1))).length;
    const batch = writer.takeBatch();
    for (const start of starts) {
      putRecord(batch, admittedRecord(start));
      putRecord(batch, shipping.billedTerminal(start));
    }
    batch.endFrame();
    assert.equal(batch.ends.length, 1);
    writer.appendBatch(batch);
    const to = readFileSync(join(directory, segmentFileName(1))).length;
    const behind = shipping.appendExecution(writer, payer);
    await writer.close();
    const bytes = readFileSync(join(directory, segmentFileName(1))).subarray(from, to);
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    const good = starts.filter((start) => start.apiKeyId !== 'not a uuid').map((start) => start.id);
    await assertShipped([before, ...good, behind]);
    assert.deepEqual(listQuarantine(spoolDirectory), [`${epoch}-${segmentFileName(1)}-${from}.bad`]);
    assert.deepEqual(
      readFileSync(join(spoolDirectory, 'quarantine', `${epoch}-${segmentFileName(1)}-${from}.bad`)),
      bytes,
    );
    assert.deepEqual(listEpochs(spoolDirectory), []);
  });

  test('what Postgres refused is not read as a fact either, by a process that has the facts from the spool alone', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 100);
    const before = shipping.appendExecution(writer, payer);
    const refused = shipping.billedStart(payer, { apiKeyId: 'not a uuid' });
    appendRecords(writer, admittedRecord(refused), shipping.billedTerminal(refused));
    const behind = shipping.appendExecution(writer, payer);
    sink.away = true;
    const limits = { recordsMax: 1 };
    await assert.rejects(
      shipping.testShipper({ spoolDirectory, postgres, facts: sink, limits }).drainOnce(),
      /ClickHouse is away/,
    );
    assert.equal((await shipping.readGenerations(postgres)).length, 2);
    sink.away = false;
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    await assertShipped([before, behind]);
    await writer.close();
  });

  const BEYOND_KEPT = 20_100;
  test('nor by the process that set it aside, where more facts wait than it keeps', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 2 * BEYOND_KEPT, 100_000_000);
    const append = (starts: readonly ReturnType<typeof shipping.billedStart>[]): void => {
      const batch = writer.takeBatch();
      for (const start of starts) {
        putRecord(batch, admittedRecord(start));
        putRecord(batch, shipping.billedTerminal(start));
      }
      batch.endFrame();
      writer.appendBatch(batch);
    };
    const starts = Array.from({ length: BEYOND_KEPT }, () => shipping.billedStart(payer));
    for (let from = 0; from < BEYOND_KEPT; from += 10) append(starts.slice(from, from + 10));
    append([shipping.billedStart(payer, { apiKeyId: 'not a uuid' })]);
    const behind = shipping.appendExecution(writer, payer);
    sink.away = true;
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink });
    await assert.rejects(shipper.drainOnce(), /ClickHouse is away/);
    sink.away = false;
    await shipper.drainOnce();
    await assertShipped([...starts.map(({ id }) => id), behind]);
    await writer.close();
  });

  test('when many records in a row are refused, posting stops and nothing more is set aside', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 100);
    for (let index = 0; index < 10; index++)
      appendRecords(writer, admittedRecord(shipping.billedStart(payer, { apiKeyId: 'not a uuid' })));
    await writer.close();
    await assert.rejects(
      shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce(),
      /invalid input syntax for type uuid/,
    );
    assert.equal(listQuarantine(spoolDirectory).length, 3);
    assert.equal(listEpochs(spoolDirectory).length, 1);
  });

  test('while ClickHouse is away postings go on and leases return; facts catch up from where they were', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 300, 12_000);
    const limits = { factsMax: 50 };
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink, limits });
    const ids = Array.from({ length: 30 }, () => shipping.appendExecution(writer, payer));
    await shipper.drainOnce();
    sink.away = true;
    ids.push(...Array.from({ length: 60 }, () => shipping.appendExecution(writer, payer)));
    await assert.rejects(shipper.drainOnce(), /ClickHouse is away/);
    assert.equal((await shipping.readGenerations(postgres)).length, 90);
    assert.equal(sink.facts.size, 30);
    const segments = listSegments(directory).length;
    assert.ok(segments > 3);
    await writer.close();
    await assert.rejects(shipper.drainOnce(), /ClickHouse is away/);
    assert.equal((await shipping.readWallet(postgres, payer.walletId)).leased, 0n);
    assert.equal(existsSync(directory), true);
    sink.away = false;
    // Another process takes over: it knows only the cursors.
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink, limits }).drainOnce();
    await assertShipped(ids);
    assert.equal(existsSync(directory), false);
  });

  test('facts that ClickHouse did not take are neither read nor sent again until it answers', async (context) => {
    const { spoolDirectory, writer } = await setUp(context);
    const ids = Array.from({ length: 40 }, () => shipping.appendExecution(writer, payer));
    sink.away = true;
    await assert.rejects(shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce(), /away/);
    // Another process, which has the facts from the spool alone.
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink });
    for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(shipper.drainOnce(), /away/);
    assert.deepEqual(
      sink.refused.map((facts) => facts.length),
      [40, 40],
    );
    assert.equal(sink.probes, 2);
    ids.push(shipping.appendExecution(writer, payer));
    sink.away = false;
    await shipper.drainOnce();
    await assertShipped(ids);
    await writer.close();
  });

  test('running by itself: records arrive while it runs, Postgres goes away and comes back', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 300);
    const metrics = new MetricsRegistry();
    let away = false;
    const flaky: Postgres = {
      ...postgres,
      query: (statement, values) =>
        away ? Promise.reject(new Error('Postgres is away')) : postgres.query(statement, values),
      transaction: (work) => (away ? Promise.reject(new Error('Postgres is away')) : postgres.transaction(work)),
    };
    const limits = { pollMs: 5, factsIntervalMs: 20 };
    const shipper = shipping.testShipper({ spoolDirectory, postgres: flaky, facts: sink, metrics, limits });
    shipper.start();
    const ids = Array.from({ length: 5 }, () => shipping.appendExecution(writer, payer));
    await waitFor(
      'the first facts',
      () => sink.facts.size,
      (size) => size === 5,
    );
    away = true;
    ids.push(...Array.from({ length: 5 }, () => shipping.appendExecution(writer, payer)));
    await waitFor(
      'a posting fault',
      () => shipping.metricValue(metrics, 'tollgate_shipping_faults_total', 'postgres'),
      (faults) => faults > 0,
    );
    away = false;
    await waitFor(
      'the later facts',
      () => sink.facts.size,
      (size) => size === 10,
    );
    ids.push(shipping.appendExecution(writer, payer));
    await shipper.stop();
    await assertShipped(ids);
    await writer.close();
  });

  test('a backlog is posted without a rest; what comes with the last of it waits for more', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 61);
    const ids = Array.from({ length: 60 }, () => shipping.appendExecution(writer, payer));
    let postings = 0;
    const counted: Postgres = {
      ...postgres,
      query: (statement, values) => {
        if (typeof statement === 'object' && statement.name === 'post_executions') postings += 1;
        if (postings === 12 && ids.length === 60) ids.push(shipping.appendExecution(writer, payer));
        return postgres.query(statement, values);
      },
    };
    const limits = { pollMs: 3_600_000, factsIntervalMs: 20, recordsMax: 10 };
    const shipper = shipping.testShipper({ spoolDirectory, postgres: counted, facts: sink, limits });
    context.after(() => shipper.stop());
    shipper.start();
    const countPosted = async (): Promise<number> => (await shipping.readGenerations(postgres)).length;
    await waitFor('the backlog', countPosted, (count) => count >= 60);
    await sleep(200);
    assert.deepEqual([await countPosted(), postings], [60, 12]);
    await shipper.stop();
    await assertShipped(ids);
    await writer.close();
  });

  test('a start without a terminal record becomes pending after a while, and is settled when its end comes', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 10);
    const shipper = shipping.testShipper({
      spoolDirectory,
      postgres,
      facts: sink,
      limits: { pollMs: 5, factsIntervalMs: 20, admittedWaitMs: 20 },
    });
    shipper.start();
    const start = shipping.billedStart(payer);
    appendRecords(writer, admittedRecord(start));
    await waitFor(
      'the pending row',
      () => shipping.readGenerations(postgres),
      (rows) => rows[0]?.billing_status === 'pending',
    );
    appendRecords(writer, shipping.billedTerminal(start));
    await waitFor(
      'the fact',
      () => sink.facts.size,
      (size) => size === 1,
    );
    await shipper.stop();
    await assertShipped([start.id]);
    await writer.close();
  });

  test('a spool whose owner cannot be read is an alarm, and the others go on', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 10);
    const other = shipping.openSpool(spoolDirectory, await shipping.createEpoch(postgres, payer, 10));
    writeFileSync(join(directory, 'owner.json'), 'not JSON');
    shipping.appendExecution(writer, payer);
    const id = shipping.appendExecution(other, payer);
    const metrics = new MetricsRegistry();
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink, metrics });
    await shipper.drainOnce();
    await assertShipped([id]);
    assert.equal(shipping.metricValue(metrics, 'tollgate_spool_unreadable'), 1);
    await Promise.all([writer.close(), other.close()]);
  });

  test('a spool of a newer form waits untouched for a version that knows it', async (context) => {
    const { spoolDirectory, writer, directory } = await setUp(context, 10);
    const id = shipping.appendExecution(writer, payer);
    await writer.close();
    const ownerFile = join(directory, 'owner.json');
    const owner = JSON.parse(readFileSync(ownerFile, 'utf8')) as { recordForm: number };
    assert.equal(owner.recordForm, RECORD_FORM);
    writeFileSync(ownerFile, JSON.stringify({ ...owner, recordForm: RECORD_FORM + 1 }));
    const metrics = new MetricsRegistry();
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink, metrics }).drainOnce();
    assert.equal(shipping.metricValue(metrics, 'tollgate_spool_unreadable'), 1);
    assert.deepEqual(await shipping.readGenerations(postgres), []);
    assert.ok(!existsSync(join(spoolDirectory, 'quarantine')));
    writeFileSync(ownerFile, JSON.stringify(owner));
    await shipping.testShipper({ spoolDirectory, postgres, facts: sink }).drainOnce();
    await assertShipped([id]);
  });

  test('what else lies in the spool directory is left alone, and half-made spools of dead processes go', async (context) => {
    const { spoolDirectory, writer } = await setUp(context, 10);
    writeFileSync(join(spoolDirectory, 'README'), 'x');
    const shipper = shipping.testShipper({ spoolDirectory, postgres, facts: sink });
    await shipper.drainOnce();
    assert.ok(readdirSync(spoolDirectory).includes('README'));
    await writer.close();
  });
});
