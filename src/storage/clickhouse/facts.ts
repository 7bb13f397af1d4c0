// Writes request facts, idempotently by execution id, and counts them by hour.

import type { TerminalRecord } from '../../records/execution-record.ts';
import type { Kind } from '../../records/field-types.ts';
import { FIELD_ROWS, type FieldName, USAGE_ROWS } from '../../records/fields.ts';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';
import { dollars, picoOf } from './decimal-text.ts';
import { ROUTE_COLUMNS } from './route-columns.ts';
import { SCREENING_COLUMNS } from './screening-columns.ts';

/**
 * A terminal record as a fact. A corrected execution is inserted again with a higher version, and only the highest
 * version counts.
 */
export interface RequestFact extends Omit<TerminalRecord, 'type' | 'latencyMs'> {
  readonly version: number;
  readonly latencyMs: number | null;
}

/** The versions of facts that come from the spool. A correction of a pending fact must have a higher version. */
const PENDING_FACT_VERSION = 1;
export const SETTLED_FACT_VERSION = 2;

export function factOf(record: TerminalRecord): RequestFact {
  return { ...record, version: record.billingStatus === 'pending' ? PENDING_FACT_VERSION : SETTLED_FACT_VERSION };
}

type FactField = keyof RequestFact & FieldName;
type Column = readonly [name: string, value: (fact: RequestFact) => unknown];

/** How a field's value is written to its column, by kind. */
const VALUES: Readonly<Record<Kind, (value: unknown) => unknown>> = {
  ...ofKinds(['uuid', 'text', 'status', 'bytes', 'instant'], (value) => value ?? null),
  ...ofKinds(['uuids', 'texts'], (value) => ((value ?? []) as string[]).map((text) => text.toWellFormed())),
  flag: (value) => value ?? false,
  duration: (value) => (value == null ? null : Math.round(value as number)),
  amount: (value) => (value == null ? null : dollars(value as string)),
  details: () => null,
  failures: () => null,
  attempts: () => null,
  // Usage, route and screening have columns of their own below.
  usage: () => null,
  route: () => null,
  screening: () => null,
};

function ofKinds<const Some extends Kind>(
  kinds: readonly Some[],
  value: (value: unknown) => unknown,
): Record<Some, (value: unknown) => unknown> {
  return Object.fromEntries(kinds.map((kind) => [kind, value])) as Record<Some, (value: unknown) => unknown>;
}

/** Columns that belong together. All facts that do not fill the group have the same values in it. */
interface ColumnGroup {
  readonly columns: readonly Column[];
  readonly isFilledBy: (fact: RequestFact) => boolean;
}

/** The table's columns in the order of an insert. Most facts fill the first group alone. */
const COLUMN_GROUPS: readonly ColumnGroup[] = [
  {
    columns: [
      ['version', (fact) => fact.version],
      ...fieldColumns(false).map(([, column]) => column),
      ...USAGE_ROWS.flatMap(([count, { clickhouse }]): Column[] =>
        clickhouse === undefined ? [] : [[clickhouse, (fact) => fact.usage?.[count] ?? null]],
      ),
    ],
    isFilledBy: () => true,
  },
  ...fieldColumns(true).map(([field, column]) => ({
    columns: [column],
    isFilledBy: ({ [field]: value }: RequestFact) => value != null && value !== false,
  })),
  { columns: ROUTE_COLUMNS, isFilledBy: ({ route }) => route != null },
  { columns: SCREENING_COLUMNS, isFilledBy: ({ screening }) => screening != null },
];
const COLUMN_NAMES = COLUMN_GROUPS.flatMap(({ columns }) => columns.map(([name]) => name)).join(', ');

function fieldColumns(isOptional: boolean): [FactField, Column][] {
  return FIELD_ROWS.flatMap(([field, { type, places, isOptional: isOfOptional }]): [FactField, Column][] => {
    if (places.clickhouse === undefined || isOfOptional !== isOptional) return [];
    const valueOf = VALUES[type.kind];
    return [[field, [places.clickhouse, (fact) => valueOf(fact[field])]]];
  });
}

/**
 * Inserts facts; inserting them again changes nothing. `batch` identifies exactly these facts and is the insert's
 * deduplication token. The statement's text contains each column as an array of values. Measured, this is an eighth
 * faster than rows as arrays, which cost two thirds of rows as objects. `optimize_on_insert = 0` keeps the engine from
 * merging versions of a fact within the insert, a third of its work. Readers merge versions anyway, because versions of
 * a fact can come in different inserts.
 */
