// Reads providers, models and routing policies in the terms of the configuration file, without secrets. Applying a
// file, commands and requests compare and show these states and write them to the audit log.

import type { CatalogKind, CatalogState } from '../../../domain/configuration/difference.ts';
import { priceAt } from '../../../domain/models/dated-prices.ts';
import type { PriceVersion } from '../../../domain/models/price-version.ts';
import type { PostgresClient } from '../pool.ts';
import { PRICE_AS_JSON, type PriceRow, toPrice } from './price-rows.ts';

/** A hash of the sealed key stands for the key. A changed key has other sealed bytes, and so another hash. */
const PROVIDERS = `
  SELECT 'provider' AS kind, id, version::double precision, NULL::bigint AS position,
         jsonb_strip_nulls(jsonb_build_object(
           'base_url', base_url, 'auth', CASE WHEN auth IN ('bearer', 'x-api-key', 'none') THEN to_jsonb(auth)
             ELSE jsonb_build_object('header', auth) END,
           'on_disconnect', on_disconnect, 'stored_objects', stored_objects,
           'timeouts', CASE WHEN timeouts IS NOT NULL THEN jsonb_build_object(
             'connect_ms', timeouts->'connectMs', 'first_byte_ms', timeouts->'firstByteMs',
             'idle_ms', timeouts->'idleMs', 'total_ms', timeouts->'totalMs') END,
           'api_key', CASE WHEN auth <> 'none' THEN 'sealed ' || left(md5(api_key_sealed), 8) END)
           || coalesce(requests, '{}')) AS fields
    FROM providers`;

/** A row of `prices p` in USD per million tokens and per image. A dollar is 10^12 pico-dollars. */
const PRICE_IN_USD = `jsonb_strip_nulls(jsonb_build_object(
  'input', trim_scale(p.input * 0.000001)::text,
  'cached_input', trim_scale(p.cached_input * 0.000001)::text,
  'cache_write', trim_scale(p.cache_write * 0.000001)::text,
  'cache_write_1h', trim_scale(p.cache_write_1h * 0.000001)::text,
  'output', trim_scale(p.output * 0.000001)::text,
  'image', trim_scale(p.image * 0.000000000001)::text)) || coalesce(p.terms, '{}')`;

const MODELS = `
  SELECT 'model', m.id, m.version::double precision, m.position,
         jsonb_strip_nulls(jsonb_build_object(
           'display_name', m.display_name, 'kind', m.kind, 'context_length', m.context_length,
           'max_output_tokens', m.max_output_tokens, 'max_completion_tokens_cap', m.max_completion_tokens_cap,
           'attachment_tokens_max', m.attachment_tokens_max, 'tokenizer', m.tokenizer, 'active', m.active,
           'aliases', (SELECT jsonb_agg(alias ORDER BY a.position) FROM model_aliases a WHERE a.model_id = m.id),
           'served_by', (
             SELECT jsonb_agg(jsonb_build_object(
                      'provider', s.provider_id, 'model', s.provider_model, 'apis', s.apis,
                      'stream_usage', s.stream_usage, 'via', s.via,
                      'price', CASE WHEN s.further_prices <> '{}' THEN
                        (SELECT jsonb_agg(${PRICE_IN_USD} ORDER BY place)
                           FROM unnest(array_prepend(s.price_version, s.further_prices))
                                WITH ORDINALITY listed (version, place) JOIN prices p USING (version))
                        WHEN p.version IS NOT NULL THEN ${PRICE_IN_USD} END) ORDER BY s.position)
               FROM served_by s LEFT JOIN prices p ON p.version = s.price_version WHERE s.model_id = m.id)))
    FROM models m`;

const POLICIES = `
  SELECT 'routing_policy', name, version::double precision, NULL,
         jsonb_build_object('version', version) || definition
    FROM (SELECT DISTINCT ON (name) name, version, definition FROM routing_policies ORDER BY name, version DESC) present
   WHERE definition IS NOT NULL`;

const STATES = `SELECT kind, id, version, fields FROM (${PROVIDERS} UNION ALL ${MODELS} UNION ALL ${POLICIES}) state`;

export async function readCatalogStates(client: PostgresClient, kind?: CatalogKind): Promise<readonly CatalogState[]> {
  const { rows } = await client.query<CatalogState>(
    `${STATES} WHERE $1::text IS NULL OR kind = $1 ORDER BY array_position(ARRAY['provider', 'model'], kind),
      position, id`,
    [kind ?? null],
  );
  return rows;
}

export async function readCatalogState(
  client: PostgresClient,
  kind: CatalogKind,
  id: string,
): Promise<CatalogState | null> {
  const { rows } = await client.query<CatalogState>(`${STATES} WHERE kind = $1 AND id = $2`, [kind, id]);
  return rows[0] ?? null;
}

/** At most this many prices of a model are listed. */
const PRICES_SHOWN_MAX = 200;

/** Newest first. Prices never change: a new price is a new version, and a record names the version that it paid. */
export async function readPrices(client: PostgresClient, modelId: string): Promise<readonly PriceVersion[]> {
  const { rows } = await client.query<Omit<PriceVersion, 'isPresent'> & Record<string, unknown>>(
    `SELECT p.version::text, p.provider_id AS provider, p.provider_model AS "providerModel", ${PRICE_IN_USD} AS price,
            floor(extract(epoch FROM p.created_at) * 1000)::double precision AS "createdAtMs"
       FROM prices p WHERE p.model_id = $1 ORDER BY p.version DESC LIMIT ${PRICES_SHOWN_MAX}`,
    [modelId],
  );
  const present = await readPresentVersions(client, modelId);
  return rows.map((row) => ({ ...row, isPresent: present.has(row.version) }));
}

/** For each deployment, the version of its price that is valid now. */
async function readPresentVersions(client: PostgresClient, modelId: string): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ prices: readonly PriceRow[]; nowMs: number }>(
    `SELECT json_agg(${PRICE_AS_JSON} ORDER BY place) AS prices,
            floor(extract(epoch FROM now()) * 1000)::double precision AS "nowMs"
       FROM served_by s
       CROSS JOIN unnest(array_prepend(s.price_version, s.further_prices)) WITH ORDINALITY listed (version, place)
       JOIN prices p USING (version)
      WHERE s.model_id = $1 GROUP BY s.position`,
    [modelId],
  );
  const present = rows.map(({ prices, nowMs }) => priceAt(prices.map(toPrice), nowMs));
  return new Set(present.flatMap((price) => (price === null ? [] : [price.version])));
}
