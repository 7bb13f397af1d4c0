// Upserts providers, models, their deployments with prices, and routing policies. A changed price becomes a new
// version.

import type {
  ConfiguredDeployment,
  ConfiguredModel,
  ConfiguredRoutingPolicy,
} from '../../../domain/configuration/configuration.ts';
import type { Provider } from '../../../domain/models/catalog.ts';
import { providerSecretName } from '../catalog/catalog-store.ts';
import { putPolicyVersion } from '../routing/policies.ts';
import { type Application, ConfigurationConflict } from './application.ts';

export async function applyProvider(application: Application, provider: Provider): Promise<void> {
  const { client, box } = application;
  const { rows } = await client.query<{ api_key_sealed: Buffer }>(
    'SELECT api_key_sealed FROM providers WHERE id = $1',
    [provider.id],
  );
  const stored = rows[0]?.api_key_sealed;
  // Sealing the same key again gives other bytes, so an unchanged key keeps its sealed form.
  const sealed =
    stored !== undefined && opensTo(application, stored, provider)
      ? stored
      : box.seal(provider.apiKey, providerSecretName(provider.id));
  const { rowCount } = await client.query(
    `INSERT INTO providers AS p (id, base_url, api_key_sealed, auth, on_disconnect, timeouts, stored_objects)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (id) DO UPDATE
        SET (base_url, api_key_sealed, auth, on_disconnect, timeouts, stored_objects)
          = (excluded.base_url, excluded.api_key_sealed, excluded.auth, excluded.on_disconnect, excluded.timeouts,
            excluded.stored_objects)
      WHERE (p.base_url, p.api_key_sealed, p.auth, p.on_disconnect, p.timeouts, p.stored_objects)
            IS DISTINCT FROM
            (excluded.base_url, excluded.api_key_sealed, excluded.auth, excluded.on_disconnect, excluded.timeouts,
              excluded.stored_objects)`,
    [
      provider.id,
      provider.baseUrl,
      sealed,
      provider.auth,
      provider.onDisconnect,
      provider.timeouts === undefined ? null : JSON.stringify(provider.timeouts),
      provider.storedObjects ?? null,
    ],
  );
  if (rowCount > 0) application.catalogChanged = true;
}

/** A key that was sealed under another master key cannot be opened and is sealed again. */
function opensTo({ box }: Application, sealed: Buffer, provider: Provider): boolean {
  try {
    return box.open(sealed, providerSecretName(provider.id)) === provider.apiKey;
  } catch {
    return false;
  }
}

export async function applyModels(application: Application, models: readonly ConfiguredModel[]): Promise<void> {
  for (const model of models) await applyModel(application, model);
  await applyAliases(application, models);
  for (const model of models) await applyDeployments(application, model);
}

