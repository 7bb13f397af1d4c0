// Finds what an own key calls for a model on an API: the provider's model, and the price that rates it.

import { APIS, type ApiName } from '../models/apis.ts';
import type { Model, ServedBy, StreamUsage } from '../models/catalog.ts';
import type { Price } from '../models/price.ts';
import type { ByokFee } from './byok-settings.ts';
import type { OwnKey } from './own-key.ts';

export interface OwnDeployment {
  readonly providerModel: string;
  /**
   * While the fee is a share of the price: the catalog's price of `providerModel`. Otherwise the best price that is
   * known.
   */
  readonly price: Price | null;
  /** False: the fee is a share of a price, and `model_map` names a model whose price is unknown. */
  readonly hasFeeBasis: boolean;
  /** The setting of the service's own deployment of the model at the key's kind. */
  readonly streamUsage?: StreamUsage;
}

export interface OwnDeploymentParams {
  /** All models of the catalog, and the requested one. */
  readonly models: readonly Model[];
  readonly model: Model;
  readonly api: ApiName;
  /** The APIs of the key's kind. */
  readonly apis: readonly ApiName[];
  /** The organization's own price of the model; null: it has set none. */
  readonly ownPrice: Price | null;
  readonly fee: ByokFee | null;
}

/** null: the key does not serve the model on this API. */
export function findOwnDeployment(
  { kind, modelMap }: Pick<OwnKey, 'kind' | 'modelMap'>,
  { models, model, api, apis, ownPrice, fee }: OwnDeploymentParams,
): OwnDeployment | null {
  const serving = model.servedBy.filter((entry) => entry.via === undefined && entry.apis.includes(api));
  const served = serving.find((entry) => isOfKind(entry, kind));
  const mapped = Object.hasOwn(modelMap, model.id) ? modelMap[model.id] : undefined;
  const canMap = apis.includes(api) && APIS[api].kind === model.kind;
  const providerModel = served === undefined && !canMap ? undefined : (mapped ?? served?.providerModel);
  if (providerModel === undefined) return null;
  const isOther = fee?.kind === 'percent' && providerModel !== served?.providerModel;
  const price = isOther
    ? catalogPrice(models, kind, providerModel)
    : (ownPrice ?? served?.price ?? serving[0]?.price ?? null);
  return {
    providerModel,
    price,
    hasFeeBasis: !isOther || price !== null,
    ...(served?.streamUsage === undefined ? {} : { streamUsage: served.streamUsage }),
  };
}

/** The catalog's price of a provider model of a kind; null: it has none. */
function catalogPrice(models: readonly Model[], kind: string, providerModel: string): Price | null {
  for (const { servedBy } of models) {
    const found = servedBy.find((entry) => entry.providerModel === providerModel && isOfKind(entry, kind));
    if (found?.price != null) return found.price;
  }
  return null;
}

/** A model in the key's map without a catalog price, which a fee that is a share of it needs; null: there is none. */
export function unratedInMap(
  { kind, modelMap }: Pick<OwnKey, 'kind' | 'modelMap'>,
  models: readonly Model[],
  fee: ByokFee | null,
): string | null {
  if (fee?.kind !== 'percent') return null;
  return Object.values(modelMap).find((name) => catalogPrice(models, kind, name) === null) ?? null;
}

/** A kind is a configured provider, or every configured provider of a preset. */
function isOfKind({ provider }: ServedBy, kind: string): boolean {
  return provider.id === kind || provider.requests?.preset === kind;
}
