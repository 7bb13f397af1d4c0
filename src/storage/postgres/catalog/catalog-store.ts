// Loads the catalog: one consistent snapshot of providers, models, aliases and prices.

import { type RequestFields, readRequestSettings } from '../../../domain/configuration/schema/request-settings.ts';
import type { ApiName, ModelKind } from '../../../domain/models/apis.ts';
import type { Catalog, Model, ServedBy, StreamUsage } from '../../../domain/models/catalog.ts';
import { NO_TOKEN, type Provider, type ProviderTimeouts } from '../../../domain/models/provider.ts';
import type { RoutingTable } from '../../../domain/routing/routing-table.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { loadRoutingTable } from '../routing/policies.ts';
import type { SecretBox } from '../secret-box.ts';
import { PRICE_AS_JSON, type PriceRow, toPrice } from './price-rows.ts';
import { MADE_FROM, tokenSecretName } from './provider-tokens.ts';

interface ProviderRow {
  readonly id: string;
  readonly base_url: string;
  readonly api_key_sealed: Buffer;
  readonly auth: Provider['auth'];
  readonly on_disconnect: Provider['onDisconnect'];
  readonly timeouts: ProviderTimeouts | null;
  readonly stored_objects: 'shared' | null;
  readonly requests: RequestFields | null;
  /** The present token, for a provider that takes a token instead of a key; null: there is none. */
  readonly token_sealed: Buffer | null;
  readonly obtained_at_ms: number | null;
  readonly expires_at_ms: number | null;
}

interface DeploymentRow {
  readonly provider_id: string;
  readonly provider_model: string;
  readonly apis: ApiName[];
  readonly stream_usage: StreamUsage | null;
  readonly via: 'logprobs' | null;
  /** null: the deployment has no price. */
  readonly prices: readonly PriceRow[] | null;
}

interface ModelRow {
  readonly id: string;
  readonly display_name: string;
  readonly kind: ModelKind;
  readonly context_length: string | null;
  readonly max_output_tokens: string | null;
  readonly max_completion_tokens_cap: string | null;
  readonly attachment_tokens_max: string | null;
  readonly tokenizer: string;
  readonly active: boolean;
  readonly created_at_ms: number;
  readonly aliases: string[];
  readonly served_by: DeploymentRow[];
}

// Amounts are selected as text, since JSON numbers are not exact in JavaScript.
const MODELS = `
  SELECT m.id, m.display_name, m.kind, m.context_length, m.max_output_tokens, m.max_completion_tokens_cap,
    m.attachment_tokens_max, m.tokenizer, m.active,
         floor(extract(epoch FROM m.created_at) * 1000)::double precision AS created_at_ms,
         ARRAY(SELECT alias FROM model_aliases a WHERE a.model_id = m.id ORDER BY position) AS aliases,
         coalesce((SELECT json_agg(json_build_object('provider_id', s.provider_id, 'provider_model', s.provider_model,
           'apis', s.apis, 'stream_usage', s.stream_usage, 'via', s.via,
             'prices', (SELECT json_agg(${PRICE_AS_JSON} ORDER BY place)
               FROM unnest(array_prepend(s.price_version, s.further_prices)) WITH ORDINALITY listed (version, place)
               JOIN prices p USING (version))
           ) ORDER BY s.position)
           FROM served_by s WHERE s.model_id = m.id),
             '[]') AS served_by
    FROM models m ORDER BY m.position`;

/** The result contains provider keys in clear; it must stay in memory and never be logged. */
export async function loadCatalog(postgres: Postgres, box: SecretBox): Promise<Catalog> {
  return postgres.transaction(async (client) => {
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    return readCatalog(client, box);
  });
}

/** The catalog as the transaction of `client` sees it. The result contains provider keys in clear. */
export async function readCatalog(client: PostgresClient, box: SecretBox): Promise<Catalog> {
  const version = await client.query<{ version: string }>('SELECT version FROM catalog_version');
  const providers = await client.query<ProviderRow>(
    `SELECT p.id, base_url, api_key_sealed, auth, on_disconnect, timeouts, stored_objects, requests, t.token_sealed,
            (extract(epoch FROM t.obtained_at) * 1000)::double precision AS obtained_at_ms,
            (extract(epoch FROM t.expires_at) * 1000)::double precision AS expires_at_ms
       FROM providers p LEFT JOIN provider_tokens t ON t.provider_id = p.id AND t.made_from = ${MADE_FROM}`,
  );
  const models = await client.query<ModelRow>(MODELS);
  const providersById = new Map(providers.rows.map((row) => [row.id, toProvider(row, box)]));
  return makeCatalog(
    Number(version.rows[0]?.version),
    models.rows.map((row) => toModel(row, providersById)),
    await loadRoutingTable(client),
  );
}

