// Every request of a listing as CSV, the latest first, a page at a time: an export holds no more in memory than a page.

import type { ClickHouseReader } from '../clickhouse.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { listRequests, readRequestCursor } from './list-requests.ts';
import type { ReportParams } from './report-params.ts';
import { ENTRY_NAMES, type EntryRoute, type RequestEntry } from './request-entry.ts';

const PAGE_ENTRIES = 5_000;

const ROUTE_COLUMNS: readonly (readonly [string, (route: EntryRoute | null) => CsvValue])[] = [
  ['routed', (route) => route !== null],
  ['route_tier', (route) => route?.tier ?? null],
  ['route_classified_tier', (route) => route?.classified_tier ?? null],
  ['route_reason', (route) => route?.reason ?? null],
  ['route_confidence', (route) => route?.confidence ?? null],
  ['route_cached', (route) => route?.cached ?? null],
  ['route_task', (route) => route?.task ?? null],
  ['route_picked_by', (route) => route?.picked_by ?? null],
  ['route_correction', (route) => route?.correction ?? null],
  ['route_previous_model', (route) => route?.previous_model ?? null],
  ['route_previous_tier', (route) => route?.previous_tier ?? null],
  ['route_sticky', (route) => route?.sticky ?? null],
  ['route_baseline_model', (route) => route?.baseline_model ?? null],
  ['route_baseline_cost_usd', (route) => route?.baseline_cost_usd ?? null],
];

type Column = readonly [name: string, value: (entry: RequestEntry) => CsvValue];

/** As an entry has its names, with the members of its route behind them. */
const COLUMNS: readonly Column[] = [
  ...ENTRY_NAMES.filter((name) => name !== 'model_route').map(
    (name): Column => [name, (entry) => csvValue(entry[name])],
  ),
  ...ROUTE_COLUMNS.map(([name, value]): Column => [name, ({ model_route }) => value(model_route)]),
];

/** No tag holds a space (spec 8). */
function csvValue(value: unknown): CsvValue {
  return Array.isArray(value) ? value.join(' ') : (value as CsvValue);
}

export async function* exportRequestsCsv(client: ClickHouseReader, params: ReportParams): AsyncGenerator<string> {
  yield csvLine(COLUMNS.map(([name]) => name));
  let after: string | null = null;
  do {
    const page = await listRequests(client, {
      ...params,
      limit: PAGE_ENTRIES,
      cursor: after === null ? null : readRequestCursor(after),
    });
    if (page.data.length > 0)
      yield page.data.map((entry) => csvLine(COLUMNS.map(([, value]) => value(entry)))).join('');
    after = page.nextCursor;
  } while (after !== null);
}
