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

/** What a request is served with. Absent, or a plain name: nothing special. */
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

/** In this order, each above the one before: the size of the input, the service tier, the speed, the region. */
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
 * The rates that a request may be served with. A provider may serve it plainly whatever it names, and one that names no
 * service tier with the price's default. Where it names no region, the operator's account there may have any.
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

/** Whether the price says what this costs. */
export function hasVariation(terms: PriceTerms | undefined, kind: VariationKind, name: string): boolean {
  return PLAIN[kind].includes(name) || (terms !== undefined && Object.hasOwn(terms[kind], name));
}

export function hasCallPrice(terms: PriceTerms | undefined, tool: string): boolean {
  return terms !== undefined && Object.hasOwn(terms.calls, tool);
}

export function hasOutputAudio(terms: PriceTerms | undefined): boolean {
  return terms?.rates.outputAudio !== undefined;
}

/** null: the plain one, or one that has no price. */
function variationOf(terms: PriceTerms, kind: VariationKind, name: string | undefined): Variation | null {
  const isAuto = kind === 'serviceTiers' && (name === undefined || name === 'auto');
  const meant = isAuto ? terms.serviceTierDefault : name;
  return meant != null && Object.hasOwn(terms[kind], meant) ? (terms[kind][meant] ?? null) : null;
}

function atSize(rates: Rates, tiers: readonly RateTier[], inputTokens: number): Rates {
  const tier = tiers.findLast(({ fromInput }) => inputTokens >= fromInput);
  return tier === undefined ? rates : { ...rates, ...tier.rates };
}
