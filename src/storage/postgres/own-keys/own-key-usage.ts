// Sums up the use of an organization's own provider keys from the ledger: for each key its requests, tokens, rated cost
// and what the platform charged.

import { areUuids } from '../../../domain/identity/names.ts';
import { picoUsd } from '../../../domain/money/pico-usd.ts';
import type { OwnKeyUsage } from '../../../domain/own-keys/own-key-usage.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { tokenSum } from '../../../domain/usage/token-sum.ts';
import { NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

interface UsageRow extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly requests: number;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly rated_cost: string;
  readonly charge: string;
  readonly last_used_ms: number | null;
}

/** Includes removed keys that were used in the period. Requests to count tokens add no tokens, since they used none. */
const USAGE = {
  name: 'own_key_usage',
  text: `
    SELECT k.id, k.name, k.kind, count(g.id)::integer AS requests,
           coalesce(sum(g.input_tokens) FILTER (WHERE g.api <> 'count_tokens'), 0)::text AS input_tokens,
           coalesce(sum(g.output_tokens) FILTER (WHERE g.api <> 'count_tokens'), 0)::text AS output_tokens,
           coalesce(sum(g.rated_cost), 0)::text AS rated_cost, coalesce(sum(g.charge), 0)::text AS charge,
           floor(extract(epoch FROM max(g.admitted_at)) * 1000)::double precision AS last_used_ms
      FROM own_keys k LEFT JOIN generations g ON g.organization_id = k.organization_id AND g.credential_id = k.id
        AND g.admitted_at >= to_timestamp($2::double precision / 1000)
        AND g.admitted_at < to_timestamp($3::double precision / 1000)
     WHERE k.organization_id = $1
     GROUP BY k.id HAVING k.removed_at IS NULL OR count(g.id) > 0
     ORDER BY count(g.id) DESC, k.name, k.id`,
};

export async function readOwnKeyUsage(
  postgres: PostgresClient,
  { organizationId, fromMs, untilMs }: { organizationId: string; fromMs: number; untilMs: number },
): Promise<readonly OwnKeyUsage[] | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const { rows } = await postgres.query<UsageRow>(USAGE, [organizationId, fromMs, untilMs]);
  return rows.map((row) => ({
    keyId: row.id,
    name: row.name,
    kind: row.kind,
    requests: row.requests,
    inputTokens: tokenSum(row.input_tokens),
    outputTokens: tokenSum(row.output_tokens),
    ratedCost: picoUsd(BigInt(row.rated_cost)),
    charged: picoUsd(BigInt(row.charge)),
    lastUsedAtMs: row.last_used_ms,
  }));
}

/** Updates when keys were last used, from executions admitted in the last `minutes`. Returns how many keys changed. */
export async function recordLastUses(postgres: Postgres, minutes: number): Promise<number> {
  const { rowCount } = await postgres.query(
    `UPDATE own_keys SET last_used_at = used.at
       FROM (SELECT credential_id, max(admitted_at) AS at FROM generations
              WHERE credential_id IS NOT NULL AND admitted_at > now() - make_interval(mins => $1)
              GROUP BY credential_id) used
      WHERE own_keys.id = used.credential_id AND own_keys.last_used_at IS DISTINCT FROM used.at
        AND (own_keys.last_used_at IS NULL OR own_keys.last_used_at < used.at)`,
    [minutes],
  );
  return rowCount;
}
