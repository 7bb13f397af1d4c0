// Reads how much of a principal's usage limits is used (spec 4.4, GET /v1/usage/limits/current).

import type { CurrentLimit } from '../../../domain/identity/current-limit.ts';
import type { PrincipalLimit } from '../../../domain/identity/principal.ts';
import type { PostgresClient } from '../pool.ts';

interface UseRow {
  readonly id: string;
  readonly used: string;
  readonly lent: string;
  readonly resets_at_ms: number | null;
}

/**
 * Counts like take_limit_lease. A budget pool or rate window that was never used counts as zero. Open requests are
 * counted from the posted executions in the limit's scope. A grant of a rate is labelled with the last second in which
 * it may be used. It counts as lent until two seconds later, when gateways have returned what they did not use.
 */
const CURRENT_USE = `
  WITH period AS (
    SELECT wanted.id, wanted.kind, date_trunc(wanted.time_window, clock_timestamp(), 'UTC') AS starts,
           ('1 ' || wanted.time_window)::interval AS length
      FROM unnest($1::uuid[], $2::text[], $3::text[]) AS wanted (id, kind, time_window)
  )
  SELECT period.id,
         CASE WHEN kind = 'budget' THEN coalesce(pool.used, 0)
              WHEN kind = 'concurrent_requests' THEN (
                SELECT count(*) FROM generations open JOIN usage_limits scope ON scope.id = period.id
                 WHERE open.billing_status = 'pending' AND open.organization_id = scope.organization_id
                   AND (scope.team_id IS NULL OR open.team_id = scope.team_id)
                   AND (scope.user_id IS NULL OR open.user_id = scope.user_id)
                   AND (scope.api_key_id IS NULL OR open.api_key_id = scope.api_key_id)
                   AND (scope.model IS NULL OR open.model = scope.model))
              ELSE coalesce(rate.used, 0)
         END AS used,
         CASE WHEN kind = 'budget' THEN coalesce(pool.leased, 0) ELSE coalesce(rate.lent, 0) END AS lent,
         (extract(epoch FROM (starts AT TIME ZONE 'UTC' + length) AT TIME ZONE 'UTC') * 1000)::double precision
           AS resets_at_ms
    FROM period
    LEFT JOIN limit_pools pool ON kind = 'budget' AND pool.limit_id = period.id AND pool.period_start = period.starts
    LEFT JOIN LATERAL (
      SELECT sum(cell) AS used, sum(cell) FILTER (WHERE label >= now_second - 2) AS lent
        FROM (SELECT floor(extract(epoch FROM clock_timestamp())) AS now_second) present, rate_windows,
             unnest(cells) WITH ORDINALITY AS counted (cell, position),
             LATERAL (SELECT first_label + position - 1 AS label) labelled
       WHERE limit_id = period.id AND label >= now_second - 60) rate ON true`;

export async function readCurrentLimits(
  postgres: PostgresClient,
  { limits }: { readonly limits: readonly PrincipalLimit[] },
): Promise<readonly CurrentLimit[]> {
  if (limits.length === 0) return [];
  const { rows } = await postgres.query<UseRow>(CURRENT_USE, [
    limits.map(({ id }) => id),
    limits.map(({ kind }) => kind),
    limits.map(({ window }) => window),
  ]);
  const usesById = new Map(rows.map((row) => [row.id, row]));
  return limits.map((limit) => {
    const use = usesById.get(limit.id);
    const used = BigInt(use?.used ?? 0);
    const left = limit.amount - used;
    const lent = BigInt(use?.lent ?? 0);
    return { ...limit, used, lent, remaining: left < 0n ? 0n : left, resetsAtMs: use?.resets_at_ms ?? null };
  });
}
