// Writes down the present form of records: a spool with every field, as the checkout that `--from` names writes it, and
// what that checkout's own jobs make of it in Postgres and ClickHouse. Later versions read the same spool and must come
// to the same (record-forms.test.ts). Once for each RECORD_FORM, and never again:
// `node test/integration/record-forms/write-form.ts --from ../checkout --form 1`.

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { ExecutionEnd, ExecutionStart } from '../../../src/records/execution-record.ts';
import { describeForm, type Shipped, withoutChance } from './recorded-form.ts';

const { values } = parseArgs({ options: { from: { type: 'string' }, form: { type: 'string' } } });
if (values.from === undefined || values.form === undefined) throw new Error('give --from CHECKOUT and --form NUMBER');
const checkout = resolve(values.from);

const [{ FIELD_ROWS, USAGE_ROWS }, { MetricsRegistry }, { createShipper }, { SpoolWriter }, { systemClock }] =
  await Promise.all([
    load<typeof import('../../../src/records/fields.ts')>('src/records/fields.ts'),
    load<typeof import('../../../src/platform/metrics.ts')>('src/platform/metrics.ts'),
    load<typeof import('../../../jobs/shipping/ship-spool.ts')>('jobs/shipping/ship-spool.ts'),
    load<typeof import('../../../src/storage/spool/spool-writer.ts')>('src/storage/spool/spool-writer.ts'),
    load<typeof import('../../../src/platform/clock.ts')>('src/platform/clock.ts'),
  ]);
const [
  { insertFacts },
  { selectRows },
  { openTestClickHouse },
  { openTestDatabase, silentLog },
  { createPayer, createEpoch, readWallet },
] = await Promise.all([
  load<typeof import('../../../src/storage/clickhouse/facts.ts')>('src/storage/clickhouse/facts.ts'),
  load<typeof import('../../../src/storage/clickhouse/clickhouse.ts')>('src/storage/clickhouse/clickhouse.ts'),
  load<typeof import('../../support/clickhouse.ts')>('test/support/clickhouse.ts'),
  load<typeof import('../../support/postgres.ts')>('test/support/postgres.ts'),
  load<typeof import('../../support/shipping.ts')>('test/support/shipping.ts'),
]);

function load<Module>(path: string): Promise<Module> {
  return import(join(checkout, path)) as Promise<Module>;
}

const EXECUTIONS = 8;
const HOLD = '1000000';
const ADMITTED_MS = Date.UTC(2026, 10, 26, 9);

