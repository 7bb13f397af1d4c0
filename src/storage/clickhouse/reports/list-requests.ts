// Lists recorded requests, latest first, by pages. A cursor names the last entry of its page, so requests recorded
// meanwhile do not shift the next page.

import { HOUR_MS } from '../../../platform/durations.ts';
import { executionIdTimeMs } from '../../../platform/execution-id.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import {
  checkedConditions,
  conditionParameters,
  type ReportParams,
  type ReportScope,
  type ReportWindow,
} from './report-params.ts';
import { ENTRY_COLUMNS, type EntryRow, type RequestEntry, requestEntry } from './request-entry.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/** The entry after which a page begins. */
export interface RequestCursor {
  readonly admittedAtMs: number;
  readonly id: string;
}

export interface RequestsParams extends ReportParams {
  readonly limit: number;
  /** null: begin with the latest. */
  readonly cursor: RequestCursor | null;
}

export interface RequestPage {
  readonly data: readonly RequestEntry[];
  /** null: there are no more. */
  readonly nextCursor: string | null;
}

const CURSOR = /^(\d{1,15})\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** null: the text is not a valid cursor. */
export function readRequestCursor(text: string): RequestCursor | null {
  const [, admittedAt, id] = CURSOR.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  return admittedAt === undefined || id === undefined ? null : { admittedAtMs: Number(admittedAt), id };
}

function writeCursor({ admittedAtMs, id }: RequestCursor): string {
  return Buffer.from(`${admittedAtMs}.${id}`, 'latin1').toString('base64url');
}

export async function listRequests(client: ClickHouseReader, asked: RequestsParams): Promise<RequestPage> {
  const params: RequestsParams = { ...asked, showsRefused: true };
  const keys = await selectKeys(client, params);
  const shown = keys.slice(0, params.limit);
  const last = shown.at(-1);
  const isLast = keys.length <= params.limit || last === undefined;
  return {
    data: await selectEntries(client, params, shown),
    nextCursor: isLast ? null : writeCursor({ admittedAtMs: last.admitted_ms, id: last.entry_id }),
  };
}

/** Ids contain the instant of admission. The margin covers a clock that was set back, while ids run ahead of it. */
const ID_MARGIN_MS = 300_000;

/** One request; null: it does not exist, or is outside the scope. */
export async function findRequest(
  client: ClickHouseReader,
  scope: ReportScope,
  id: string,
): Promise<RequestEntry | null> {
  const timeMs = executionIdTimeMs(id);
  if (timeMs === null) return null;
  const [fromMs, untilMs] = [timeMs - ID_MARGIN_MS, timeMs + ID_MARGIN_MS];
  const window: ReportWindow = { fromMs, untilMs, granularity: 'day', timeZone: 'UTC' };
  const params = { scope, filters: {}, window, showsRefused: true } as const;
  const [row] = await selectReport<EntryRow>(
    client,
    `SELECT ${ENTRY_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)} AND id = {id:UUID}
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), id },
  );
  return row === undefined ? null : requestEntry(row);
}

interface EntryKey {
  readonly entry_id: string;
  readonly organization: string;
  readonly admitted_ms: number;
}

/**
 * How far before the page's start to search, step by step: usually the first step already has a page, and the window
 * can be long.
 */
const STRETCHES_MS = [2 * HOUR_MS, 24 * HOUR_MS, 240 * HOUR_MS, Number.POSITIVE_INFINITY];

/** Finds the entries of a page and one more, reading only narrow columns. */
async function selectKeys(client: ClickHouseReader, params: RequestsParams): Promise<EntryKey[]> {
  const { window, cursor, limit } = params;
  const untilMs = cursor === null ? window.untilMs : Math.min(window.untilMs, cursor.admittedAtMs + 1);
  const keys: EntryKey[] = [];
  let endMs = untilMs;
  for (const stretchMs of STRETCHES_MS) {
    const fromMs = Math.max(window.fromMs, untilMs - stretchMs);
    if (fromMs >= endMs) continue;
    const stretch = { ...params, window: { ...window, fromMs, untilMs: endMs } };
    keys.push(...(await selectStretch(client, stretch, limit + 1 - keys.length)));
    if (keys.length > limit) break;
    endMs = fromMs;
  }
  return keys;
}

/** Entries of the same instant are in ClickHouse's order of UUIDs, which is arbitrary but fixed. */
async function selectStretch(client: ClickHouseReader, params: RequestsParams, limit: number): Promise<EntryKey[]> {
  const { cursor } = params;
  return selectReport<EntryKey>(
    client,
    `SELECT toString(id) AS entry_id, toString(organization_id) AS organization,
      toUnixTimestamp64Milli(admitted_at) AS admitted_ms
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)} AND ({cursor_ms:Int64} < 0
       OR toUnixTimestamp64Milli(admitted_at) < {cursor_ms:Int64} OR id < {cursor_id:UUID})
     ORDER BY admitted_at DESC, id DESC
     LIMIT {limit:UInt32}
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), cursor_ms: cursor?.admittedAtMs ?? -1, cursor_id: cursor?.id ?? NO_ID, limit },
  );
}
const NO_ID = '00000000-0000-0000-0000-000000000000';

/**
 * A parameter is part of the URL, where a server accepts 128 KiB (http_max_field_value_size); this many ids take 90 KB.
 */
const ENTRIES_AT_ONCE = 2_000;

async function selectEntries(
  client: ClickHouseReader,
  params: RequestsParams,
  keys: readonly EntryKey[],
): Promise<RequestEntry[]> {
  const entries: RequestEntry[] = [];
  for (let start = 0; start < keys.length; start += ENTRIES_AT_ONCE) {
    entries.push(...(await selectSome(client, params, keys.slice(start, start + ENTRIES_AT_ONCE))));
  }
  return entries;
}

/**
 * Reads the wide rows of exactly these entries; organizations and instants narrow the read to the few granules that
 * contain them.
 */
async function selectSome(
  client: ClickHouseReader,
  params: RequestsParams,
  keys: readonly EntryKey[],
): Promise<RequestEntry[]> {
  const [first, last] = [keys[0], keys.at(-1)];
  if (first === undefined || last === undefined) return [];
  const ofPage = {
    ...params,
    window: { ...params.window, fromMs: last.admitted_ms, untilMs: first.admitted_ms + 1 },
  };
  const rows = await selectReport<EntryRow>(
    client,
    `SELECT ${ENTRY_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(ofPage)} AND organization_id IN {organizations:Array(UUID)} AND id IN {ids:Array(UUID)}
     ORDER BY admitted_at DESC, id DESC
     ${REPORT_SETTINGS}`,
    {
      ...conditionParameters(ofPage),
      organizations: [...new Set(keys.map(({ organization }) => organization))],
      ids: keys.map(({ entry_id }) => entry_id),
    },
  );
  return rows.map(requestEntry);
}
