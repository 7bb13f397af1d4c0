// Reads pages of lists in order of creation. That order never changes, so each page continues after the last item of
// the previous one, whatever was added, removed or changed meanwhile.

import { areUuids } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient, Statement } from '../pool.ts';
import { invalid, NOT_FOUND } from './change.ts';

/** The columns that every listed row must have, for a table named `t`. */
export const PAGE_COLUMNS = `t.id, (extract(epoch FROM t.created_at) * 1000000)::bigint AS created_us`;
/** Condition, order and limit, with `$1` (microseconds), `$2` (id) and `$3` (one more than the page size). */
export const PAGE_CONDITION = `($1::bigint IS NULL OR (t.created_at,
  t.id) > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::uuid))`;
export const PAGE_ORDER = 'ORDER BY t.created_at, t.id LIMIT $3';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 200;
/** The most bytes of a page's rows as text, since the event loop handles them. A first row that is longer is kept. */
const PAGE_BYTES_MAX = 524_288;

interface PageStart {
  readonly limit: number;
  /** The values of `$1`, `$2` and `$3`. */
  readonly values: readonly [string | null, string | null, number];
}

function startPage({ limit = LIMIT_DEFAULT, cursor = null }: PageParams): PageStart | Refused {
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    return invalid('limit', `must be from 1 to ${LIMIT_MAX}`);
  if (cursor === null) return { limit, values: [null, null, limit + 1] };
  const match = /^(\d{1,16})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(
    Buffer.from(cursor, 'base64url').toString('latin1'),
  );
  if (match?.[1] === undefined || match[2] === undefined)
    return invalid('cursor', 'must be the next_cursor of an earlier page');
  return { limit, values: [match[1], match[2], limit + 1] };
}

type Order = 'oldest first' | 'newest first';

const PAGE_BEGINS = `SELECT * FROM (
  SELECT page.*, row_number() OVER listed AS page_place, count(*) OVER ()::integer AS page_found,
         sum(octet_length(page::text)) OVER listed AS page_bytes FROM (`;
const PAGE_ENDS: Readonly<Record<Order, string>> = {
  'oldest first': ') page WINDOW listed AS (ORDER BY created_us, id)) counted ',
  'newest first': ') page WINDOW listed AS (ORDER BY created_us DESC, id DESC)) counted ',
};
const WITHIN_BYTES = `WHERE page_place = 1 OR page_bytes <= ${PAGE_BYTES_MAX} ORDER BY page_place`;

/** `statement` without the rows that would make its page too large. `page_found` counts those rows too. */
function withinBytes(statement: Statement, order: Order): Statement {
  const within = (text: string): string => PAGE_BEGINS + text + PAGE_ENDS[order] + WITHIN_BYTES;
  return typeof statement === 'string' ? within(statement) : { ...statement, text: within(statement.text) };
}

/**
 * One page of the rows of `statement`, which takes `ids` as `$4` and following; null stands for any id. `not_found`:
 * one of `ids` is not a UUID.
 */
export async function readPage<Row extends ListedRow, T>(
  postgres: PostgresClient,
  params: PageParams,
  statement: Statement,
  ids: readonly (string | null)[],
  toItem: (row: Row) => T,
  order: Order = 'oldest first',
): Promise<Page<T> | Refused> {
  const start = startPage(params);
  if (isRefused(start)) return start;
  if (!areUuids(...ids.filter((id) => id !== null))) return NOT_FOUND;
  const values = [...start.values, ...ids];
  const { rows } = await postgres.query<Row & Counted>(withinBytes(statement, order), values);
  return endPage(rows, start.limit, toItem);
}

interface ListedRow {
  readonly id: string;
  readonly created_us: string;
}

/** When a listed row was created, in whole epoch milliseconds. */
export function createdAtMs({ created_us }: Pick<ListedRow, 'created_us'>): number {
  return Math.floor(Number(created_us) / 1000);
}

interface Counted {
  readonly page_found: number;
}

function endPage<Row extends ListedRow, T>(
  rows: readonly (Row & Counted)[],
  limit: number,
  toItem: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const nextCursor =
    last === undefined || last.page_found === shown.length
      ? null
      : Buffer.from(`${last.created_us}.${last.id}`, 'latin1').toString('base64url');
  return { items: shown.map(toItem), nextCursor };
}
