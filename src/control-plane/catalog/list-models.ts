// GET /v1/models: the catalog as one body that clients of OpenAI, Anthropic and TypeSafe can read (spec 2.3, 4.6).

import { writeRates, writeTerms } from '../../domain/configuration/schema/price-schema.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import { MODEL_KINDS } from '../../domain/models/apis.ts';
import { type Catalog, type Model, type ServedBy, STREAM_USAGE_API } from '../../domain/models/catalog.ts';
import { ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';
import type { VirtualModel } from '../../domain/routing/virtual-model.ts';
import type { Exchange } from '../../http/exchange.ts';
import { showMoment } from '../identity/fields.ts';
import { callableModels } from './callable-models.ts';
import { oncePerCatalog } from './once-per-catalog.ts';
import { virtualEntry } from './virtual-entry.ts';

export function listModels(
  catalog: () => Catalog,
  virtual: VirtualModel,
): (exchange: Exchange, principal: ScopedPrincipal) => void {
  const renderMerged = oncePerModel(mergedEntries);
  const renderByProvider = oncePerModel(providerEntries);
  const merged = oncePerCatalog(catalog, (present, policy) =>
    renderList(modelsOf(present, policy, virtual).map(renderMerged)),
  );
  const byProvider = oncePerCatalog(catalog, (present, policy) =>
    renderList(modelsOf(present, policy, virtual).map(renderByProvider)),
  );
  return (exchange, { allowedModels, organizationId }) => {
    const policy = catalog().routing.policyOf.get(organizationId) ?? null;
    const separate = exchange.header('x-provider-data')?.toLowerCase() === 'true';
    exchange.answerJson(200, separate ? byProvider(allowedModels, policy) : merged(allowedModels, policy));
  };
}

/** The virtual model comes last, and only where auto routing is on (spec 2.3). */
export function modelsOf(catalog: Catalog, policy: string | null, virtual: VirtualModel): readonly Model[] {
  const callable = callableModels(catalog);
  const entry = policy === null ? null : virtualEntry(catalog, policy, virtual);
  return entry === null ? callable : [...callable, entry];
}

interface Entry {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** The parts of a list that one model makes. */
interface Rendered {
  readonly ids: readonly string[];
  /** The model's entries as JSON, with commas between them. */
  readonly data: string;
  readonly models: string;
}

/**
 * Renders each model once: the list for a key with its own allow-list is made for each request, but the entries in it
 * are the same for everybody.
 */
function oncePerModel(entriesOf: (model: Model) => Entry[]): (model: Model) => Rendered {
  const rendered = new WeakMap<Model, Rendered>();
  return (model) => {
    const known = rendered.get(model);
    if (known !== undefined) return known;
    const entries = entriesOf(model);
    const made = {
      ids: entries.map(({ id }) => id),
      data: inList(entries.map((entry) => JSON.stringify(entry))),
      models: inList(typesafeEntries(model).map((entry) => JSON.stringify(entry))),
    };
    rendered.set(model, made);
    return made;
  };
}

/** `data` and `object` form OpenAI's list, `data` and the ids Anthropic's only page, `models` TypeSafe's list. */
function renderList(rendered: readonly Rendered[]): string {
  const listed = rendered.filter(({ ids }) => ids.length > 0);
  const firstId = JSON.stringify(listed[0]?.ids[0] ?? null);
  const lastId = JSON.stringify(listed.at(-1)?.ids.at(-1) ?? null);
  const data = inList(listed.map((one) => one.data));
  const models = inList(rendered.map((one) => one.models));
  const ids = `"first_id":${firstId},"last_id":${lastId}`;
  return `{"object":"list","data":[${data}],${ids},"has_more":false,"models":[${models}]}`;
}

function inList(parts: readonly string[]): string {
  return parts.join(',');
}

/** One entry for each name that can be called: the model's own id, then its aliases. */
function mergedEntries(model: Model): Entry[] {
  return namesOf(model).map((id) => mergedEntry(model, id));
}

/** `id`: the model's own, or an alias. */
export function mergedEntry(model: Model, id: string): Entry {
  return { ...entryOf(model, id, model.servedBy), owned_by: model.servedBy[0]?.provider.id ?? 'unknown' };
}

/** One entry for each provider that serves a model: the canonical id, its alias beside it (spec 2.3). */
function providerEntries(model: Model): Entry[] {
  return model.servedBy.flatMap((served) =>
    [null, ...model.aliases].map((alias) => ({
      ...entryOf(model, model.id, [served]),
      ...(alias === null ? {} : { alias }),
      owned_by: served.provider.id,
      provider: served.provider.id,
    })),
  );
}

function typesafeEntries(model: Model): object[] {
  return namesOf(model).map((name) => ({
    name,
    description: model.displayName,
    release_date: showMoment(model.createdAtMs).slice(0, 'yyyy-mm-dd'.length),
  }));
}

export function namesOf(model: Model): readonly string[] {
  return [model.id, ...model.aliases];
}

function entryOf(model: Model, id: string, deployments: readonly ServedBy[]): Entry {
  return {
    id,
    object: 'model',
    type: 'model',
    created: Math.floor(model.createdAtMs / 1_000),
    created_at: showMoment(model.createdAtMs),
    display_name: model.displayName,
    kind: model.kind,
    context_length: model.contextLength,
    max_output_tokens: model.maxOutputTokens,
    apis: [...new Set(deployments.flatMap((deployment) => deployment.apis))],
    pricing: pricingOf(model, deployments[0]),
    ...otherPrices(model, deployments),
    ...streamUsageOf(deployments),
  };
}

/**
 * Tells clients that do not ask for usage what to expect of their streams; the deployment that serves Chat Completions
 * decides. Absent: streams are not changed.
 */
function streamUsageOf(deployments: readonly ServedBy[]): object {
  const streamUsage = deployments.find(({ apis }) => apis.includes(STREAM_USAGE_API))?.streamUsage;
  return streamUsage === undefined ? {} : { stream_usage: streamUsage };
}

/**
 * The prices of the APIs whose first deployment has another price than the model's first one. Token counts are free.
 */
function otherPrices(model: Model, deployments: readonly ServedBy[]): object {
  const ofModel = JSON.stringify(pricingOf(model, deployments[0]));
  const apis = new Set(deployments.flatMap((deployment) => deployment.apis));
  apis.delete('count_tokens');
  const others = [...apis]
    .map(
      (api) =>
        [
          api,
          pricingOf(
            model,
            deployments.find((deployment) => deployment.apis.includes(api)),
          ),
        ] as const,
    )
    .filter(([, pricing]) => JSON.stringify(pricing) !== ofModel);
  return others.length === 0 ? {} : { pricing_by_api: Object.fromEntries(others) };
}

/** Prices as the catalog file writes them: decimal strings, USD per million tokens, or per image. */
function pricingOf({ kind }: Model, deployment: ServedBy | undefined): Record<string, unknown> | null {
  const price = deployment?.price ?? null;
  if (price === null) return null;
  const output = MODEL_KINDS[kind].outputIsFree ? ZERO_PICO_USD : price.output;
  const terms = price.terms === undefined ? {} : writeTerms(price.terms);
  return { currency: 'USD', ...writeRates({ ...price, output }), ...terms };
}
