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
  /** Audio input, cached audio input and audio output; without a rate of its own, audio costs the same as text. */
  readonly inputAudio?: PicoUsd;
  readonly cachedAudio?: PicoUsd;
  readonly outputAudio?: PicoUsd;
}

export interface Price extends Rates {
  readonly version: string;
  /** Usually absent: the rates above are the whole price. */
  readonly terms?: PriceTerms;
}

/** What changes the rates of a request, or is charged beside them. */
export interface PriceTerms {
  /** Rates beside those of the price itself: audio. */
  readonly rates: SomeRates;
  /** In ascending order. */
  readonly tiers: readonly RateTier[];
  readonly serviceTiers: Variations;
  /** The service tier that applies if a request names none, or `auto`; null: the ordinary one. */
  readonly serviceTierDefault: string | null;
  readonly speeds: Variations;
  readonly geos: Variations;
  /** Multiplies the cost of tokens and images, as a region's factor does; null: no factor. */
  readonly factor: Factor | null;
  /** Prices of calls of tools that the provider runs, by tool name. */
  readonly calls: Readonly<Record<string, CallPrice>>;
  /** A fee for each charged request; null: none. */
  readonly request: PicoUsd | null;
  /** `reported`: the cost that the reply states is charged, but at most what the rates make of its usage. */
  readonly cost: 'reported' | null;
  /** When the price becomes valid, in milliseconds since 1970; null: it always was. */
  readonly from: number | null;
  /** The hours of the day at which the price is valid; null: all. */
  readonly between: DayHours | null;
}

/** In minutes since midnight UTC. If `until` is before `from`, it is on the next day. */
export interface DayHours {
  readonly from: number;
  readonly until: number;
}

export interface CallPrice {
  readonly price: PicoUsd;
  /** How many calls the hold covers if the request sets no limit; null: such a request is refused. */
  readonly max: number | null;
  /** The model calls the tool even if the request does not name it, so every request's hold covers `max` calls. */
  readonly unasked?: true;
}

/** The rates that differ; the others stay. */
export type SomeRates = { readonly [Name in keyof Rates]?: PicoUsd };

/** Rates for the whole of a request that has at least `fromInput` input tokens. */
export interface RateTier {
  readonly fromInput: number;
  readonly rates: SomeRates;
}

/** Keyed by the name that requests and replies use. */
export type Variations = Readonly<Record<string, Variation>>;

/** The rates of a service tier, a speed or a region. */
export interface Variation {
  readonly rates: SomeRates;
  /** The variation's own tiers, which override those of the price. */
  readonly tiers: readonly RateTier[];
  readonly factor: Factor | null;
}

export type VariationKind = 'serviceTiers' | 'speeds' | 'geos';

/**
 * The names of a provider's ordinary service, which a price without terms covers. `on_demand` is Groq's,
 * `standard_only` Anthropic's.
 */
export const PLAIN: Readonly<Record<VariationKind, readonly string[]>> = {
  serviceTiers: ['auto', 'default', 'standard', 'standard_only', 'on_demand'],
  speeds: ['standard'],
  geos: ['global', 'not_available'],
};

/** The prices of a call on this API, from the prices of the model's deployment. */
export function priceOn(api: ApiName, price: Price): Price {
  // Counting tokens is free: it uses no tokens, and the fee per request does not apply.
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
