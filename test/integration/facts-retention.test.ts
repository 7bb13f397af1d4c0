// FACTS_RETENTION_DAYS: whole months go once their last day is old enough; the rest stays, and the comparison with the
// ledger leaves it so.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { dropOldFacts } from '../../jobs/tasks/drop-old-facts.ts';
import { type ClickHouseClient, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { silentLog } from '../support/silent-log.ts';

const INSTANTS = [
  '2025-12-31T23:59:59.999Z',
  '2026-01-01T00:00:00.000Z',
  '2026-01-31T23:59:59.999Z',
  '2026-02-01T00:00:00.000Z',
  '2026-03-14T12:00:00.000Z',
];

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
});
after(() => clickhouse.close());

beforeEach(async () => {
  await clickhouse.clear();
  const facts = INSTANTS.map((at) => factOf(terminalRecord(executionStart({ admittedAtMs: Date.parse(at) }))));
  await insertFacts(clickhouse.client, facts, `facts-${Math.random()}`);
});

async function kept(): Promise<string[]> {
  const rows = await selectRows<{ at: string }>(
    clickhouse.client,
    'SELECT toString(toUnixTimestamp64Milli(admitted_at)) AS at FROM request_facts ORDER BY admitted_at',
  );
  return rows.map(({ at }) => new Date(Number(at)).toISOString());
}

function runAt(now: string, factsRetentionDays: number | null, client: ClickHouseClient = clickhouse.client) {
  const clock = { nowMs: () => Date.parse(now), monotonicMs: () => 0 };
  const context = { clickhouse: () => client, sealedDays: () => null, factsRetentionDays, clock, log: silentLog };
  return dropOldFacts(context as unknown as JobContext);
}

describe('facts that are kept for a time', () => {
  test('without a setting stay for ever', async () => {
    assert.deepEqual(await runAt('2099-01-01T00:00:00Z', null), { dropped: [] });
    assert.deepEqual(await kept(), INSTANTS);
  });

  test('go by whole months, once the last day of one is older', async () => {
    // 31 days after the end of January.
    assert.deepEqual(await runAt('2026-03-03T23:59:59.999Z', 31), { dropped: ['202512'] });
    assert.deepEqual(await kept(), INSTANTS.slice(1));
    assert.deepEqual(await runAt('2026-03-04T00:00:00Z', 31), { dropped: ['202601'] });
    assert.deepEqual(await kept(), INSTANTS.slice(3));
    assert.deepEqual(await runAt('2026-03-04T00:00:00Z', 31), { dropped: [] });
  });

  test('several months at once, and never the present one', async () => {
    assert.deepEqual(await runAt('2026-03-31T00:00:00Z', 7), { dropped: ['202512', '202601', '202602'] });
    assert.deepEqual(await kept(), INSTANTS.slice(4));
  });

  test('on a cluster are the cluster’s: nothing is dropped, and the run says so', async () => {
    const asked: string[] = [];
    const distributed = {
      query: async ({ query }: { query: string }) => {
        asked.push(query);
        return { json: async () => [{ engine: 'Distributed' }] };
      },
    } as unknown as ClickHouseClient;
    await assert.rejects(runAt('2099-01-01T00:00:00Z', 7, distributed), /on a cluster/);
    assert.equal(asked.length, 1);
  });
});