function makeCatalog(version: number, models: readonly Model[], routing: RoutingTable): Catalog {
  const byName = new Map<string, Model>();
  for (const model of models) {
    if (!model.active) continue;
    for (const name of [model.id, ...model.aliases]) byName.set(name, model);
  }
  const named = Array.from(byName);
  for (const [name, model] of named) {
    const bare = model.kind === 'evaluation' ? bareLatest(name) : null;
    if (bare !== null && !byName.has(bare)) byName.set(bare, model);
  }
  return { version, models, byName, routing };
}

/** An evaluation model called `<provider>/<name>-latest` is also `<name>-latest` (spec 4.9); null: it is not one. */
function bareLatest(name: string): string | null {
  return name.includes('/') && name.endsWith('-latest') ? name.slice(name.indexOf('/') + 1) : null;
}

function toProvider(row: ProviderRow, box: SecretBox): Provider {
  return {
    id: row.id,
    baseUrl: row.base_url,
    ...(row.requests?.token === undefined
      ? { apiKey: box.open(row.api_key_sealed, providerSecretName(row.id)) }
      : tokenOf(row, box)),
    auth: row.auth,
    onDisconnect: row.on_disconnect,
    ...(row.stored_objects === null ? {} : { storedObjects: row.stored_objects }),
    ...(row.timeouts === null ? {} : { timeouts: row.timeouts }),
    ...(row.requests === null ? {} : { requests: readRequestSettings(row.requests) }),
  };
}

/** A token is overdue for renewal when less than this share of its life is left. */
const OVERDUE_SHARE = 0.1;

/** Opens the token. Only jobs opens the secret with which tokens are obtained. */
function tokenOf(
  { id, token_sealed: sealed, obtained_at_ms: sinceMs, expires_at_ms: untilMs }: ProviderRow,
  box: SecretBox,
): Pick<Provider, 'apiKey' | 'token'> {
  if (sealed === null || sinceMs === null || untilMs === null) return { apiKey: '', token: NO_TOKEN };
  const overdueFromMs = untilMs - (untilMs - sinceMs) * OVERDUE_SHARE;
  return { apiKey: box.open(sealed, tokenSecretName(id)), token: { validUntilMs: untilMs, overdueFromMs } };
}

/** The name to which a provider's sealed key is bound. */
export function providerSecretName(providerId: string): string {
  return `provider ${providerId}`;
}

function toModel(row: ModelRow, providers: ReadonlyMap<string, Provider>): Model {
  return {
    id: row.id,
    displayName: row.display_name,
    kind: row.kind,
    aliases: row.aliases,
    contextLength: toNumber(row.context_length),
    maxOutputTokens: toNumber(row.max_output_tokens),
    maxCompletionTokensCap: toNumber(row.max_completion_tokens_cap),
    attachmentTokensMax: toNumber(row.attachment_tokens_max),
    tokenizer: row.tokenizer,
    active: row.active,
    createdAtMs: row.created_at_ms,
    servedBy: row.served_by.map((deployment) => toServedBy(deployment, providers)),
  };
}

function toServedBy(deployment: DeploymentRow, providers: ReadonlyMap<string, Provider>): ServedBy {
  const provider = providers.get(deployment.provider_id);
  if (provider === undefined)
    throw new Error(`the catalog names a provider that does not exist: ${deployment.provider_id}`);
  return {
    provider,
    providerModel: deployment.provider_model,
    apis: deployment.apis,
    ...toPrices(deployment.prices ?? []),
    ...(deployment.stream_usage === null ? {} : { streamUsage: deployment.stream_usage }),
    ...(deployment.via === null ? {} : { via: deployment.via }),
  };
}

/** `prices` is set if a price is dated. domain/models/dated-prices.ts then decides which price is valid at a moment. */
function toPrices(rows: readonly PriceRow[]): Pick<ServedBy, 'price' | 'prices'> {
  const prices = rows.map(toPrice);
  const [price = null] = prices;
  const isDated = prices.length > 1 || (price?.terms?.from ?? null) !== null;
  return isDated ? { price, prices } : { price };
}

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value);
}
