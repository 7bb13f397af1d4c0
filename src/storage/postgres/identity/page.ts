// Pages of lists in order of creation. Each page continues after the last item of the previous one, whatever was added
// meanwhile.

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

/**
 * One page of what `statement` lists, which has the ids as `$4` and following; null stands for any. `not_found`: one of
 * them cannot be an id.
 */
export async function readPage<Row extends { id: string; created_us: string }, T>(
  postgres: PostgresClient,
  params: PageParams,
  statement: Statement,
  ids: readonly (string | null)[],
  toItem: (row: Row) => T,
): Promise<Page<T> | Refused> {
  const start = startPage(params);
  if (isRefused(start)) return start;
  if (!areUuids(...ids.filter((id) => id !== null))) return NOT_FOUND;
  const { rows } = await postgres.query<Row>(statement, [...start.values, ...ids]);
  return endPage(rows, start.limit, toItem);
}

function endPage<Row extends { id: string; created_us: string }, T>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => T,
): Page<T> {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  const nextCursor =
    last === undefined ? null : Buffer.from(`${last.created_us}.${last.id}`, 'latin1').toString('base64url');
  return { items: rows.slice(0, limit).map(toItem), nextCursor };
}
