// Writes and removes models with their aliases, deployments and prices; a changed price becomes a new version. Each
// function runs inside changeCatalog (change-catalog.ts).

import type {
  ConfiguredDeployment,
  ConfiguredModel,
  ConfiguredPrice,
} from '../../../domain/configuration/configuration.ts';
import {
  type PricesFields,
  pricesProblem,
  readPrices,
  readTerms,
  writeTerms,
} from '../../../domain/configuration/schema/price-schema.ts';
import type { ModelKind } from '../../../domain/models/apis.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { contradicts, invalid, NOT_FOUND } from '../identity/change.ts';
import type { PostgresClient } from '../pool.ts';
import { policiesNaming } from '../routing/policies.ts';

/** May refuse after it has written: the transaction must then be rolled back. */
export async function putModels(client: PostgresClient, models: readonly ConfiguredModel[]): Promise<Refused | null> {
  const unknown = await refuseUnknownProviders(client, models);
  if (unknown !== null) return unknown;
  for (const model of models) await putModel(client, model);
  const refused = await putAliases(client, models);
  if (refused !== null) return refused;
  for (const model of models) await putDeployments(client, model);
  return null;
}

async function refuseUnknownProviders(
  client: PostgresClient,
  models: readonly ConfiguredModel[],
): Promise<Refused | null> {
  const named = models.flatMap(({ servedBy }) => servedBy.map(({ provider }) => provider));
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM unnest($1::text[]) AS id WHERE id NOT IN (SELECT id FROM providers) LIMIT 1',
    [named],
  );
  return rows[0] === undefined ? null : invalid('servedBy', `names a provider that does not exist: "${rows[0].id}"`);
}

async function putModel(client: PostgresClient, model: ConfiguredModel): Promise<void> {
  await client.query(
    `INSERT INTO models AS m (id, display_name, kind, context_length, max_output_tokens, max_completion_tokens_cap,
      attachment_tokens_max, tokenizer, active)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, true))
     ON CONFLICT (id) DO UPDATE
        SET (display_name, kind, context_length, max_output_tokens, max_completion_tokens_cap, attachment_tokens_max,
          tokenizer, active)
          = (excluded.display_name, excluded.kind, excluded.context_length, excluded.max_output_tokens,
            excluded.max_completion_tokens_cap, excluded.attachment_tokens_max, excluded.tokenizer,
            coalesce($9, m.active))`,
    [
      model.id,
      model.displayName,
      model.kind,
      model.contextLength,
      model.maxOutputTokens,
      model.maxCompletionTokensCap,
      model.attachmentTokensMax,
      model.tokenizer,
      model.active,
    ],
  );
}

/** All of these models give up their aliases first, since an alias may move from one of them to another. */
async function putAliases(client: PostgresClient, models: readonly ConfiguredModel[]): Promise<Refused | null> {
  await releaseAliases(
    client,
    models.map(({ id }) => id),
  );
  for (const { id, aliases } of models) {
    for (const [position, alias] of aliases.entries()) {
      const { rowCount } = await client.query(
        'INSERT INTO model_aliases (alias, model_id, position) VALUES ($1, $2, $3) ON CONFLICT (alias) DO NOTHING',
        [alias, id, position],
      );
      if (rowCount === 0) return contradicts(`the alias "${alias}" of model "${id}" belongs to another model`);
    }
  }
  const { rows } = await client.query<{ alias: string; model_id: string }>(
    'SELECT alias, model_id FROM model_aliases WHERE alias IN (SELECT id FROM models)',
  );
  const clash = rows[0];
  if (clash === undefined) return null;
  return contradicts(`"${clash.alias}" is the id of one model and an alias of another ("${clash.model_id}")`);
}

