// One recorded request as listings show it (DESIGN 6), with its routing decision (spec 2.4): made from the table of
// fields.

import {
  FIELD_ROWS,
  type FIELDS,
  type FieldName,
  type USAGE_FIELDS,
  USAGE_ROWS,
  type ValueOf,
} from '../../../records/fields.ts';
import { SPEND } from './metrics.ts';

/** Fields that do not apply are absent. */
export interface EntryRoute {
  readonly requested: string;
  readonly tier?: string;
  readonly classified_tier?: string;
  readonly reason: string;
  readonly confidence?: number;
  readonly cached: boolean;
  readonly task?: string;
  readonly picked_by?: string;
  readonly correction: boolean;
  readonly previous_model?: string;
  readonly previous_tier?: string;
  readonly sticky: boolean;
  readonly baseline_model?: string;
  readonly baseline_cost_usd?: string;
}

type ListedField = {
  [Name in FieldName]: (typeof FIELDS)[Name]['places'] extends { readonly listed: string } ? Name : never;
}[FieldName];
type ListedName<Name extends ListedField> = (typeof FIELDS)[Name]['places'] extends {
  readonly listed: infer Listed extends string;
}
  ? Listed
  : never;
type ListedFields = {
  readonly [Name in ListedField as ListedName<Name>]: Name extends keyof OtherValues
    ? OtherValues[Name]
    : ValueOf<Name>;
};
type ListedCounts = {
  readonly [Name in keyof typeof USAGE_FIELDS as (typeof USAGE_FIELDS)[Name] extends {
    readonly listed: infer Listed extends string;
  }
    ? Listed
    : never]: number | null;
};

/** What a listing says otherwise than the record. */
interface OtherValues {
  readonly admittedAtMs: string;
  /** null: the request was refused before anybody was to serve it. */
  readonly provider: string | null;
  readonly latencyMs: number | null;
  /** null: the client named its model. */
  readonly route: EntryRoute | null;
}

export type RequestEntry = ListedFields &
  ListedCounts & {
    /** Dollars; null: not known. */
    readonly cost: string | null;
    readonly currency: 'USD';
  };

export type EntryRow = Readonly<Record<string, unknown>> & RouteRow;

interface EntryValue {
  readonly name: string;
  /** Its columns under names that hide none which a condition may use; null: it has none. */
  readonly select: string | null;
  readonly value: (row: EntryRow) => unknown;
}

const ROUTE_SELECT = `routed, route_tier, route_classified_tier, route_reason, route_confidence, route_cached,
  route_task,
  route_picked_by, route_correction, route_previous_model, route_previous_tier, route_sticky, route_baseline_model,
  toString(route_baseline_cost) AS baseline_cost`;

function entryValue(name: string, column: string, value = (stored: unknown): unknown => stored): EntryValue {
  return { name, select: `${column} AS entry_${name}`, value: (row) => value(row[`entry_${name}`]) };
}

function entryValuesOf([field, { type, places }]: (typeof FIELD_ROWS)[number]): EntryValue[] {
  const { listed, clickhouse = '' } = places;
  if (type.kind === 'usage') {
    const counts = USAGE_ROWS.filter(([, count]) => count.listed !== undefined);
    return [
      ...counts.map(([, count]) => entryValue(count.listed ?? '', count.clickhouse ?? '')),
      entryValue('cost', `toString(${SPEND})`),
      { name: 'currency', select: null, value: () => 'USD' },
    ];
  }
  if (listed === undefined) return [];
  if (type.kind === 'route')
    return [{ name: listed, select: ROUTE_SELECT, value: (row) => (row.routed ? entryRoute(row) : null) }];
  if (type.kind === 'uuid') return [entryValue(listed, `toString(${clickhouse})`)];
  if (type.kind === 'instant')
    return [entryValue(listed, `toUnixTimestamp64Milli(${clickhouse})`, (ms) => new Date(ms as number).toISOString())];
  if (field === 'provider') return [entryValue(listed, clickhouse, (provider) => (provider === '' ? null : provider))];
  return [entryValue(listed, clickhouse)];
}

const ENTRY_VALUES = FIELD_ROWS.flatMap(entryValuesOf);

/** Names of an entry, in its order. */
export const ENTRY_NAMES = ENTRY_VALUES.map(({ name }) => name) as readonly (keyof RequestEntry)[];

/** Select list of an entry. */
export const ENTRY_COLUMNS = ENTRY_VALUES.flatMap(({ select }) => (select === null ? [] : [select])).join(', ');

interface RouteRow {
  readonly entry_requested_model: string;
  readonly routed: boolean;
  readonly route_tier: string;
  readonly route_classified_tier: string;
  readonly route_reason: string;
  readonly route_confidence: number | null;
  readonly route_cached: boolean;
  readonly route_task: string;
  readonly route_picked_by: string;
  readonly route_correction: boolean;
  readonly route_previous_model: string;
  readonly route_previous_tier: string;
  readonly route_sticky: boolean;
  readonly route_baseline_model: string;
  readonly baseline_cost: string | null;
}

export function requestEntry(row: EntryRow): RequestEntry {
  return Object.fromEntries(ENTRY_VALUES.map(({ name, value }) => [name, value(row)])) as unknown as RequestEntry;
}

function entryRoute(row: RouteRow): EntryRoute {
  return {
    requested: row.entry_requested_model,
    ...named('tier', row.route_tier),
    ...named('classified_tier', row.route_classified_tier),
    reason: row.route_reason,
    ...(row.route_confidence === null ? {} : { confidence: row.route_confidence }),
    cached: row.route_cached,
    ...named('task', row.route_task),
    ...named('picked_by', row.route_picked_by),
    correction: row.route_correction,
    ...named('previous_model', row.route_previous_model),
    ...named('previous_tier', row.route_previous_tier),
    sticky: row.route_sticky,
    ...named('baseline_model', row.route_baseline_model),
    ...(row.baseline_cost === null ? {} : { baseline_cost_usd: row.baseline_cost }),
  };
}

/** In the facts, what does not apply is the empty string. */
function named<Name extends string>(name: Name, value: string): { readonly [name in Name]?: string } {
  return value === '' ? {} : ({ [name]: value } as { readonly [name in Name]: string });
}
