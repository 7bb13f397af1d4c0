// Every request of a listing as CSV, the latest first, a page at a time: an export holds no more in memory than a page.

import type { ClickHouseReader } from '../clickhouse.ts';
import { LISTED_COLUMNS } from '../route-columns.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { listRequests, readRequestCursor } from './list-requests.ts';
import type { ReportParams } from './report-params.ts';
import { ENTRY_NAMES, type RequestEntry } from './request-entry.ts';

const PAGE_ENTRIES = 5_000;

const ROUTE_MEMBERS = [...LISTED_COLUMNS.map(({ member }) => member), 'baseline_cost_usd'] as const;

type Column = readonly [name: string, value: (entry: RequestEntry) => CsvValue];

/** As an entry has its names, with the members of its route behind them. */
const COLUMNS: readonly Column[] = [
  ...ENTRY_NAMES.filter((name) => name !== 'model_route').map(
    (name): Column => [name, (entry) => csvValue(entry[name])],
  ),
  ['routed', ({ model_route }) => model_route !== null],
  ...ROUTE_MEMBERS.map((member): Column => [`route_${member}`, ({ model_route }) => model_route?.[member] ?? null]),
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