/** The prices of `served_by s`. Amounts are text, since JSON numbers are not exact in JavaScript. */
const STORED_PRICES = `(SELECT json_agg(json_build_array(p.version::text, p.input::text, p.cached_input::text,
    p.cache_write::text, p.cache_write_1h::text, p.output::text, p.image::text, p.terms) ORDER BY place)
  FROM unnest(array_prepend(s.price_version, s.further_prices)) WITH ORDINALITY listed (version, place)
  JOIN prices p USING (version))`;

/** `amounts`: the JSON text of `amountsOf`, for comparisons. */
interface StoredPrice {
  readonly version: string;
  readonly amounts: string;
}

type PriceColumns = readonly [version: string, ...amounts: (string | null)[], terms: object | null];

/** Postgres reorders the members of JSON documents. Terms are therefore parsed and written again to be comparable. */
function readStored(rows: readonly PriceColumns[] | null): readonly StoredPrice[] {
  return (rows ?? []).map(([version, ...columns]) => {
    const terms = columns.at(-1) as object | null;
    const read = terms === null ? null : readTerms(terms);
    return {
      version,
      amounts: JSON.stringify([...columns.slice(0, -1), read === null ? null : writeTerms(read)]),
    };
  });
}

interface StoredDeployment {
  readonly provider_id: string;
  readonly provider_model: string;
  readonly apis: string[];
  readonly stream_usage: string | null;
  readonly via: string | null;
  readonly prices: readonly PriceColumns[] | null;
}