export async function insertFacts(
  client: ClickHouseClient,
  facts: readonly RequestFact[],
  batch: string,
): Promise<void> {
  if (facts.length === 0) return;
  const columns = COLUMN_GROUPS.flatMap(({ columns: ofGroup, isFilledBy }) => {
    const column = facts.some(isFilledBy) ? columnOf : unfilledColumnOf;
    return ofGroup.map(([, value]) => column(facts, value));
  });
  const statement = `
    INSERT INTO request_facts (${COLUMN_NAMES})
    SETTINGS async_insert = 0, optimize_on_insert = 0,
      insert_deduplicate = 1, insert_deduplication_token = '${checkedToken(batch)}'
    FORMAT JSONCompactColumns\n`;
  await client.command({ query: `${statement}[${columns.join(',')}]` });
}

function columnOf(facts: readonly RequestFact[], value: Column[1]): string {
  return JSON.stringify(facts.map((fact) => wellFormed(value(fact))));
}

/**
 * Writes the same value for every fact. Leaving the column out would cost ClickHouse more, because it evaluates the
 * expression of each default: a third of an insert of 2,000 facts (measured).
 */
function unfilledColumnOf(facts: readonly RequestFact[], value: Column[1]): string {
  const text = columnOf(facts.slice(0, 1), value).slice(1, -1);
  return `[${text}${`,${text}`.repeat(facts.length - 1)}]`;
}

/**
 * Replaces lone surrogates. One of them in any column would make ClickHouse refuse the whole batch every time, and text
 * of clients can reach several columns.
 */
function wellFormed(value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

/**
 * Selects facts by the time of admission. Facts that ended at `endedBeforeMs` or later are left out, since they may not
 * have arrived yet.
 */
export interface FactWindow {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly endedBeforeMs: number;
}

/** Totals of the executions admitted in an hour, in one of the two stores. Money in pico-dollars. */
export interface ExecutionHour {
  /** Start of the hour in epoch milliseconds. */
  readonly hourMs: number;
  readonly executions: number;
  readonly pending: number;
  readonly charged: bigint;
}

const IN_WINDOW = `admitted_at >= fromUnixTimestamp64Milli({from_ms: Int64}, 'UTC')
  AND admitted_at < fromUnixTimestamp64Milli({until_ms: Int64}, 'UTC')
  AND ended_at < fromUnixTimestamp64Milli({ended_before_ms: Int64}, 'UTC')`;

function windowParameters(window: FactWindow): Record<string, number> {
  return { from_ms: window.fromMs, until_ms: window.untilMs, ended_before_ms: window.endedBeforeMs };
}

/** The hours that have facts, first to last. Each execution counts once, in its last version. */
export async function countFactsPerHour(client: ClickHouseClient, window: FactWindow): Promise<ExecutionHour[]> {
  const rows = await selectRows<{ hour_ms: string; executions: string; pending: string; charged: string }>(
    client,
    `SELECT toString(toUnixTimestamp(toStartOfHour(admitted_at)) * 1000) AS hour_ms,
            toString(count()) AS executions,
            toString(countIf(billing_status = 'pending')) AS pending,
            toString(sum(ifNull(total_cost, 0))) AS charged
     FROM request_facts FINAL
     WHERE ${IN_WINDOW}
     GROUP BY hour_ms ORDER BY min(admitted_at)`,
    windowParameters(window),
  );
  return rows.map((row) => ({
    hourMs: Number(row.hour_ms),
    executions: Number(row.executions),
    pending: Number(row.pending),
    charged: picoOf(row.charged),
  }));
}

/** What the ledger and the facts must agree on for each execution. */
export interface ExecutionState {
  readonly billingStatus: string;
  readonly charge: bigint | null;
}

export async function readFactStates(
  client: ClickHouseClient,
  window: FactWindow,
): Promise<Map<string, ExecutionState>> {
  const rows = await selectRows<{ id: string; billing_status: string; total_cost: string | null }>(
    client,
    `SELECT toString(id) AS id, billing_status, toString(total_cost) AS total_cost FROM request_facts FINAL
      WHERE ${IN_WINDOW}`,
    windowParameters(window),
  );
  return new Map(
    rows.map((row) => [
      row.id,
      { billingStatus: row.billing_status, charge: row.total_cost === null ? null : picoOf(row.total_cost) },
    ]),
  );
}

/** The token is part of the statement's text, so only harmless characters are allowed. */
function checkedToken(batch: string): string {
  if (!/^[A-Za-z0-9:,._-]+$/.test(batch)) throw new Error(`not a batch name: ${batch}`);
  return batch;
}
