// What a deployment of a model costs, as plain data.

import { type PicoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import { APIS, type ApiName, MODEL_KINDS } from './apis.ts';

/** Prices in pico-dollars per token (per image for `image`); null where the provider has no such price. */
export interface Price {
  readonly version: string;
  readonly input: PicoUsd | null;
  readonly cachedInput: PicoUsd | null;
  readonly cacheWrite: PicoUsd | null;
  /** Writes to a cache that lives for an hour. */
  readonly hourCacheWrite?: PicoUsd;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
}

/** The prices of a call on this API, from the prices of the model's deployment. */
export function priceOn(api: ApiName, price: Price): Price {
  return MODEL_KINDS[APIS[api].kind].outputIsFree ? { ...price, output: ZERO_PICO_USD } : price;
}
