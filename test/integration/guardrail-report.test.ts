// The report on guardrails against ClickHouse: counted by rule, entity, key and model, also for requests that were
// refused, and of the asked organization alone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ScreeningReport } from '../../src/domain/guardrails/screening-report.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { guardrailReport } from '../../src/storage/clickhouse/reports/guardrails.ts';
import type { ReportFilters } from '../../src/storage/clickhouse/reports/report-params.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';

const DAY = Date.UTC(2026, 10, 20);
const ACME = 'a2f7b6de-7a1e-4f0e-b9b7-0d7c1b1f0001';
const OTHER = 'a2f7b6de-7a1e-4f0e-b9b7-0d7c1b1f0002';
const KEY = 'a2f7b6de-7a1e-4f0e-b9b7-0d7c1b1f00aa';

const found = { policy: 'default', version: 2, rule: 'cards', entity: 'card' } as const;
const BLOCKED: ScreeningReport = { input: { action: 'blocked', findings: [{ ...found, action: 'block', count: 1 }] } };
const MASKED: ScreeningReport = {
  input: { action: 'masked', findings: [{ ...found, action: 'mask', count: 3 }], not_scanned: ['attachment'] },
  output: { action: 'none', not_scanned: ['attachment', 'timeout'] },
};

let clickhouse: TestClickHouse;
let made = 0;
before(async () => {
  clickhouse = await openTestClickHouse();
  const fact = (organizationId: string, screening: ScreeningReport | null, changes: Partial<TerminalRecord> = {}) => {
    made += 1;
    const start = executionStart({ admittedAtMs: DAY + made * 1_000, organizationId, apiKeyId: KEY });
    return factOf(terminalRecord(start, { screening, ...changes }));
  };
  await insertFacts(
    clickhouse.client,
    [
      fact(ACME, BLOCKED, { outcome: 'refused', model: '' }),
      fact(ACME, MASKED, { model: 'sim/small' }),
      fact(ACME, MASKED, { model: 'sim/small' }),
      fact(ACME, { input: { action: 'none' } }, { model: 'sim/small' }),
      fact(ACME, null),
      fact(OTHER, MASKED),
    ],
    '1:1:0-9',
  );
});
after(() => clickhouse.close());

test('rules, entities, stages, actions, models and keys with their counts', async () => {
  const report = await guardrailReport(clickhouse.client, {
    scope: { organizationId: ACME },
    filters: {},
    window: { fromMs: DAY, untilMs: DAY + 86_400_000, granularity: 'day', timeZone: 'UTC' },
  });
  const common = { policy: 'default', rule: 'cards', entity: 'card', stage: 'input', api_key_id: KEY };
  assert.deepEqual(report, {
    screened: 4,
    blocked: 1,
    not_scanned: [
      { reason: 'attachment', requests: 2 },
      { reason: 'timeout', requests: 2 },
    ],
    rows: [
      { ...common, action: 'mask', model: 'sim/small', requests: 2, findings: 6 },
      { ...common, action: 'block', model: '', requests: 1, findings: 1 },
    ],
  });
});

test('of one key, of a model, or of a person alone', async () => {
  const of = async (filters: ReportFilters) => {
    const { screened, rows } = await guardrailReport(clickhouse.client, {
      scope: { organizationId: ACME },
      filters,
      window: { fromMs: DAY, untilMs: DAY + 86_400_000, granularity: 'day', timeZone: 'UTC' },
    });
    return [screened, rows.length];
  };
  assert.deepEqual(await of({ apiKeyId: KEY }), [4, 2]);
  assert.deepEqual(await of({ apiKeyId: OTHER }), [0, 0]);
  assert.deepEqual(await of({ apiKeyId: KEY, model: 'sim/small' }), [3, 1]);
  assert.deepEqual(await of({ userId: OTHER }), [0, 0]);
});