async function applyModel(application: Application, model: ConfiguredModel): Promise<void> {
  const { rowCount } = await application.client.query(
    `INSERT INTO models AS m (id, display_name, kind, context_length, max_output_tokens, max_completion_tokens_cap,
      attachment_tokens_max, tokenizer, active)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (id) DO UPDATE
        SET (display_name, kind, context_length, max_output_tokens, max_completion_tokens_cap, attachment_tokens_max,
          tokenizer, active)
          = (excluded.display_name, excluded.kind, excluded.context_length, excluded.max_output_tokens,
            excluded.max_completion_tokens_cap,
             excluded.attachment_tokens_max, excluded.tokenizer, excluded.active)
      WHERE (m.display_name, m.kind, m.context_length, m.max_output_tokens, m.max_completion_tokens_cap,
        m.attachment_tokens_max, m.tokenizer, m.active)
            IS DISTINCT FROM
            (excluded.display_name, excluded.kind, excluded.context_length, excluded.max_output_tokens,
              excluded.max_completion_tokens_cap,
             excluded.attachment_tokens_max, excluded.tokenizer, excluded.active)`,
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
  if (rowCount > 0) application.catalogChanged = true;
}

/**
 * All models of the file give up their aliases before any takes its own, since an alias may move from one to another.
 */
async function applyAliases(application: Application, models: readonly ConfiguredModel[]): Promise<void> {
  const { client } = application;
  const ids = models.map(({ id }) => id);
  const { rows } = await client.query<{ alias: string; model_id: string }>(
    'SELECT alias, model_id FROM model_aliases WHERE model_id = ANY ($1) ORDER BY model_id, position',
    [ids],
  );
  const stored = new Map(ids.map((id) => [id, rows.filter((row) => row.model_id === id).map((row) => row.alias)]));
  const changed = models.filter(({ id, aliases }) => JSON.stringify(stored.get(id)) !== JSON.stringify(aliases));
  if (changed.length > 0) {
    application.catalogChanged = true;
    await client.query('DELETE FROM model_aliases WHERE model_id = ANY ($1)', [changed.map(({ id }) => id)]);
    for (const { id, aliases } of changed) {
      for (const [position, alias] of aliases.entries()) {
        const { rowCount } = await client.query(
          'INSERT INTO model_aliases (alias, model_id, position) VALUES ($1, $2, $3) ON CONFLICT (alias) DO NOTHING',
          [alias, id, position],
        );
        if (rowCount === 0)
          throw new ConfigurationConflict(
            `the alias "${alias}" of model "${id}" belongs to another model, which was applied before and is ` +
              `not in this file`,
          );
      }
    }
  }
  const clashes = await client.query<{ alias: string; model_id: string }>(
    'SELECT alias, model_id FROM model_aliases WHERE alias IN (SELECT id FROM models)',
  );
  const clash = clashes.rows[0];
  if (clash !== undefined)
    throw new ConfigurationConflict(
      `"${clash.alias}" is the id of one model and an alias of another ("${clash.model_id}")`,
    );
}

interface StoredDeployment {
  readonly provider_id: string;
  readonly provider_model: string;
  readonly apis: string[];
  readonly stream_usage: string | null;
  readonly via: string | null;
  readonly price_version: string | null;
  readonly price: string | null;
}

async function applyDeployments(application: Application, model: ConfiguredModel): Promise<void> {
  const { client } = application;
  const { rows: stored } = await client.query<StoredDeployment>(
    `SELECT s.provider_id, s.provider_model, s.apis, s.stream_usage, s.via, s.price_version,
            CASE WHEN p.version IS NOT NULL THEN json_build_array(p.input::text, p.cached_input::text,
              p.cache_write::text, p.cache_write_1h::text, p.output::text, p.image::text)::jsonb::text END AS price
       FROM served_by s LEFT JOIN prices p ON p.version = s.price_version WHERE s.model_id = $1 ORDER BY s.position`,
    [model.id],
  );
  const describeStored = (deployment: StoredDeployment): string =>
    JSON.stringify([
      deployment.provider_id,
      deployment.provider_model,
      deployment.apis,
      deployment.stream_usage,
      deployment.via,
      deployment.price === null ? null : JSON.parse(deployment.price),
    ]);
  const describeWanted = (deployment: ConfiguredDeployment): string =>
    JSON.stringify([
      deployment.provider,
      deployment.providerModel,
      deployment.apis,
      deployment.streamUsage ?? null,
      deployment.via ?? null,
      amountsOf(deployment),
    ]);
  if (stored.map(describeStored).join() === model.servedBy.map(describeWanted).join()) return;

  application.catalogChanged = true;
  await client.query('DELETE FROM served_by WHERE model_id = $1', [model.id]);
  for (const [position, deployment] of model.servedBy.entries()) {
    const price = JSON.stringify(amountsOf(deployment));
    const same = stored.find(
      (known) =>
        known.provider_id === deployment.provider &&
        known.provider_model === deployment.providerModel &&
        known.price !== null &&
        JSON.stringify(JSON.parse(known.price)) === price,
    );
    const version =
      deployment.price === null
        ? null
        : (same?.price_version ?? (await insertPrice(application, model.id, deployment)));
    await client.query(
      `INSERT INTO served_by (model_id, position, provider_id, provider_model, apis, stream_usage, via, price_version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        model.id,
        position,
        deployment.provider,
        deployment.providerModel,
        deployment.apis,
        deployment.streamUsage ?? null,
        deployment.via ?? null,
        version,
      ],
    );
  }
}

function amountsOf({ price }: ConfiguredDeployment): (string | null)[] | null {
  if (price === null) return null;
  return [price.input, price.cachedInput, price.cacheWrite, price.hourCacheWrite, price.output, price.image].map(
    (amount) => amount?.toString() ?? null,
  );
}

async function insertPrice(
  { client }: Application,
  modelId: string,
  deployment: ConfiguredDeployment,
): Promise<string | null> {
  const { rows } = await client.query<{ version: string }>(
    `INSERT INTO prices (model_id, provider_id, provider_model, input, cached_input, cache_write, cache_write_1h,
      output, image)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING version`,
    [modelId, deployment.provider, deployment.providerModel, ...(amountsOf(deployment) ?? [])],
  );
  return rows[0]?.version ?? null;
}

/** A definition that differs from the newest version becomes the next version. */
export async function applyRoutingPolicy(
  application: Application,
  { name, definition }: ConfiguredRoutingPolicy,
): Promise<void> {
  if (await putPolicyVersion(application.client, name, definition)) application.catalogChanged = true;
}
