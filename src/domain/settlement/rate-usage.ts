// Computes the price of a usage exactly: whole tokens times whole pico-dollars, so nothing is ever rounded.

import type { Price } from '../models/price.ts';
import { type PicoUsd, picoUsd } from '../money/pico-usd.ts';
import type { Usage } from '../usage/usage.ts';

/**
 * The usage must have passed checkUsage. null when a count that costs something was not reported or has no price:
 * unknown is never zero. Free output (spec 8, evaluation) is a price of 0, not an absent one.
 */
export function rateUsage(usage: Usage, price: Price): PicoUsd | null {
  // Spec 8: images are billed per image; their tokens are recorded only for analytics.
  if (price.image !== null) return usage.images === null ? null : picoUsd(BigInt(usage.images) * price.image);
  const input = rateInput(usage, price);
  const output = rateCount(usage.outputTokens, price.output);
  return input === null || output === null ? null : picoUsd(input + output);
}

/**
 * Cached tokens and cache writes cost the input price where they have none of their own; parts that were not reported
 * count as plain input.
 */
function rateInput(usage: Usage, price: Price): bigint | null {
  if (price.input === null || usage.inputTokens === null) return price.input === 0n ? 0n : null;
  const cached = usage.cachedInputTokens ?? 0;
  const cacheWrite = usage.cacheWriteTokens ?? 0;
  const hourCacheWrite = usage.hourCacheWriteTokens ?? 0;
  const plain = usage.inputTokens - cached - cacheWrite;
  let cost = BigInt(plain) * price.input;
  // Most requests have none, and making a bigint of a number leaves compiled code.
  if (cached > 0) cost += BigInt(cached) * (price.cachedInput ?? price.input);
  const shortPrice = price.cacheWrite ?? price.input;
  if (cacheWrite > 0) cost += BigInt(cacheWrite - hourCacheWrite) * shortPrice;
  if (hourCacheWrite > 0) cost += BigInt(hourCacheWrite) * (price.hourCacheWrite ?? shortPrice);
  return cost;
}

function rateCount(count: number | null, price: PicoUsd | null): bigint | null {
  if (price === 0n || (price === null && count === 0)) return 0n;
  return price === null || count === null ? null : BigInt(count) * price;
}

/** Whether some part of a usage has no price of its own and is known to cost more than the price it is rated with. */
export function lacksPrice({ hourCacheWriteTokens }: Usage, price: Price | null): boolean {
  return (hourCacheWriteTokens ?? 0) > 0 && (price?.hourCacheWrite ?? null) === null;
}