async function putDeployments(client: PostgresClient, model: ConfiguredModel): Promise<void> {
  const { rows: stored } = await client.query<StoredDeployment>(
    `SELECT s.provider_id, s.provider_model, s.apis, s.stream_usage, s.via, ${STORED_PRICES} AS prices
       FROM served_by s WHERE s.model_id = $1 ORDER BY s.position`,
    [model.id],
  );
  const describeStored = (deployment: StoredDeployment): string =>
    JSON.stringify([
      deployment.provider_id,
      deployment.provider_model,
      deployment.apis,
      deployment.stream_usage,
      deployment.via,
      readStored(deployment.prices).map(({ amounts }) => amounts),
    ]);
  const describeWanted = (deployment: ConfiguredDeployment): string =>
    JSON.stringify([
      deployment.provider,
      deployment.providerModel,
      deployment.apis,
      deployment.streamUsage ?? null,
      deployment.via ?? null,
      pricesOf(deployment).map(amountsOf),
    ]);
  if (stored.map(describeStored).join() === model.servedBy.map(describeWanted).join()) return;

  await client.query('DELETE FROM served_by WHERE model_id = $1', [model.id]);
  for (const [position, deployment] of model.servedBy.entries()) {
    const known = stored.filter(
      ({ provider_id, provider_model }) =>
        provider_id === deployment.provider && provider_model === deployment.providerModel,
    );
    const [version = null, ...further] = await versionsOf(
      client,
      model.id,
      deployment,
      known.flatMap(({ prices }) => readStored(prices)),
    );
    await client.query(
      `INSERT INTO served_by (model_id, position, provider_id, provider_model, apis, stream_usage, via, price_version,
         further_prices)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        model.id,
        position,
        deployment.provider,
        deployment.providerModel,
        deployment.apis,
        deployment.streamUsage ?? null,
        deployment.via ?? null,
        version,
        further,
      ],
    );
  }
}

type PricedDeployment = Pick<ConfiguredDeployment, 'provider' | 'providerModel' | 'price' | 'furtherPrices'>;

function pricesOf({ price, furtherPrices = [] }: PricedDeployment): readonly ConfiguredPrice[] {
  return price === null ? [] : [price, ...furtherPrices];
}

/** The amounts of a price, followed by its terms, as JSON text. */
function amountsOf(price: ConfiguredPrice): string {
  return JSON.stringify(columnsOf(price));
}

function columnsOf(price: ConfiguredPrice): readonly (string | object | null)[] {
  const amounts = [price.input, price.cachedInput, price.cacheWrite, price.hourCacheWrite, price.output, price.image];
  const terms = price.terms === undefined ? null : writeTerms(price.terms);
  return [...amounts.map((amount) => amount?.toString() ?? null), terms];
}

/** The versions of a deployment's prices. A price in `known` keeps its version; other prices are stored as new ones. */
async function versionsOf(
  client: PostgresClient,
  modelId: string,
  deployment: PricedDeployment,
  known: readonly StoredPrice[],
): Promise<readonly string[]> {
  const versions: string[] = [];
  for (const price of pricesOf(deployment)) {
    const wanted = amountsOf(price);
    const same = known.find(({ amounts }) => amounts === wanted);
    versions.push(same?.version ?? (await insertPrice(client, modelId, deployment, price)));
  }
  return versions;
}

async function insertPrice(
  client: PostgresClient,
  modelId: string,
  deployment: PricedDeployment,
  price: ConfiguredPrice,
): Promise<string> {
  const { rows } = await client.query<{ version: string }>(
    `INSERT INTO prices (model_id, provider_id, provider_model, input, cached_input, cache_write, cache_write_1h,
      output, image, terms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING version`,
    [modelId, deployment.provider, deployment.providerModel, ...columnsOf(price)],
  );
  return rows[0]?.version ?? '';
}

/** The price of a model at a provider. */
export interface PriceChange {
  readonly model: string;
  readonly provider: string;
  /** The provider's name of the model; null: all names under which the provider serves the model. */
  readonly providerModel: string | null;
  /** null: removes the price. */
  readonly price: PricesFields | null;
}

export async function putPrice(client: PostgresClient, change: PriceChange): Promise<Refused | null> {
  const { model, provider, providerModel, price } = change;
  const { rows } = await client.query<{
    position: number;
    provider_model: string;
    kind: ModelKind;
    prices: readonly PriceColumns[] | null;
  }>(
    `SELECT s.position, s.provider_model, m.kind, ${STORED_PRICES} AS prices
       FROM served_by s JOIN models m ON m.id = s.model_id
      WHERE s.model_id = $1 AND s.provider_id = $2 AND ($3::text IS NULL OR s.provider_model = $3)`,
    [model, provider, providerModel],
  );
  const [first] = rows;
  if (first === undefined) return invalid('provider', 'does not serve the model under this name');
  const problem = price === null ? null : pricesProblem(first.kind, price);
  if (problem !== null) return invalid('price', `is incomplete: ${problem}`);
  const [firstPrice = null, ...furtherPrices] = price === null ? [] : readPrices(first.kind, price);
  for (const { position, provider_model, prices } of rows) {
    const deployment = { provider, providerModel: provider_model, price: firstPrice, furtherPrices };
    const stored = readStored(prices);
    const [version = null, ...further] = await versionsOf(client, model, deployment, stored);
    if (stored.map((known) => known.version).join() === [version ?? [], ...further].flat().join()) continue;
    await client.query(
      'UPDATE served_by SET price_version = $3, further_prices = $4 WHERE model_id = $1 AND position = $2',
      [model, position, version, further],
    );
  }
  return null;
}

/** Refuses if a routing policy names the model. The model's prices stay, since records name them. */
export async function removeModel(client: PostgresClient, id: string): Promise<Refused | null> {
  const [policy] = await policiesNaming(client, id);
  if (policy !== undefined) return contradicts(`the routing policy "${policy}" names it`);
  await releaseAliases(client, [id]);
  await client.query('DELETE FROM served_by WHERE model_id = $1', [id]);
  const { rowCount } = await client.query('DELETE FROM models WHERE id = $1', [id]);
  return rowCount === 0 ? NOT_FOUND : null;
}

/** Makes the aliases of these models free for others. */
export async function releaseAliases(client: PostgresClient, ids: readonly string[]): Promise<void> {
  await client.query('DELETE FROM model_aliases WHERE model_id = ANY ($1)', [ids]);
}
