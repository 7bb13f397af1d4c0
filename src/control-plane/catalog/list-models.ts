// GET /v1/models: the catalog in one body that OpenAI, Anthropic and other clients read (spec 2.3, 4.6).

import type { Catalog, Model, Price, ServedBy } from '../../domain/models/catalog.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import type { Exchange } from '../../http/exchange.ts';

const TOKENS_PER_PRICE = 1_000_000n;

export function listModels(catalog: () => Catalog): (exchange: Exchange) => void {
  let rendered: { catalog: Catalog; merged: string; byProvider: string } | null = null;
  return (exchange) => {
    const present = catalog();
    // The body changes with the catalog only, so it is written once per change.
    if (rendered?.catalog !== present)
      rendered = { catalog: present, merged: renderList(mergedEntries(present)), byProvider: renderList(providerEntries(present)) };
    const separate = exchange.header('x-provider-data')?.toLowerCase() === 'true';
    exchange.answerJson(200, separate ? rendered.byProvider : rendered.merged);
  };
}

interface Entry {
  readonly id: string;
  readonly [field: string]: unknown;
}

function renderList(entries: readonly Entry[]): string {
  return JSON.stringify({ object: 'list', data: entries, first_id: entries[0]?.id ?? null, last_id: entries.at(-1)?.id ?? null, has_more: false });
}

/** One entry for each name that can be called: the model's own id, then its aliases. */
function mergedEntries(catalog: Catalog): Entry[] {
  return activeModels(catalog).flatMap((model) =>
    [model.id, ...model.aliases].map((id) => ({ ...entryOf(model, id, model.servedBy), owned_by: model.servedBy[0]?.provider.id ?? 'unknown' })),
  );
}

/** One entry for each provider that serves a model: the canonical id, its alias beside it (spec 2.3). */
function providerEntries(catalog: Catalog): Entry[] {
  return activeModels(catalog).flatMap((model) =>
    model.servedBy.flatMap((served) =>
      [null, ...model.aliases].map((alias) => ({
        ...entryOf(model, model.id, [served]),
        ...(alias === null ? {} : { alias }),
        owned_by: served.provider.id,
        provider: served.provider.id,
      })),
    ),
  );
}

function activeModels(catalog: Catalog): Model[] {
  return catalog.models.filter((model) => model.active);
}

function entryOf(model: Model, id: string, offers: readonly ServedBy[]): Entry {
  return {
    id,
    object: 'model',
    type: 'model',
    created: Math.floor(model.createdAtMs / 1_000),
    created_at: new Date(model.createdAtMs).toISOString(),
    display_name: model.displayName,
    kind: model.kind,
    context_length: model.contextLength,
    max_output_tokens: model.maxOutputTokens,
    apis: [...new Set(offers.flatMap((offer) => offer.apis))],
    pricing: pricingOf(offers[0]?.price ?? null),
  };
}

/** Prices as the catalog file writes them: decimal strings, USD per million tokens, or per image. */
function pricingOf(price: Price | null): Record<string, string> | null {
  if (price === null) return null;
  const pricing: Record<string, string> = { currency: 'USD' };
  const perToken = { input: price.input, cached_input: price.cachedInput, cache_write: price.cacheWrite, output: price.output };
  for (const [name, amount] of Object.entries(perToken)) if (amount !== null) pricing[name] = formatUsdString(amount * TOKENS_PER_PRICE);
  if (price.image !== null) pricing['image'] = formatUsdString(price.image);
  return pricing;
}
