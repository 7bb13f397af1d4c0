// Rates recorded usage at our prices, meter by meter, so that each price can be compared with the provider's.

import type { Price, PriceTerms } from '../models/price.ts';
import { scaleUp } from '../money/factor.ts';
import { ratesOf } from '../settlement/rates-of.ts';
import { type Meter, meterRate } from './meters.ts';
import type { RecordedUsage } from './recorded-usage.ts';

export type PricesByVersion = ReadonlyMap<string, Price>;

/** A price as a fraction: `cost` is the price of `count` units. */
export interface UnitPrice {
  readonly cost: bigint;
  readonly count: bigint;
}

/** The cost of one meter of the usage, in pico-dollars; null: it has no price. */
export function meterCost(usage: RecordedUsage, meter: Meter, prices: PricesByVersion): bigint | null {
  const price = usage.priceVersion === null ? undefined : prices.get(usage.priceVersion);
  if (price === undefined) return null;
  const count = BigInt(usage.meters[meter]);
  if (meter === 'web_search') {
    const call = callPrice(price.terms);
    return call === null ? null : count * call;
  }
  const { rates, factor } = ratesOf(price, {
    inputTokens: usage.inputFrom,
    serviceTier: usage.tier ?? undefined,
    speed: usage.speed ?? undefined,
    geo: usage.geo ?? undefined,
  });
  const rate = meterRate(rates, meter);
  return rate === null ? null : scaleUp(count * rate, factor);
}

function callPrice(terms: PriceTerms | undefined): bigint | null {
  const { calls = {} } = terms ?? {};
  return Object.hasOwn(calls, 'web_search') ? (calls['web_search']?.price ?? null) : null;
}

/**
 * Our average price of a meter over these usages; if none of it was used, its price per million. null: it has no price.
 */
export function unitPrice(usages: readonly RecordedUsage[], meter: Meter, prices: PricesByVersion): UnitPrice | null {
  let cost = 0n;
  let count = 0n;
  for (const usage of usages) {
    const found = meterCost(usage, meter, prices);
    if (found === null) continue;
    cost += found;
    count += BigInt(usage.meters[meter]);
  }
  if (count > 0n) return { cost, count };
  for (const usage of usages) {
    const found = meterCost({ ...usage, meters: { ...usage.meters, [meter]: 1_000_000 } }, meter, prices);
    if (found !== null) return { cost: found, count: 1_000_000n };
  }
  return null;
}

/** The cost of `used` units at a unit price, to the nearest pico-dollar. */
export function costAt({ cost, count }: UnitPrice, used: number): bigint {
  const exact = cost * BigInt(used);
  const half = count / 2n;
  return exact >= 0n ? (exact + half) / count : -((-exact + half) / count);
}

/** Input sizes from which some price has other rates, and the size from which providers call a context long. */
export function inputSizes(prices: PricesByVersion): readonly number[] {
  const sizes = new Set([LONG_CONTEXT_FROM]);
  for (const { terms } of prices.values()) {
    if (terms === undefined) continue;
    const variations = [terms.serviceTiers, terms.speeds, terms.geos].flatMap((some) => Object.values(some));
    for (const { tiers } of [terms, ...variations]) for (const { fromInput } of tiers) sizes.add(fromInput);
  }
  return [...sizes].filter((size) => size > 0).sort((one, other) => one - other);
}

/** Anthropic's windows are 0-200k and 200k-1M. */
export const LONG_CONTEXT_FROM = 200_001;
