// A recorded request as listings show it, with its routing decision (spec 2.4): generated from the table of record
// fields.

import type { ModelRoute } from '../../../domain/routing/model-route.ts';
import {
  FIELD_ROWS,
  type FIELDS,
  type FieldName,
  type USAGE_FIELDS,
  USAGE_PROBLEM,
  USAGE_ROWS,
  type ValueOf,
} from '../../../records/fields.ts';
import { LISTED_COLUMNS, type ListedMember } from '../route-columns.ts';
import { IS_ERROR, SPEND } from './metrics.ts';
import { CREDENTIAL_SOURCE } from './report-params.ts';

/** Members that do not apply are absent. */
export type EntryRoute = Pick<ModelRoute, 'requested' | ListedMember | 'baseline_cost_usd'>;

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

/** Fields whose type in a listing differs from the record's. */
interface OtherValues {
  readonly admittedAtMs: string;
  /** null: the request was refused before its model was read. */
  readonly model: string | null;
  readonly requestedModel: string | null;
  /** null: the request was refused before a provider was chosen. */
  readonly provider: string | null;
  readonly latencyMs: number | null;
  /** null: the client named a model itself. */
  readonly route: EntryRoute | null;
}

export type RequestEntry = ListedFields &
  ListedCounts & {
    /** Dollars; null: unknown. */
    readonly cost: string | null;
    readonly currency: 'USD';
    /** null: no provider was called. */
    readonly credential_source: 'service' | 'own' | null;
  };

export type EntryRow = Readonly<Record<string, unknown>>;

interface EntryValue {
  readonly name: string;
  /** Select expressions, whose aliases must not hide a column that a condition may use; null: the value needs none. */
  readonly select: string | null;
  readonly value: (row: EntryRow) => unknown;
}

const ROUTE_SELECT = `routed, ${LISTED_COLUMNS.map(({ name }) => name).join(', ')},
  toString(route_baseline_cost) AS baseline_cost`;

/** `total_cost` of the generation record where somebody pays, else the catalog price of the usage. */
const COST = `if(isNotNull(wallet_id) AND billing_status = 'not_billed', '0', toString(${SPEND}))`;

function entryValue(name: string, column: string, value = (stored: unknown): unknown => stored): EntryValue {
  return { name, select: `${column} AS entry_${name}`, value: (row) => value(row[`entry_${name}`]) };
}

function entryValuesOf([field, { type, places }]: (typeof FIELD_ROWS)[number]): EntryValue[] {
  const { listed, clickhouse = '' } = places;
  if (type.kind === 'usage') {
    const counts = USAGE_ROWS.filter(([, count]) => count.listed !== undefined);
    return [
      ...counts.map(([, count]) => entryValue(count.listed ?? '', count.clickhouse ?? '')),
      entryValue('cost', COST),
      { name: 'currency', select: null, value: () => 'USD' },
    ];
  }
  if (listed === undefined) return [];
  if (type.kind === 'route')
    return [{ name: listed, select: ROUTE_SELECT, value: (row) => (row['routed'] === true ? entryRoute(row) : null) }];
  if (field === 'errorCode') return [entryValue(listed, SHOWN_ERROR)];
  if (field === 'credentialId') return [entryValue('credential_source', CREDENTIAL_SOURCE), entryValue(listed, ID)];
  if (type.kind === 'uuid') return [entryValue(listed, `toString(${clickhouse})`)];
  if (type.kind === 'instant')
    return [entryValue(listed, `toUnixTimestamp64Milli(${clickhouse})`, (ms) => new Date(ms as number).toISOString())];
  if (EMPTY_IS_NULL.has(field)) return [entryValue(listed, clickhouse, (text) => (text === '' ? null : text))];
  return [entryValue(listed, clickhouse)];
}

const ID = 'toString(credential_id)';

/** The error code, or else the outcome of a request that counts as an error, so that each of these shows an error. */
const SHOWN_ERROR =
  `multiIf(isNotNull(error_code) AND NOT match(assumeNotNull(error_code), '${USAGE_PROBLEM.source}'), ` +
  `toString(error_code), ${IS_ERROR}, toString(outcome), NULL)`;

/** Fields that are empty where the request was refused before they were known. */
const EMPTY_IS_NULL: ReadonlySet<FieldName> = new Set(['model', 'requestedModel', 'provider']);

const ENTRY_VALUES = FIELD_ROWS.flatMap(entryValuesOf);

/** The names of an entry in their order. */
export const ENTRY_NAMES = ENTRY_VALUES.map(({ name }) => name) as readonly (keyof RequestEntry)[];

/** The select list of an entry. */
export const ENTRY_COLUMNS = ENTRY_VALUES.flatMap(({ select }) => (select === null ? [] : [select])).join(', ');

export function requestEntry(row: EntryRow): RequestEntry {
  return Object.fromEntries(ENTRY_VALUES.map(({ name, value }) => [name, value(row)])) as unknown as RequestEntry;
}

function entryRoute(row: EntryRow): EntryRoute {
  const members = [
    ['requested', row['entry_requested_model']],
    ...LISTED_COLUMNS.map(({ name, member }) => [member, row[name]]),
    ['baseline_cost_usd', row['baseline_cost']],
  ];
  // Facts have an empty string or null where a member does not apply.
  return Object.fromEntries(members.filter(([, value]) => value !== '' && value !== null)) as unknown as EntryRoute;
}
