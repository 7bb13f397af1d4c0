// Sums up the recorded usage of calls to providers, by day, model, key and price, to compare it with the providers'
// bills. It reads the ledger, because facts lack details such as the service tier (usage_details).

import { type Meters, NO_METERS } from '../../../domain/invoices/meters.ts';
import type { RecordedUsage } from '../../../domain/invoices/recorded-usage.ts';
import type { PostgresClient } from '../pool.ts';
import { idRange } from './generation-facts.ts';

export interface UsageParams {
  /** The starts of the days in ascending order, followed by the end of the last day. */
  readonly daysMs: readonly number[];
  readonly providers: readonly string[];
  /** Input sizes in tokens, in ascending order, from which a price has other rates. */
  readonly sizes: readonly number[];
}

/** Few requests are open for longer than this. The provider bills such a request a day later than we expect. */
const MARGIN_MS = 3_600_000;

const DETAIL = (name: string): string => `usage_details ->> '${name}'`;
const USAGE_SOURCE = `CASE WHEN ended_at IS NULL THEN 'open' WHEN usage_source IS NULL THEN 'unseen'
  ELSE usage_source END`;
const DAYS = '$5::timestamptz[]';
const SUMS: Readonly<Record<keyof Meters, string>> = {
  input: `CASE WHEN api <> 'images' THEN input_tokens - coalesce(cached_input_tokens, 0)
    - coalesce(cache_write_tokens, 0) END`,
  cached_input: `CASE WHEN api <> 'images' THEN cached_input_tokens END`,
  cache_write: `cache_write_tokens - coalesce((${DETAIL('cache_write_1h_tokens')})::bigint, 0)`,
  cache_write_1h: `(${DETAIL('cache_write_1h_tokens')})::bigint`,
  output: `CASE WHEN api <> 'images' THEN output_tokens END`,
  image: `CASE WHEN api = 'images' THEN images END`,
  web_search: `(usage_details #>> '{calls,web_search}')::bigint`,
};
const METER_NAMES = Object.keys(SUMS) as (keyof Meters)[];

// Token counts are free at every provider. Requests that we refused or that got an error are on no bill.
const STATEMENT = `
  SELECT width_bucket(admitted_at, ${DAYS}) - 1 AS day, provider, provider_model AS "providerModel",
    credential_id::text AS "credentialId", price_version AS "priceVersion", ${DETAIL('service_tier')} AS tier,
    ${DETAIL('speed')} AS speed, ${DETAIL('inference_geo')} AS geo,
    width_bucket(coalesce(input_tokens, 0), $6::bigint[]) AS size, ${USAGE_SOURCE} AS "usageSource",
    CASE WHEN usage_source IS NULL THEN outcome END AS outcome,
    width_bucket(admitted_at - interval '1 minute', ${DAYS})
      <> width_bucket(coalesce(ended_at, admitted_at) + interval '1 minute', ${DAYS}) AS "isAtEdge",
    count(*)::integer AS requests, coalesce(sum(rated_cost), 0)::text AS cost,
    (count(*) FILTER (WHERE usage_source IS NOT NULL AND rated_cost IS NULL))::integer AS unrated,
    (count(*) FILTER (WHERE suspense > 0))::integer AS suspected, coalesce(sum(suspense), 0)::text AS suspense,
    ${METER_NAMES.map((meter) => `coalesce(sum(${SUMS[meter]}), 0)::text AS "meter_${meter}"`).join(', ')}
  FROM generations
  WHERE id >= $1 AND id < $2 AND admitted_at >= to_timestamp($3::double precision / 1000)
    AND admitted_at < to_timestamp($4::double precision / 1000)
    AND provider = ANY ($7::text[]) AND api <> 'count_tokens'
    AND (usage_source IS NOT NULL OR outcome IS NULL
      OR outcome NOT IN ('refused', 'connect_failed', 'provider_refused', 'provider_failed'))
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12`;

type Row = Omit<RecordedUsage, 'meters' | 'inputFrom' | 'cost' | 'suspense'> & {
  readonly size: number;
  readonly cost: string;
  readonly suspense: string;
} & Readonly<Record<`meter_${keyof Meters}`, string>>;

/**
 * Runs one statement for each day, so that none loads the ledger for long. The hours before the first and after the
 * last day only yield usage near the edge of a day, which the provider may have billed on one of the days.
 */
export async function* readRecordedUsage(
  postgres: PostgresClient,
  { daysMs, providers, sizes }: UsageParams,
): AsyncGenerator<RecordedUsage> {
  const thresholds = [0, ...sizes];
  const [first = 0] = daysMs;
  const last = daysMs.at(-1) ?? 0;
  const bounds = [first - MARGIN_MS, ...daysMs, last + MARGIN_MS];
  for (const [index, fromMs] of bounds.slice(0, -1).entries()) {
    const untilMs = bounds[index + 1] ?? fromMs;
    const { rows } = await postgres.query<Row & Record<string, unknown>>(STATEMENT, [
      ...idRange(fromMs, untilMs),
      fromMs,
      untilMs,
      daysMs.map((ms) => new Date(ms)),
      thresholds,
      providers,
    ]);
    for (const row of rows) {
      const isInMargin = row.day < 0 || row.day >= daysMs.length - 1;
      if (!isInMargin || row.isAtEdge) yield toUsage(row, thresholds);
    }
  }
}

function toUsage({ size, cost, suspense, ...row }: Row, thresholds: readonly number[]): RecordedUsage {
  const meters = Object.fromEntries(METER_NAMES.map((meter) => [meter, Number(row[`meter_${meter}`])]));
  return {
    day: row.day,
    provider: row.provider,
    providerModel: row.providerModel,
    credentialId: row.credentialId,
    priceVersion: row.priceVersion,
    tier: row.tier,
    speed: row.speed,
    geo: row.geo,
    inputFrom: thresholds[size - 1] ?? 0,
    usageSource: row.usageSource,
    outcome: row.outcome,
    isAtEdge: row.isAtEdge,
    requests: row.requests,
    meters: { ...NO_METERS, ...meters },
    cost: BigInt(cost),
    unrated: row.unrated,
    suspected: row.suspected,
    suspense: BigInt(suspense),
  };
}

/** Which price versions were used on these days. */
export async function findUsedPrices(
  postgres: PostgresClient,
  { daysMs, providers }: Pick<UsageParams, 'daysMs' | 'providers'>,
): Promise<readonly string[]> {
  const fromMs = daysMs[0] ?? 0;
  const untilMs = daysMs.at(-1) ?? 0;
  const { rows } = await postgres.query<{ version: string }>(
    `SELECT DISTINCT price_version AS version FROM generations
      WHERE id >= $1 AND id < $2 AND provider = ANY ($3::text[]) AND price_version IS NOT NULL`,
    [...idRange(fromMs, untilMs), providers],
  );
  return rows.map(({ version }) => version);
}

/** The names under which usage at a vendor is recorded: providers with its address, and its preset for own keys. */
export async function readVendorProviders(
  postgres: PostgresClient,
  addressPattern: string,
  preset: string,
): Promise<readonly string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    `SELECT id FROM providers WHERE base_url ~ $1
      UNION SELECT kind FROM own_keys WHERE kind = $2 ORDER BY id`,
    [addressPattern, preset],
  );
  return rows.map(({ id }) => id);
}

/** The names under which the ledger can have usage now: those of the catalog, and the kinds of own keys. */
export async function readProviderNames(postgres: PostgresClient): Promise<readonly string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    'SELECT id FROM providers UNION SELECT kind FROM own_keys ORDER BY id',
  );
  return rows.map(({ id }) => id);
}
