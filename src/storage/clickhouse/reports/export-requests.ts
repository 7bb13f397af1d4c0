// Exports every request of a listing as CSV, latest first, one page at a time, so that only a page is in memory.

import { type Named, type NameRows, ownerOf } from '../../../domain/reports/owners.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { LISTED_COLUMNS } from '../route-columns.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { listRequests, readRequestCursor } from './list-requests.ts';
import type { ReportParams } from './report-params.ts';
import { ENTRY_NAMES, type RequestEntry } from './request-entry.ts';

const PAGE_ENTRIES = 5_000;

const ROUTE_MEMBERS = [...LISTED_COLUMNS.map(({ member }) => member), 'baseline_cost_usd'] as const;

type Column = readonly [name: string, value: (entry: Named<RequestEntry>) => CsvValue];

/** The members of an entry in order, with an owner's name after its id, and then the members of its route. */
const COLUMNS: readonly Column[] = [
  ...ENTRY_NAMES.filter((name) => name !== 'model_route').flatMap((name): Column[] => {
    const owner = ownerOf(name);
    const value: Column = [name, (entry) => csvValue(entry[name])];
    return owner === null ? [value] : [value, [owner, (entry) => entry[owner] ?? null]];
  }),
  ['routed', ({ model_route }) => model_route !== null],
  ...ROUTE_MEMBERS.map((member): Column => [`route_${member}`, ({ model_route }) => model_route?.[member] ?? null]),
];

/** Tags cannot contain spaces (spec 8), so a list is joined with them. */
function csvValue(value: unknown): CsvValue {
  return Array.isArray(value) ? value.join(' ') : (value as CsvValue);
}

export async function* exportRequestsCsv(
  client: ClickHouseReader,
  params: ReportParams,
  nameRows: NameRows,
): AsyncGenerator<string> {
  yield csvLine(COLUMNS.map(([name]) => name));
  let after: string | null = null;
  do {
    const page = await listRequests(client, {
      ...params,
      limit: PAGE_ENTRIES,
      cursor: after === null ? null : readRequestCursor(after),
    });
    const entries = await nameRows(page.data);
    if (entries.length > 0) yield entries.map((entry) => csvLine(COLUMNS.map(([, value]) => value(entry)))).join('');
    after = page.nextCursor;
  } while (after !== null);
}