/** Any, the same in each run. */
function uuid(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function startOf(number: number, payer: { organizationId: string; walletId: string }): ExecutionStart {
  return {
    ...payer,
    id: uuid(`execution ${number}`),
    admittedAtMs: ADMITTED_MS + number * 1_000,
    teamId: number % 2 === 0 ? uuid('team') : null,
    userId: uuid('user'),
    apiKeyId: uuid('key'),
    api: number % 3 === 0 ? 'messages' : 'chat_completions',
    requestedModel: 'auto',
    model: 'openai/gpt-x',
    provider: 'openai',
    providerModel: 'gpt-x-2026-05-01',
    priceVersion: '3',
    streamed: number % 2 === 1,
    clientRequestId: `form "${number}" é\u2028`,
    tags: number % 2 === 1 ? ['one', 'ünd'] : [],
    authorizedAmount: HOLD,
    requestBytes: 512 + number,
    ...(number < 4
      ? {}
      : {
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          credentialId: uuid('credential'),
          budgets: [uuid('budget')],
          route: {
            requested: 'auto',
            tier: 'simple',
            reason: 'classified',
            confidence: 0.75,
            cached: false,
            task: 'code',
            correction: false,
            sticky: true,
            baseline_model: 'openai/gpt-y',
            policy: 'default',
            policy_version: 2,
            tier_rank: 0,
            escalated: false,
            rejected: [],
            session: 'session-hash',
            conversation: 'conversation-hash',
            turn: 'turn-hash',
          },
        }),
  };
}

function endOf(number: number, admittedAtMs: number): ExecutionEnd {
  return {
    endedAtMs: admittedAtMs + 250,
    outcome: 'completed',
    status: 200,
    errorCode: null,
    usage: {
      inputTokens: 120 + number,
      cachedInputTokens: 20,
      cacheWriteTokens: number < 4 ? null : 7,
      outputTokens: 30,
      reasoningTokens: number < 4 ? null : 11,
      images: null,
    },
    usageSource: number === 3 ? 'counted' : 'reported',
    billingStatus: 'final',
    ratedCost: `${427_500 + number}`,
    charge: `${427_500 + number}`,
    suspense: '0',
    latencyMs: 250.5,
    ttftMs: number % 2 === 1 ? 40.25 : null,
    responseBytes: 2_048,
    ...(number < 4
      ? {}
      : {
          usageDetails: { service_tier: 'flex', cache_write_1h_tokens: 5, calls: { web_search: 2 } },
          baselineCost: '999999999999',
          truncated: true,
          guardrail: 'no-cards',
          screening: {
            input: {
              action: 'masked',
              findings: [{ policy: 'cards', version: 2, rule: 'no-cards', entity: 'card', action: 'mask', count: 3 }],
            },
            output: { action: 'none', not_scanned: ['too_large'] },
          },
          ownFailures: [{ credential_id: uuid('credential'), reason: 'refused', status: 401 }],
          attempts: [
            { provider: 'openai', started_ms: 1, ended_ms: 12, cause: 'overloaded', status: 503 },
            { provider: 'other', started_ms: 12, ended_ms: null, cause: null, status: null },
          ],
          fee: '17',
          budgetUse: '17',
          responseId: `resp_${number}`,
          itemIds: [`item_${number}`],
        }),
  };
}

/** A provider refused it. */
function refusedEnd(admittedAtMs: number): ExecutionEnd {
  return {
    ...endOf(0, admittedAtMs),
    usage: null,
    outcome: 'provider_refused',
    status: 429,
    errorCode: 'rate_limited',
    usageSource: null,
    billingStatus: 'cancelled',
    ratedCost: null,
    charge: '0',
    ttftMs: null,
  };
}

const target = join(import.meta.dirname, values.form);
const directory = mkdtempSync(join(tmpdir(), 'tollgate-form-'));
const database = await openTestDatabase();
const clickhouse = await openTestClickHouse();
try {
  const payer = await createPayer(database.postgres);
  const epoch = await createEpoch(database.postgres, payer, EXECUTIONS);
  const writer = SpoolWriter.open({
    directory,
    epoch,
    segmentBytesMax: 1 << 20,
    fsyncIntervalMs: 5,
    log: silentLog,
    clock: systemClock,
  });
  for (let number = 0; number < EXECUTIONS; number += 4) {
    const batch = writer.takeBatch();
    const starts = [0, 1, 2, 3].map((index) => startOf(number + index, payer));
    for (const start of starts) batch.append(start, null);
    for (const [index, start] of starts.entries())
      batch.append(start, index === 2 ? refusedEnd(start.admittedAtMs) : endOf(number + index, start.admittedAtMs));
    batch.endFrame();
    writer.appendBatch(batch);
  }
  await writer.close();
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const name of ['owner.json', '00000001.spool', 'closed'])
    writeFileSync(join(target, name), readFileSync(join(writer.directory, name)));
  await createShipper({
    spoolDirectory: directory,
    postgres: database.postgres,
    facts: { insert: (facts, name) => insertFacts(clickhouse.client, facts, name), probe: async () => undefined },
    log: silentLog,
    clock: systemClock,
    metrics: new MetricsRegistry(),
  }).drainOnce();
  const { rows } = await database.postgres.query<{ row: Record<string, unknown> }>(
    'SELECT to_jsonb(generations) AS row FROM generations ORDER BY id',
  );
  const shipped: Shipped = {
    ...payer,
    executions: EXECUTIONS,
    balance: String((await readWallet(database.postgres, payer.walletId)).balance),
    generations: rows.map(({ row }) => withoutChance(row)),
    facts: await selectRows(clickhouse.client, 'SELECT * FROM request_facts FINAL ORDER BY id'),
  };
  const description = describeForm(FIELD_ROWS, USAGE_ROWS);
  writeFileSync(join(target, 'shipped.json'), `${JSON.stringify(shipped, null, 1)}\n`);
  writeFileSync(join(target, 'fields.json'), `${JSON.stringify(description, null, 1)}\n`);
  process.stdout.write(`${target}: ${shipped.generations.length} rows, ${shipped.facts.length} facts\n`);
} finally {
  await clickhouse.close();
  await database.close();
  rmSync(directory, { recursive: true, force: true });
}
