// The connections of jobs to the embedded ClickHouse: facts are inserted while it is being opened, and while a report
// is read.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ClickHouseLink } from '../../jobs/clickhouse-link.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import type { RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { CLICKHOUSE_MIGRATIONS } from '../support/clickhouse.ts';
import { generateFacts } from '../support/fact-generator.ts';
import { openTestDatabase, silentLog } from '../support/postgres.ts';

async function startLink(context: TestContext, log: Log = silentLog): Promise<ClickHouseLink> {
  const database = await openTestDatabase();
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-clickhouse-'));
  const link = new ClickHouseLink({
    location: { directory },
    migrationsDirectory: CLICKHOUSE_MIGRATIONS,
    postgres: database.postgres,
    databaseUrl: database.url,
    sharesDataDirectory: false,
    log,
    clock: systemClock,
  });
  // In this order: the engine writes until it is closed, and one that stays open keeps out the next.
  context.after(async () => {
    await link.close();
    rmSync(directory, { recursive: true, force: true });
    await database.close();
  });
  return link;
}

test('facts that are there before the engine is wait for it, and are no fault', async (context) => {
  const link = await startLink(context);
  const { facts } = generateFacts(2, 5);
  await Promise.all([link.insert(facts, 'batch'), link.probe()]);
  const rows = 'SELECT toUInt32(uniqExact(id)) AS facts FROM request_facts';
  assert.deepEqual(await selectRows(link.client(), rows), [{ facts: new Set(facts.map(({ id }) => id)).size }]);
});

test('a fact that ClickHouse refuses for its values keeps no other one away, and is named', async (context) => {
  const told: unknown[] = [];
  const log = { ...silentLog, error: (fields: object) => told.push(fields) };
  const link = await startLink(context, log as unknown as Log);
  const { facts } = generateFacts(3, 40);
  const wrong = [
    { ...(facts[3] as RequestFact), organizationId: 'no UUID' },
    { ...(facts[4] as RequestFact), requestBytes: -1 },
    { ...(facts[17] as RequestFact), status: 1.5 },
  ];
  const ids = [facts[3], facts[4], facts[17]].map((fact) => (fact as RequestFact).id);
  const good = facts.filter(({ id }) => !ids.includes(id));
  const mixed = facts.map((fact, index) => ({ 3: wrong[0], 4: wrong[1], 17: wrong[2] })[index] ?? fact);
  await link.insert(mixed, 'mixed');
  assert.deepEqual(told, [{ codes: ['376', '72', '27'], executions: ids }]);
  const rows = 'SELECT toUInt32(uniqExact(id)) AS facts FROM request_facts';
  assert.deepEqual(await selectRows(link.client(), rows), [{ facts: new Set(good.map(({ id }) => id)).size }]);
  await link.insert(wrong.slice(0, 1), 'alone');
  assert.deepEqual(told.slice(1), [{ codes: ['376'], executions: ids.slice(0, 1) }]);
});

test('where more than a hundred facts are refused, or it is not for their values, the insert fails', async (context) => {
  const link = await startLink(context);
  const { facts } = generateFacts(4, 120);
  const wrong = facts.map((fact) => ({ ...fact, requestBytes: -1 }));
  await assert.rejects(link.insert(wrong, 'wrong'), { type: 'CANNOT_PARSE_NUMBER' });
  await link.client().command({ query: 'RENAME TABLE request_facts TO elsewhere' });
  await assert.rejects(link.insert(facts.slice(0, 2), 'away'), { type: 'UNKNOWN_TABLE' });
});

test('an insert does not wait for the statement of a report, and the next one has its facts', async (context) => {
  const link = await startLink(context);
  await link.tried;
  const reader = link.reader();
  assert.ok(reader !== null);
  const ended: string[] = [];
  const { facts } = generateFacts(1, 20);
  // As long as the engine lets one sleep.
  const reading = selectRows(reader, 'SELECT sleep(3)').then(() => ended.push('report'));
  await link.insert(facts, 'batch').then(() => ended.push('insert'));
  const rows = 'SELECT toUInt32(uniqExact(id)) AS facts FROM request_facts';
  assert.deepEqual(await selectRows(link.client(), rows), [{ facts: new Set(facts.map(({ id }) => id)).size }]);
  await reading;
  assert.deepEqual(ended, ['insert', 'report']);
  assert.deepEqual(await selectRows(reader, rows), await selectRows(link.client(), rows));
  await link.close();
  assert.equal(link.reader(), null);
});

test('two statements of a report run at once', async (context) => {
  const link = await startLink(context);
  await link.tried;
  const reader = link.reader();
  const { secondConnection } = reader ?? {};
  assert.ok(reader !== null && secondConnection !== undefined);
  const ended: string[] = [];
  const reading = selectRows(reader, 'SELECT sleep({seconds:UInt8})', { seconds: 2 }).then(() => ended.push('first'));
  assert.deepEqual(await selectRows(secondConnection, 'SELECT {value:String} AS value', { value: 'second' }), [
    { value: 'second' },
  ]);
  ended.push('second');
  await reading;
  assert.deepEqual(ended, ['second', 'first']);
});
