// The catalog as the data plane uses it: every public name resolved, every splice value and upstream path prepared once per change, not per request.

import type { ApiName, Catalog, Model, Price, Provider } from '../../domain/models/catalog.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import { jsonModelId } from '../dialects/model-splice.ts';

/** One provider's offer of a model on one API, ready to be called. */
export interface Offer {
  readonly provider: Provider;
  readonly providerModel: string;
  /** The JSON string, quotes included, that replaces the client's `model` value. */
  readonly modelJson: Buffer;
  readonly price: Price | null;
}

/** A model as it is served on each API. */
export interface ServedModel {
  readonly model: Model;
  /** Offers by API, first to last as the catalog lists them. */
  readonly offers: ReadonlyMap<ApiName, readonly Offer[]>;
  /** Highest price among the offers of an API, part by part: what a hold must cover whichever offer serves. null: some offer has no price. */
  readonly worstPrice: ReadonlyMap<ApiName, WorstPrice | null>;
}

/** Prices per token (per image), in pico-dollars; the highest that any offer, and any way of counting an input token, may ask. */
export interface WorstPrice {
  readonly input: PicoUsd;
  readonly output: PicoUsd;
  readonly image: PicoUsd;
}

export interface ServingCatalog {
  readonly version: number;
  readonly models: readonly Model[];
  readonly byName: ReadonlyMap<string, ServedModel>;
}

/** Prepares a catalog snapshot for serving. Unpriced offers come last only if the catalog says so: order is the administrator's. */
export function prepareCatalog(catalog: Catalog): ServingCatalog {
  const prepared = new Map<Model, ServedModel>();
  const byName = new Map<string, ServedModel>();
  for (const [name, model] of catalog.byName) {
    let served = prepared.get(model);
    if (served === undefined) {
      served = prepareModel(model);
      prepared.set(model, served);
    }
    byName.set(name, served);
  }
  return { version: catalog.version, models: catalog.models, byName };
}

function prepareModel(model: Model): ServedModel {
  const offers = new Map<ApiName, Offer[]>();
  for (const served of model.servedBy) {
    const offer: Offer = {
      provider: served.provider,
      providerModel: served.providerModel,
      modelJson: jsonModelId(served.providerModel),
      price: served.price,
    };
    for (const api of served.apis) {
      const ofApi = offers.get(api) ?? [];
      ofApi.push(offer);
      offers.set(api, ofApi);
    }
  }
  const worstPrice = new Map<ApiName, WorstPrice | null>();
  for (const [api, ofApi] of offers) worstPrice.set(api, worstOf(ofApi));
  return { model, offers, worstPrice };
}

function worstOf(offers: readonly Offer[]): WorstPrice | null {
  let input = 0n;
  let output = 0n;
  let image = 0n;
  for (const { price } of offers) {
    if (price === null) return null;
    input = highest(input, price.input, price.cachedInput, price.cacheWrite);
    output = highest(output, price.output);
    image = highest(image, price.image);
  }
  return { input: input as PicoUsd, output: output as PicoUsd, image: image as PicoUsd };
}

function highest(first: bigint, ...others: readonly (bigint | null)[]): bigint {
  let result = first;
  for (const other of others) if (other !== null && other > result) result = other;
  return result;
}
