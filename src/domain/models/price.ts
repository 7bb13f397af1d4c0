// What a deployment of a model costs, as plain data.

import type { Factor } from '../money/factor.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import { APIS, type ApiName, MODEL_KINDS } from './apis.ts';

/** Prices in pico-dollars per token (per image for `image`); null where the provider has no such price. */
export interface Rates {
  readonly input: PicoUsd | null;
  readonly cachedInput: PicoUsd | null;
  readonly cacheWrite: PicoUsd | null;
  /** Writes to a cache that lives for an hour. */
  readonly hourCacheWrite?: PicoUsd;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
  /** Audio that is read, that is read from a cache, and that is made; without a price of its own it costs as text. */
  readonly inputAudio?: PicoUsd;
  readonly cachedAudio?: PicoUsd;
  readonly outputAudio?: PicoUsd;
}

export interface Price extends Rates {
  readonly version: string;
  /** Absent, as nearly always: the rates above are all there is. */
  readonly terms?: PriceTerms;
}

/** What changes the rates of a request, or is charged beside them. */
export interface PriceTerms {
  /** Beside those of the price: of audio. */
  readonly rates: SomeRates;
  /** In ascending order. */
  readonly tiers: readonly RateTier[];
  readonly serviceTiers: Variations;
  /** The service tier of a request that names none, or `auto`; null: the plain one. */
  readonly serviceTierDefault: string | null;
  readonly speeds: Variations;
  readonly geos: Variations;
  /** On all that tokens and images cost, as a region's; null: none. */
  readonly factor: Factor | null;
  /** Of tools that the provider runs, by their names. */
  readonly calls: Readonly<Record<string, CallPrice>>;
  /** Of each request that is charged; null: nothing. */
  readonly request: PicoUsd | null;
  /** `reported`: what the reply says that it cost is charged, at most what the prices make of its usage. */
  readonly cost: 'reported' | null;
  /** Since when it is valid; null: always. In milliseconds since 1970. */
  readonly from: number | null;
  /** At which hours of the day it is valid; null: at all. */
  readonly between: DayHours | null;
}

/** In minutes since midnight of UTC; `until` before `from` is that of the next day. */
export interface DayHours {
  readonly from: number;
  readonly until: number;
}

export interface CallPrice {
  readonly price: PicoUsd;
  /** How many calls are held for where the request does not say; null: such a request is refused. */
  readonly max: number | null;
  /** The model calls it also where the request does not name it, so that every request holds for `max`. */
  readonly unasked?: true;
}

/** The rates that differ; the others stay. */
export type SomeRates = { readonly [Name in keyof Rates]?: PicoUsd };

/** Rates of the whole request, from so many input tokens on. */
export interface RateTier {
  readonly fromInput: number;
  readonly rates: SomeRates;
}

/** By the name that requests and replies have for it. */
export type Variations = Readonly<Record<string, Variation>>;

/** The rates of a service tier, a speed or a region. */
export interface Variation {
  readonly rates: SomeRates;
  /** Its own, which stand above those of the price. */
  readonly tiers: readonly RateTier[];
  readonly factor: Factor | null;
}

export type VariationKind = 'serviceTiers' | 'speeds' | 'geos';

/** Names of what a price without terms is for. `on_demand` is Groq's, `standard_only` Anthropic's. */
export const PLAIN: Readonly<Record<VariationKind, readonly string[]>> = {
  serviceTiers: ['auto', 'default', 'standard', 'standard_only', 'on_demand'],
  speeds: ['standard'],
  geos: ['global', 'not_available'],
};

/** The prices of a call on this API, from the prices of the model's deployment. */
export function priceOn(api: ApiName, price: Price): Price {
  // A count is free: it uses no tokens, and no fee is for it.
  if (api === 'count_tokens')
    return price.terms == null ? price : { ...price, terms: { ...price.terms, request: null } };
  if (!MODEL_KINDS[APIS[api].kind].outputIsFree) return price;
  const { terms } = price;
  return { ...price, output: ZERO_PICO_USD, ...(terms === undefined ? {} : { terms: withFreeOutput(terms) }) };
}

function withFreeOutput(terms: PriceTerms): PriceTerms {
  const free = (rates: SomeRates): SomeRates => ('output' in rates ? { ...rates, output: ZERO_PICO_USD } : rates);
  const freeTiers = (tiers: readonly RateTier[]): readonly RateTier[] =>
    tiers.map(({ fromInput, rates }) => ({ fromInput, rates: free(rates) }));
  const freeVariations = (variations: Variations): Variations =>
    Object.fromEntries(
      Object.entries(variations).map(([name, { rates, tiers, factor }]) => [
        name,
        { rates: free(rates), tiers: freeTiers(tiers), factor },
      ]),
    );
  return {
    ...terms,
    tiers: freeTiers(terms.tiers),
    serviceTiers: freeVariations(terms.serviceTiers),
    speeds: freeVariations(terms.speeds),
    geos: freeVariations(terms.geos),
  };
}
