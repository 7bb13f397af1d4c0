// The highest price that any of some deployments may charge for a request: what a hold is made of.

import type { Price, Rates } from '../../domain/models/price.ts';
import { type Factor, scaleUp } from '../../domain/money/factor.ts';
import { type PicoUsd, picoUsd } from '../../domain/money/pico-usd.ts';
import { ratesOf } from '../../domain/settlement/rates-of.ts';
import type { UsageDetails } from '../../domain/usage/usage.ts';

/** Per token (per image) in pico-dollars, however a deployment counts an input token. */
export interface WorstRates {
  readonly input: PicoUsd | null;
  /** The price of input that may be written to a cache for an hour; null: a deployment has no price for that. */
  readonly inputWithHourCache: PicoUsd | null;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
}

export interface WorstPrice extends WorstRates {
  /**
   * For a request that may have so many input tokens, in ascending order: the highest of all sizes up to there. Absent:
   * the size changes nothing.
   */
  readonly tiers?: readonly WorstTier[];
}

export interface WorstTier extends WorstRates {
  readonly fromInput: number;
}

/**
 * `named`: what the request asks to be served with; each of the prices has a price for it. null: a deployment has no
 * price at all.
 */
export function worstOf(prices: readonly (Price | null)[], named: UsageDetails = {}): WorstPrice | null {
  if (prices.includes(null)) return null;
  const known = prices as Price[];
  const sizes = [...new Set(known.flatMap(sizesOf))].toSorted((one, other) => one - other);
  const worst = worstAt(known, 0, named);
  if (sizes.length === 0) return worst;
  const tiers: WorstTier[] = [];
  for (const fromInput of sizes) {
    const before = tiers.at(-1) ?? worst;
    tiers.push({ fromInput, ...higher(before, worstAt(known, fromInput, named)) });
  }
  return { ...worst, tiers };
}

/** From how many input tokens on some of its rates are others. */
function sizesOf({ terms }: Price): number[] {
  if (terms === undefined) return [];
  const variations = [terms.serviceTiers, terms.speeds, terms.geos].flatMap((found) => Object.values(found));
  return [terms, ...variations].flatMap(({ tiers }) => tiers.map(({ fromInput }) => fromInput));
}

function worstAt(prices: readonly Price[], inputTokens: number, named: UsageDetails): WorstRates {
  const found = prices.flatMap((price) => ratesReached(price, inputTokens, named));
  const input = highest(
    found.map((rates) => rates.input),
    found.flatMap(({ cachedInput, cacheWrite }) => [cachedInput, cacheWrite]),
  );
  return {
    input,
    inputWithHourCache: highest([input, ...found.map(({ hourCacheWrite }) => hourCacheWrite ?? null)]),
    output: highest(found.map(({ output }) => output)),
    image: highest(found.map(({ image }) => image)),
  };
}

/** A request that names no service tier may be served with the plain one as well as with the price's default. */
function ratesReached(price: Price, inputTokens: number, { serviceTier, speed, geo }: UsageDetails): Rates[] {
  if (price.terms === undefined) return [price];
  const tiers = serviceTier === undefined ? ['default', 'auto'] : [serviceTier];
  return tiers.map((name) => {
    const { rates, factor } = ratesOf(price, { inputTokens, serviceTier: name, speed, geo });
    return factor === null ? rates : scaled(rates, factor);
  });
}

function scaled(rates: Rates, factor: Factor): Rates {
  const scale = (amount: PicoUsd | null): PicoUsd | null => (amount === null ? null : picoUsd(scaleUp(amount, factor)));
  const hourCacheWrite = scale(rates.hourCacheWrite ?? null);
  return {
    input: scale(rates.input),
    cachedInput: scale(rates.cachedInput),
    cacheWrite: scale(rates.cacheWrite),
    output: scale(rates.output),
    image: scale(rates.image),
    ...(hourCacheWrite === null ? {} : { hourCacheWrite }),
  };
}

function higher(one: WorstRates, other: WorstRates): WorstRates {
  return {
    input: highest([one.input, other.input]),
    inputWithHourCache: highest([one.inputWithHourCache, other.inputWithHourCache]),
    output: highest([one.output, other.output]),
    image: highest([one.image, other.image]),
  };
}

/** null: a needed price is missing in some deployment, so there is no upper bound. */
function highest(needed: readonly (PicoUsd | null)[], optional: readonly (PicoUsd | null)[] = []): PicoUsd | null {
  let result = 0n;
  for (const price of needed) {
    if (price === null) return null;
    if (price > result) result = price;
  }
  for (const price of optional) if (price !== null && price > result) result = price;
  return picoUsd(result);
}
