// Request facts on the embedded ClickHouse: exact values, repeated inserts, corrections, counts per hour, migrations.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import {
  countFactsPerHour,
  factOf,
  insertFacts,
  type RequestFact,
  SETTLED_FACT_VERSION,
} from '../../src/storage/clickhouse/facts.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { CLICKHOUSE_MIGRATIONS, openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { generateFacts } from '../support/fact-generator.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const HOUR_MS = 3_600_000;
const HOUR = Date.UTC(2026, 9, 31, 23);

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
});
beforeEach(() => clickhouse.clear());
after(() => clickhouse.close());

async function facts(columns: string): Promise<Record<string, unknown>[]> {
  return selectRows(clickhouse.client, `SELECT ${columns} FROM request_facts FINAL ORDER BY admitted_at, id`);
}

describe('request facts', () => {
  test('a fact has the record’s values: exact money, nulls kept, text byte for byte', async () => {
    const start = executionStart({
      admittedAtMs: HOUR + 123,
      walletId: 'a2f7b6de-7a1e-4f0e-b9b7-0d7c1b1f0001',
      authorizedAmount: '99999999999999999999999999',
      clientRequestId: `it's "q" \\ \t \u0000 \u{1f600} \ud800`,
      tags: ['a', 'b,c', `d'`],
    });
    const record = terminalRecord(start, {
      ratedCost: '1',
      charge: '1000000000001',
      ttftMs: null,
      latencyMs: 12.7,
      usage: {
        inputTokens: 9_007_199_254_740_991,
        cachedInputTokens: 0,
        cacheWriteTokens: null,
        outputTokens: 30,
        reasoningTokens: null,
        images: null,
      },
    });
    await insertFacts(clickhouse.client, [factOf(record)], '1:1:0-1');
    assert.deepEqual(
      await facts(`toString(id) AS id, toString(authorized_amount) AS authorized, toString(rated_cost) AS rated,
        toString(total_cost) AS cost, toString(suspense) AS suspense,
        client_request_id, tags, toString(admitted_at) AS admitted, toString(tokens_prompt) AS prompt, tokens_cached,
          tokens_cache_write, ttft_ms, latency_ms, team_id, billing_status, version`),
      [
        {
          id: record.id,
          authorized: '99999999999999.999999999999',
          rated: '0.000000000001',
          cost: '1.000000000001',
          suspense: '0',
          client_request_id: `it's "q" \\ \t \u0000 \u{1f600} \ufffd`,
          tags: ['a', 'b,c', `d'`],
          admitted: '2026-10-31 23:00:00.123',
          prompt: '9007199254740991',
          tokens_cached: 0,
          tokens_cache_write: null,
          ttft_ms: null,
          latency_ms: 13,
          team_id: null,
          billing_status: 'final',
          version: SETTLED_FACT_VERSION,
        },
      ],
    );
  });

  test('half of a surrogate pair in a name of the client’s refuses no batch, in whichever column it is', async () => {
    const half = {
      requestedModel: 'a\ud800',
      model: 'b\udfff',
      provider: 'c\ud800',
      providerModel: 'd\ud800',
      api: 'chat_completions',
    } as const;
    await insertFacts(
      clickhouse.client,
      [factOf(terminalRecord(executionStart(half), { errorCode: 'e\ud800' }))],
      '1:1:0-1',
    );
    assert.deepEqual(await facts('requested_model, model, provider, provider_model, error_code'), [
      {
        requested_model: 'a\ufffd',
        model: 'b\ufffd',
        provider: 'c\ufffd',
        provider_model: 'd\ufffd',
        error_code: 'e\ufffd',
      },
    ]);
  });

  test('what a fact says nothing about is the same whether another of its batch says it or none does', async () => {
    const routed = generateFacts(29, 200).facts.find(({ route }) => route != null);
    const full = {
      ...(routed as RequestFact),
      truncated: true,
      guardrail: 'cards',
      credentialId: 'a2f7b6de-7a1e-4f0e-b9b7-0d7c1b1f0002',
      fee: '3',
      baselineCost: '5',
      screening: { input: { action: 'none', not_scanned: ['attachment'] } },
    } as const satisfies RequestFact;
    const start = executionStart({ admittedAtMs: HOUR });
    const [alone, beside] = [start, { ...start, id: start.id.replace(/.$/, (last) => (last === '0' ? '1' : '0')) }];
    await insertFacts(clickhouse.client, [factOf(terminalRecord(alone))], 'alone');
    await insertFacts(clickhouse.client, [factOf(terminalRecord(beside)), full], 'beside');
    const rows = await facts('* EXCEPT id, toString(id) AS id');
    const byId = new Map(rows.map(({ id, ...others }) => [id, others]));
    assert.equal(rows.length, 3);
    assert.deepEqual(byId.get(alone.id), byId.get(beside.id));
    const { truncated, guardrail, credential_id, routed: isRouted, screened_missed } = byId.get(full.id) ?? {};
    assert.deepEqual(
      [truncated, guardrail, credential_id, isRouted, screened_missed],
      [true, 'cards', full.credentialId, true, ['attachment']],
    );
  });

  test('inserted again, whole or in other batches, an execution stays one', async () => {
    const records = Array.from({ length: 50 }, () => factOf(terminalRecord()));
    await insertFacts(clickhouse.client, records, '1:1:0-50');
    await insertFacts(clickhouse.client, records, '1:1:0-50');
    await insertFacts(clickhouse.client, records.slice(10, 30), '1:1:10-30');
    await insertFacts(clickhouse.client, [], '1:1:50-50');
    assert.deepEqual(
      await facts('toString(id) AS id').then((rows) => rows.map((row) => row['id'])),
      records.map((record) => record.id).sort(),
    );
  });

  test('a corrected fact wins over the pending one, in whichever order they come', async () => {
    const start = executionStart({ admittedAtMs: HOUR });
    const pending = factOf(terminalRecord(start, { billingStatus: 'pending', charge: null }));
    const settled = factOf(terminalRecord(start, { billingStatus: 'final', charge: '5' }));
    await insertFacts(clickhouse.client, [pending], 'a');
    await insertFacts(clickhouse.client, [settled], 'b');
    await insertFacts(clickhouse.client, [pending], 'c');
    await clickhouse.client.command({ query: 'OPTIMIZE TABLE request_facts FINAL' });
    assert.deepEqual(await facts('billing_status, toString(total_cost) AS cost'), [
      { billing_status: 'final', cost: '0.000000000005' },
    ]);
  });

  test('of several versions of facts in one insert the highest counts, before anything is merged', async () => {
    const starts = Array.from({ length: 50 }, () => executionStart({ admittedAtMs: HOUR }));
    const pending = starts.map((start) => factOf(terminalRecord(start, { billingStatus: 'pending', charge: null })));
    const settled = starts.map((start) => factOf(terminalRecord(start, { billingStatus: 'final', charge: '5' })));
    await insertFacts(clickhouse.client, [...settled, ...pending, ...settled.slice(0, 20)], 'a');
    const [row] = await facts(`count() OVER () AS executions, uniqExact(id) OVER () AS ids,
      countIf(billing_status = 'final') OVER () AS final, toString(sum(total_cost) OVER ()) AS cost`);
    assert.deepEqual(row, { executions: 50, ids: 50, final: 50, cost: '0.00000000025' });
    assert.deepEqual(
      await countFactsPerHour(clickhouse.client, {
        fromMs: HOUR,
        untilMs: HOUR + HOUR_MS,
        endedBeforeMs: Number.MAX_SAFE_INTEGER,
      }),
      [{ hourMs: HOUR, executions: 50, pending: 0, charged: 250n }],
    );
  });

  test('hours are counted in UTC, each execution once', async () => {
    const at = (ms: number, charge: string | null) =>
      factOf(
        terminalRecord(executionStart({ admittedAtMs: ms }), {
          charge,
          billingStatus: charge === null ? 'pending' : 'final',
        }),
      );
    const records = [
      at(HOUR, '1'),
      at(HOUR + HOUR_MS - 1, null),
      at(HOUR + HOUR_MS, '2000000000000'),
      at(HOUR + 2 * HOUR_MS, '4'),
    ];
    await insertFacts(clickhouse.client, records, 'a');
    await insertFacts(clickhouse.client, records.slice(1), 'b');
    assert.deepEqual(
      await countFactsPerHour(clickhouse.client, {
        fromMs: HOUR,
        untilMs: HOUR + 2 * HOUR_MS,
        endedBeforeMs: HOUR + 9 * HOUR_MS,
      }),
      [
        { hourMs: HOUR, executions: 2, pending: 1, charged: 1n },
        { hourMs: HOUR + HOUR_MS, executions: 1, pending: 0, charged: 2_000_000_000_000n },
      ],
    );
    assert.deepEqual(
      await countFactsPerHour(clickhouse.client, { fromMs: HOUR, untilMs: HOUR + 2 * HOUR_MS, endedBeforeMs: HOUR }),
      [],
    );
  });
});

