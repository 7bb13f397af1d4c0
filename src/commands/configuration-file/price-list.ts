// Reads the list of published prices that the command line ships (@pydantic/genai-prices). It is loaded only when a
// command asks for it, and no other folder imports it: a gateway only knows the prices of its catalog.

import type { ConditionalPrice, ModelInfo, Provider } from '@pydantic/genai-prices';
import type { ListedModel, ListedPrice } from '../../domain/list-prices/listed-model.ts';
import { nearestNames } from '../../domain/list-prices/nearest-names.ts';

/** The list's version and its date of publication, which stand beside every price that comes from it. */
export const PRICE_LIST = { name: 'genai-prices', version: '0.1.8', date: '2026-09-23' } as const;
export const PRICE_LIST_TEXT = `${PRICE_LIST.name} ${PRICE_LIST.version} of ${PRICE_LIST.date}`;

/** The list's name of a provider, if that is not the name of its preset. */
const NAMES_OF_PRESETS: Readonly<Record<string, string>> = {
  'azure-classic': 'azure',
  'azure-anthropic': 'azure',
  gemini: 'google',
  vertex: 'google',
  'vertex-anthropic': 'google',
  bedrock: 'aws',
  'bedrock-mantle': 'aws',
  xai: 'x-ai',
};

export interface ListedProvider {
  readonly id: string;
  readonly name: string;
  readonly pricingUrl: string | null;
  readonly models: readonly ListedModel[];
  /**
   * Finds a model by its id, or by another name that the list accepts for it (a dated name, an alias); null: it is not
   * listed.
   */
  find(model: string): ListedModel | null;
  nearest(model: string): readonly string[];
}

export interface PriceList {
  /** Finds a provider by its preset, otherwise by its address; null: it is not listed. */
  provider(of: { readonly preset: string | null; readonly baseUrl: string | null }): ListedProvider | null;
}

export async function loadPriceList(): Promise<PriceList> {
  const { calcPrice, findProvider } = await import('@pydantic/genai-prices');
  const seen = new Map<Provider, ListedProvider>();
  const read = (provider: Provider): ListedProvider => {
    const found: ListedProvider = seen.get(provider) ?? {
      id: provider.id,
      name: provider.name ?? provider.id,
      pricingUrl: provider.pricing_urls?.[0] ?? null,
      models: provider.models.map(readModel),
      find(model) {
        const exact = provider.models.find(({ id }) => id === model);
        if (exact !== undefined) return readModel(exact);
        try {
          const matched = calcPrice({}, model, { providerId: provider.id });
          return matched === null ? null : readModel(matched.model);
        } catch {
          // The list itself cannot add up the units of this model.
          return null;
        }
      },
      nearest: (model) =>
        nearestNames(
          model,
          provider.models.map(({ id }) => id),
        ),
    };
    seen.set(provider, found);
    return found;
  };
  return {
    provider({ preset, baseUrl }) {
      const named = preset === null ? undefined : byId(findProvider, NAMES_OF_PRESETS[preset] ?? preset);
      const found = named ?? (baseUrl === null ? undefined : findProvider({ providerApiUrl: baseUrl }));
      return found === undefined ? null : read(found);
    },
  };
}

/** The list also matches names that only look similar, so the id is compared. */
function byId(
  find: (options: { providerId: string }) => Provider | undefined,
  providerId: string,
): Provider | undefined {
  const found = find({ providerId });
  return found?.id === providerId ? found : undefined;
}

function readModel({ id, name, context_window: contextLength, deprecated, prices }: ModelInfo): ListedModel {
  return {
    id,
    name: name ?? null,
    contextLength: contextLength ?? null,
    isDeprecated: deprecated === true,
    prices: (Array.isArray(prices) ? prices : [{ prices }]).map(readPrice),
  };
}

function readPrice({ constraint, prices }: ConditionalPrice): ListedPrice {
  return {
    from: constraint?.type === 'start_date' ? constraint.start_date : null,
    between: constraint?.type === 'time_of_date' ? { from: constraint.start_time, until: constraint.end_time } : null,
    amounts: prices,
  };
}
