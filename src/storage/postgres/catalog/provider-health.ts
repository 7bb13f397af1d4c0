// Stores what gateways observe of providers. Each process writes one row for each provider, and reading merges the rows
// of all processes.

import {
  type ProviderFailure,
  type ProviderHealth,
  type ProviderPause,
  type TokenHealth,
  UNKNOWN_HEALTH,
} from '../../../domain/models/provider-health.ts';
import type { PostgresClient } from '../pool.ts';
import { readTokenHealth } from './provider-tokens.ts';

export interface ObservedRow extends Omit<ProviderHealth, 'token'> {
  readonly providerId: string;
}

/** A process with a paused provider writes at least this often, so pauses in older rows no longer count. */
const PAUSES_COUNT_SECONDS = 30;
/** Rows of ended processes are kept for this long, because they may have the last success. */
const KEPT_DAYS = 7;

export async function writeProviderHealth(
  client: PostgresClient,
  epoch: number,
  rows: readonly ObservedRow[],
): Promise<void> {
  const values = rows.map((row) => ({
    provider_id: row.providerId,
    last_success_at: timeOf(row.lastSuccessAtMs),
    last_failure_at: timeOf(row.lastFailureAtMs),
    last_failure: row.lastFailure,
    last_failure_status: row.lastFailureStatus,
    latency_ms: row.latencyMs,
    pauses: row.pauses.map(({ model, untilMs, isForAll }) => ({ model, until: timeOf(untilMs), for_all: isForAll })),
  }));
  await client.query(
    `WITH old AS (
       DELETE FROM provider_health WHERE observed_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}))
     INSERT INTO provider_health AS h (provider_id, epoch, observed_at, last_success_at, last_failure_at, last_failure,
       last_failure_status, latency_ms, pauses)
     SELECT p.id, $1, clock_timestamp(), r.last_success_at, r.last_failure_at, r.last_failure, r.last_failure_status,
            r.latency_ms, r.pauses
       FROM jsonb_to_recordset($2) AS r (provider_id text, last_success_at timestamptz, last_failure_at timestamptz,
              last_failure text, last_failure_status integer, latency_ms double precision, pauses jsonb)
       JOIN providers p ON p.id = r.provider_id
     ON CONFLICT (provider_id, epoch) DO UPDATE
        SET (observed_at, last_success_at, last_failure_at, last_failure, last_failure_status, latency_ms, pauses)
          = (excluded.observed_at, excluded.last_success_at, excluded.last_failure_at, excluded.last_failure,
             excluded.last_failure_status, excluded.latency_ms, excluded.pauses)`,
    [epoch, JSON.stringify(values)],
  );
}

function timeOf(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

interface HealthRow extends Record<string, unknown> {
  readonly provider_id: string;
  readonly success_ms: number | null;
  readonly failure_ms: number | null;
  readonly last_failure: ProviderFailure | null;
  readonly last_failure_status: number | null;
  readonly latency_ms: number | null;
  readonly pauses: readonly (readonly { model: string | null; until: string; for_all: boolean }[])[] | null;
}

const MERGED = `
  SELECT provider_id, (extract(epoch FROM max(last_success_at)) * 1000)::double precision AS success_ms,
         (extract(epoch FROM max(last_failure_at)) * 1000)::double precision AS failure_ms,
         (array_agg(last_failure ORDER BY last_failure_at DESC NULLS LAST))[1] AS last_failure,
         (array_agg(last_failure_status ORDER BY last_failure_at DESC NULLS LAST))[1] AS last_failure_status,
         (array_agg(latency_ms ORDER BY last_success_at DESC NULLS LAST))[1] AS latency_ms,
         jsonb_agg(pauses) FILTER (WHERE pauses <> '[]'
           AND observed_at > clock_timestamp() - make_interval(secs => ${PAUSES_COUNT_SECONDS})) AS pauses
    FROM provider_health GROUP BY provider_id`;

export async function readProviderHealth(client: PostgresClient): Promise<ReadonlyMap<string, ProviderHealth>> {
  const { rows } = await client.query<HealthRow>(MERGED);
  const tokens = await readTokenHealth(client);
  const ofTokens = [...tokens].map(([id, token]) => [id, { ...UNKNOWN_HEALTH, token }] as const);
  return new Map([
    ...ofTokens,
    ...rows.map((row) => [row.provider_id, healthOf(row, tokens.get(row.provider_id) ?? null)] as const),
  ]);
}

function healthOf(row: HealthRow, token: TokenHealth | null): ProviderHealth {
  return {
    token,
    lastSuccessAtMs: row.success_ms,
    lastFailureAtMs: row.failure_ms,
    lastFailure: row.last_failure,
    lastFailureStatus: row.last_failure_status,
    latencyMs: row.latency_ms,
    pauses: longest((row.pauses ?? []).flat()),
  };
}

/** The longest pause of each model, since several processes may have paused it. */
function longest(found: readonly { model: string | null; until: string; for_all: boolean }[]): ProviderPause[] {
  const byModel = new Map<string, ProviderPause>();
  for (const { model, until, for_all: isForAll } of found) {
    const key = JSON.stringify([model, isForAll]);
    const untilMs = Date.parse(until);
    if (untilMs > (byModel.get(key)?.untilMs ?? 0)) byModel.set(key, { model, untilMs, isForAll });
  }
  return [...byModel.values()];
}
