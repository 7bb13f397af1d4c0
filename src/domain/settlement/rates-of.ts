// Finds the rates of a request in the terms of a price: by the size of its input, and by the service tier, the speed
// and the region that it is served with.

import {
  PLAIN,
  type Price,
  type PriceTerms,
  type Rates,
  type RateTier,
  type Variation,
  type VariationKind,
} from '../models/price.ts';
import { type Factor, multiply } from '../money/factor.ts';

/**
 * What a request is served with. A field that is absent or has a name in PLAIN means the provider's ordinary service;
 * but an absent service tier, or `auto`, is the price's default tier if it has one.
 */
export interface Conditions {
  readonly inputTokens: number;
  readonly serviceTier?: string | undefined;
  readonly speed?: string | undefined;
  readonly geo?: string | undefined;
}

/** The rates, before the factor is applied: a bill is summed first and rounded once. */
export interface RatesFound {
  readonly rates: Rates;
  readonly factor: Factor | null;
}

export const NO_TERMS: PriceTerms = {
  rates: {},
  tiers: [],
  serviceTiers: {},
  serviceTierDefault: null,
  speeds: {},
  geos: {},
  factor: null,
  calls: {},
  request: null,
  cost: null,
  from: null,
  between: null,
};

/**
 * Applied in this order, each overriding the one before: the size of the input, the service tier, the speed, the
 * region.
 */
export function ratesOf(price: Price, served: Conditions): RatesFound {
  const { terms = NO_TERMS } = price;
  const { inputTokens } = served;
  let rates = atSize({ ...price, ...terms.rates }, terms.tiers, inputTokens);
  let { factor } = terms;
  const variations = [
    variationOf(terms, 'serviceTiers', served.serviceTier),
    variationOf(terms, 'speeds', served.speed),
    variationOf(terms, 'geos', served.geo),
  ];
  for (const variation of variations) {
    if (variation === null) continue;
    rates = atSize({ ...rates, ...variation.rates }, variation.tiers, inputTokens);
    factor = multiply(factor, variation.factor);
  }
  return { rates, factor };
}

/**
 * All rates that a request may be served at. The provider may serve it plainly, whatever it names. If the request names
 * no service tier, the price's default tier may apply; if it names no region, the operator's account at the provider
 * may have any.
 */
export function ratesReached(price: Price, { inputTokens, serviceTier, speed, geo }: Conditions): RatesFound[] {
  const { terms } = price;
  if (terms === undefined) return [{ rates: price, factor: null }];
  const tiers = ['default', serviceTier ?? 'auto'];
  const speeds = speed === undefined ? [undefined] : [undefined, speed];
  const geos = [undefined, ...(geo === undefined ? Object.keys(terms.geos) : [geo])];
  const ways = tiers.flatMap((tier) => speeds.flatMap((pace) => geos.map((place) => [tier, pace, place] as const)));
  return ways.map(([tier, pace, place]) => ratesOf(price, { inputTokens, serviceTier: tier, speed: pace, geo: place }));
}

/** Whether the price covers this service tier, speed or region. */
export function hasVariation(terms: PriceTerms | undefined, kind: VariationKind, name: string): boolean {
  return PLAIN[kind].includes(name) || (terms !== undefined && Object.hasOwn(terms[kind], name));
}

export function hasCallPrice(terms: PriceTerms | undefined, tool: string): boolean {
  return terms !== undefined && Object.hasOwn(terms.calls, tool);
}

export function hasOutputAudio(terms: PriceTerms | undefined): boolean {
  return terms?.rates.outputAudio !== undefined;
}

/** null: the ordinary service, or a name that has no price. */
function variationOf(terms: PriceTerms, kind: VariationKind, name: string | undefined): Variation | null {
  const isAuto = kind === 'serviceTiers' && (name === undefined || name === 'auto');
  const meant = isAuto ? terms.serviceTierDefault : name;
  return meant != null && Object.hasOwn(terms[kind], meant) ? (terms[kind][meant] ?? null) : null;
}

function atSize(rates: Rates, tiers: readonly RateTier[], inputTokens: number): Rates {
  const tier = tiers.findLast(({ fromInput }) => inputTokens >= fromInput);
  return tier === undefined ? rates : { ...rates, ...tier.rates };
}