describe('the embedded ClickHouse', () => {
  test('a migrated database has nothing to apply, and refuses a changed migration', async (context) => {
    assert.deepEqual(await migrateClickHouse(clickhouse.client, CLICKHOUSE_MIGRATIONS), []);
    const changed = temporaryDirectory(context);
    cpSync(CLICKHOUSE_MIGRATIONS, changed, { recursive: true });
    writeFileSync(join(changed, '0001-request-facts.sql'), 'SELECT 1;\n');
    await assert.rejects(migrateClickHouse(clickhouse.client, changed), /was changed after it was applied/);
    const misnamed = temporaryDirectory(context);
    writeFileSync(join(misnamed, '0099-later.sql'), 'SELECT 1;\n');
    await assert.rejects(migrateClickHouse(clickhouse.client, misnamed), /with the next number, 1/);
  });

  test('a second process cannot open the directory, and the first still can be used', { timeout: 60_000 }, async () => {
    const script = `
      const { createChdbConnection } = require('chdb/connection');
      try { createChdbConnection({ path: ${JSON.stringify(clickhouse.directory)} }); } catch { process.exit(42); }`;
    const child = spawnSync(process.execPath, ['-e', script], { cwd: import.meta.dirname, encoding: 'utf8' });
    assert.equal(child.status, 42, child.stderr);
    assert.deepEqual(await selectRows(clickhouse.client, 'SELECT 1 AS one'), [{ one: 1 }]);
  });

  test('what was inserted is there after closing and opening again', async () => {
    await insertFacts(clickhouse.client, [factOf(terminalRecord())], 'a');
    await clickhouse.client.close();
    const client = await clickhouse.connect();
    clickhouse = { ...clickhouse, client };
    assert.deepEqual(await selectRows(client, 'SELECT toString(count()) AS count FROM request_facts'), [
      { count: '1' },
    ]);
    assert.deepEqual(await migrateClickHouse(client, CLICKHOUSE_MIGRATIONS), []);
  });
});
