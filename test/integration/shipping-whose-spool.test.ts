// Whose a spool is: one that does not say so is left alone, and so is a copy while its process lives elsewhere.

import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { writeBeat } from '../../src/storage/postgres/processes/beats.ts';
import { segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let server: TestPostgres;
let postgres: Postgres;
let payer: shipping.Payer;

before(async () => {
  server = await startTestPostgres();
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 3 });
  payer = await shipping.createPayer(postgres);
});
after(async () => {
  await postgres?.close();
  await server?.stop();
});

/** Ships once; returns how many spools it left alone. */
async function ship(spoolDirectory: string): Promise<number> {
  const metrics = new MetricsRegistry();
  const facts = new shipping.MemorySink();
  await shipping.testShipper({ spoolDirectory, postgres, facts, metrics }).drainOnce();
  return shipping.metricValue(metrics, 'tollgate_spool_unreadable');
}

async function readEpoch(epoch: number) {
  const { rows } = await postgres.query<{ is_open: boolean; leased: string; posted: number }>(
    `SELECT returned_at IS NULL AS is_open,
            (SELECT coalesce(sum(outstanding), 0)::text FROM leases WHERE leases.epoch = e.epoch) AS leased,
            (SELECT count(*)::integer FROM generations g WHERE g.epoch = e.epoch) AS posted
       FROM process_epochs e WHERE epoch = $1`,
    [epoch],
  );
  return rows[0];
}

describe('a spool whose owner.json', () => {
  const owners = ['', '{}', 'null', '[]', '7', '"x"', '{"epoch":1', '{"pid":null}', '{"pid":"1","openedAtMs":1}'];
  for (const owner of owners)
    test(`is ${owner === '' ? 'empty' : owner} waits for a person, and its epoch stays open`, async (context) => {
      const epoch = await shipping.createEpoch(postgres, payer, 1);
      const spoolDirectory = temporaryDirectory(context);
      const writer = shipping.openSpool(spoolDirectory, epoch);
      shipping.appendExecution(writer, payer);
      writeFileSync(join(spoolDirectory, String(epoch), 'owner.json'), owner);
      const before = await readEpoch(epoch);
      assert.equal(await ship(spoolDirectory), 1);
      assert.deepEqual(await readEpoch(epoch), before);
      await writer.close();
    });
});

describe('the copy of a spool', () => {
  test('is neither posted nor ends the epoch while its process beats on another machine', async (context) => {
    const epoch = await shipping.createEpoch(postgres, payer, 4);
    const spoolDirectory = temporaryDirectory(context);
    const copies = temporaryDirectory(context);
    const writer = shipping.openSpool(spoolDirectory, epoch);
    const ids = [shipping.appendExecution(writer, payer), shipping.appendExecution(writer, payer)];
    // As another machine meets it: of another boot, and cut in a frame that was just being written.
    const copy = join(copies, String(epoch));
    cpSync(join(spoolDirectory, String(epoch)), copy, { recursive: true });
    const owner = JSON.parse(readFileSync(join(copy, 'owner.json'), 'utf8')) as object;
    writeFileSync(join(copy, 'owner.json'), JSON.stringify({ ...owner, bootId: 'another-boot' }));
    const segment = join(copy, segmentFileName(1));
    truncateSync(segment, readFileSync(segment).length - 7);
    const process = { machine: 'elsewhere', kind: 'gateway', pid: 7, startedAtMs: 1, version: '1', epoch } as const;
    const beat = (atMs: number, isLast: boolean) =>
      writeBeat(postgres, process, { atMs, isLast, counts: {}, gauges: {} as never });
    await beat(Date.now(), false);

    assert.equal(await ship(copies), 1);
    assert.equal((await readEpoch(epoch))?.is_open, true);
    ids.push(shipping.appendExecution(writer, payer));
    assert.equal(await ship(spoolDirectory), 0, 'its own machine ships what it writes on');
    assert.deepEqual(await readEpoch(epoch), { is_open: true, leased: String(await leftOf(epoch)), posted: 3 });
    // Once it has said that it ends, or was silent for long, the copy is what is left of it.
    await writer.close();
    await beat(Date.now() + 5_000, true);
    assert.equal(await ship(copies), 0);
    assert.equal((await readEpoch(epoch))?.is_open, false);
    assert.equal(await ship(spoolDirectory), 0);
    const rows = await shipping.readGenerations(postgres);
    for (const id of ids) assert.equal(rows.find((row) => row.id === id)?.billing_status, 'final');
    assert.deepEqual(readdirSync(spoolDirectory), []);
    assert.deepEqual(await findBrokenInvariants(postgres), []);
  });
});

async function leftOf(epoch: number): Promise<string> {
  const { rows } = await postgres.query<{ left: string }>(
    'SELECT outstanding::text AS left FROM leases WHERE epoch = $1',
    [epoch],
  );
  return rows[0]?.left ?? '0';
}
