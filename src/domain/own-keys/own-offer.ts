// What an own key offers for a model on an API: the provider's own model to call, and the price it is rated by.

import { APIS, type ApiName } from '../models/apis.ts';
import type { Model, ServedBy } from '../models/catalog.ts';
import type { Price } from '../models/price.ts';
import type { OwnKey } from './own-key.ts';

export interface OwnOffer {
  readonly providerModel: string;
  readonly price: Price | null;
  readonly asksForUsage: boolean;
}

/**
 * null: the key does not serve the model on this API. `apis`: of its kind. `ownPrice`: what its provider charges it.
 */
export function findOffer(
  { kind, modelMap }: Pick<OwnKey, 'kind' | 'modelMap'>,
  { model, api, apis, ownPrice }: { model: Model; api: ApiName; apis: readonly ApiName[]; ownPrice: Price | null },
): OwnOffer | null {
  const serving = model.servedBy.filter((entry) => entry.via === undefined && entry.apis.includes(api));
  const served = serving.find((entry) => isOfKind(entry, kind));
  const mapped = Object.hasOwn(modelMap, model.id) ? modelMap[model.id] : undefined;
  const canMap = apis.includes(api) && APIS[api].kind === model.kind;
  const providerModel = served === undefined && !canMap ? undefined : (mapped ?? served?.providerModel);
  if (providerModel === undefined) return null;
  return {
    providerModel,
    price: ownPrice ?? served?.price ?? serving[0]?.price ?? null,
    asksForUsage: served?.streamUsage === 'request' && api === 'chat_completions',
  };
}

/** A kind is a configured provider, or every configured provider of a preset. */
function isOfKind({ provider }: ServedBy, kind: string): boolean {
  return provider.id === kind || provider.requests?.preset === kind;
}
