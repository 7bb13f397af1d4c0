// Computes the price of a usage exactly: whole tokens times whole pico-dollars. Only a factor can leave a fraction of a
// pico-dollar, which is rounded up, once for the whole bill.

import type { Price, Rates, VariationKind } from '../models/price.ts';
import { scaleUp } from '../money/factor.ts';
import { type PicoUsd, picoUsd } from '../money/pico-usd.ts';
import type { ToolCalls, Usage, UsageDetails } from '../usage/usage.ts';
import { hasCallPrice, hasOutputAudio, hasVariation, ratesOf, ratesReached } from './rates-of.ts';

/**
 * The highest cost that is rated: 10^18 dollars. No real usage costs so much, but a provider may report any count, and
 * a price's factors multiply it. The ledger and ClickHouse hold 38 digits, so a hundred million such costs can be
 * summed.
 */
const COST_MAX = 10n ** 30n;

/**
 * The cost of a usage that has passed checkUsage. null: a count that costs something was not reported or has no price
 * (unknown is never zero), or the cost is above COST_MAX. Free output (spec 8, evaluation) is a price of 0, not an
 * absent price. Whatever has no price of its own (`unpricedPart`) is rated at the plain rates.
 */
export function rateUsage(usage: Usage, price: Price): PicoUsd | null {
  const cost = price.terms === undefined ? rateCounts(usage, price) : rateByTerms(usage, price);
  return cost === null || cost > COST_MAX ? null : cost;
}

function rateByTerms(usage: Usage, price: Price): PicoUsd | null {
  const reported = costReported(usage.details, price);
  if (reported !== null) return reported;
  const { serviceTier, speed, geo } = usage.details ?? {};
  const { rates, factor } = ratesOf(price, { inputTokens: usage.inputTokens ?? 0, serviceTier, speed, geo });
  const cost = rateCounts(usage, rates);
  if (cost === null) return null;
  const audio =
    usage.details === undefined || usage.images !== null ? 0n : audioDifference(usage, usage.details, rates);
  return picoUsd(scaleUp(cost + audio, factor) + rateCalls(usage.details?.calls, price) + (price.terms?.request ?? 0n));
}

/** The provider's own figure, if the price says to charge by it; null: the rates apply. */
function costReported(details: UsageDetails | undefined, { terms }: Price): PicoUsd | null {
  return terms?.cost === 'reported' ? (details?.reportedCost ?? null) : null;
}

/**
 * The most that may be charged for a usage whose cost the provider has reported: every token, or image, at the dearest
 * rate that may have applied, since a reply does not always say which one did. null: only the hold bounds the charge,
 * since no cost was reported or part of the usage has no rate.
 */
export function costCeiling(usage: Usage, price: Price): PicoUsd | null {
  const { details } = usage;
  if (details === undefined || costReported(details, price) === null) return null;
  if (unpricedRates(details, price) !== null) return null;
  const { serviceTier, speed, geo, calls } = details;
  const reached = ratesReached(price, { inputTokens: usage.inputTokens ?? 0, serviceTier, speed, geo });
  const most = dearest(reached.map(({ rates, factor }) => scaleUp(mostOf(usage, rates), factor)));
  return picoUsd(most + rateCalls(calls, price) + (price.terms?.request ?? 0n));
}

function mostOf({ images, inputTokens, outputTokens }: Usage, rates: Rates): bigint {
  const { image, input, cachedInput, cacheWrite, hourCacheWrite, inputAudio, cachedAudio, output, outputAudio } = rates;
  if (images !== null) return BigInt(images) * (image ?? 0n);
  const perInput = dearest([input, cachedInput, cacheWrite, hourCacheWrite, inputAudio, cachedAudio]);
  return BigInt(inputTokens ?? 0) * perInput + BigInt(outputTokens ?? 0) * dearest([output, outputAudio]);
}

function dearest(amounts: readonly (bigint | null | undefined)[]): bigint {
  return amounts.reduce<bigint>((most, amount) => (amount != null && amount > most ? amount : most), 0n);
}

/**
 * How much more (or less) the audio tokens cost than the same number of text tokens. `rateCounts` rates them as text.
 */
function audioDifference(usage: Usage, details: UsageDetails, rates: Rates): bigint {
  const { inputAudioTokens = 0, cachedAudioTokens = 0, outputAudioTokens = 0 } = details;
  const { inputAudio, cachedAudio, outputAudio } = rates;
  const [input, output] = [rates.input ?? 0n, rates.output ?? 0n];
  const textCached = rates.cachedInput ?? input;
  // A part cannot be more than the whole.
  const cached = Math.min(cachedAudioTokens, usage.cachedInputTokens ?? 0);
  const plain = (usage.inputTokens ?? 0) - (usage.cachedInputTokens ?? 0) - (usage.cacheWriteTokens ?? 0);
  const fresh = Math.min(Math.max(0, inputAudioTokens - cached), plain);
  const made = Math.min(outputAudioTokens, usage.outputTokens ?? 0);
  const audioCached = cachedAudio ?? inputAudio ?? textCached;
  return (
    BigInt(fresh) * ((inputAudio ?? input) - input) +
    BigInt(cached) * (audioCached - textCached) +
    BigInt(made) * ((outputAudio ?? output) - output)
  );
}

/** The cost of the tool calls that have a price; `unpricedPart` names a call without one. */
function rateCalls(calls: readonly ToolCalls[] = [], { terms }: Price): bigint {
  let cost = 0n;
  for (const { tool, count } of calls) {
    if (count !== null && terms !== undefined && hasCallPrice(terms, tool))
      cost += BigInt(count) * (terms.calls[tool]?.price ?? 0n);
  }
  return cost;
}

function rateCounts(usage: Usage, rates: Rates): PicoUsd | null {
  // Spec 8: images are billed per image; their tokens are recorded only for analytics. The price of a text model may
  // also have a rate per image.
  if (usage.images !== null) return rates.image === null ? null : picoUsd(BigInt(usage.images) * rates.image);
  const input = rateInput(usage, rates);
  const output = rateCount(usage.outputTokens, rates.output);
  return input === null || output === null ? null : picoUsd(input + output);
}

/**
 * Cached tokens and cache writes without a rate of their own cost the input rate. Parts that were not reported count as
 * plain input.
 */
function rateInput(usage: Usage, rates: Rates): bigint | null {
  if (rates.input === null || usage.inputTokens === null) return rates.input === 0n ? 0n : null;
  const cached = usage.cachedInputTokens ?? 0;
  const cacheWrite = usage.cacheWriteTokens ?? 0;
  const hourCacheWrite = usage.hourCacheWriteTokens ?? 0;
  const plain = usage.inputTokens - cached - cacheWrite;
  let cost = BigInt(plain) * rates.input;
  // Most requests have no cached tokens. Converting a number to a bigint leaves compiled code, which is slow.
  if (cached > 0) cost += BigInt(cached) * (rates.cachedInput ?? rates.input);
  const shortPrice = rates.cacheWrite ?? rates.input;
  if (cacheWrite > 0) cost += BigInt(cacheWrite - hourCacheWrite) * shortPrice;
  if (hourCacheWrite > 0) cost += BigInt(hourCacheWrite) * (rates.hourCacheWrite ?? shortPrice);
  return cost;
}

function rateCount(count: number | null, price: PicoUsd | null): bigint | null {
  if (price === 0n || (price === null && count === 0)) return 0n;
  return price === null || count === null ? null : BigInt(count) * price;
}

/**
 * Names a part of the usage that has no price of its own, so that its true cost may be above the rated one; null: none.
 */
export function unpricedPart({ hourCacheWriteTokens, details }: Usage, price: Price | null): string | null {
  const unpriced = details === undefined ? null : unpricedDetail(details, price);
  if (unpriced !== null || (price !== null && costReported(details, price) !== null)) return unpriced;
  return (hourCacheWriteTokens ?? 0) > 0 && (price?.hourCacheWrite ?? null) === null ? 'cache_write_1h' : null;
}

/** The same for the details of a usage alone. */
export function unpricedDetail(details: UsageDetails, price: Price | null): string | null {
  return price !== null && costReported(details, price) !== null ? null : unpricedRates(details, price);
}

/** Names a detail that has no rate, even if the provider's reported cost is charged instead. */
function unpricedRates(details: UsageDetails, price: Price | null): string | null {
  const { serviceTier, speed, geo, calls = [] } = details;
  const lacks = (kind: VariationKind, name: string | undefined): boolean =>
    name !== undefined && !hasVariation(price?.terms, kind, name);
  if (lacks('serviceTiers', serviceTier)) return `service_tier ${serviceTier}`;
  if (lacks('speeds', speed)) return `speed ${speed}`;
  if (lacks('geos', geo)) return `inference_geo ${geo}`;
  const call = calls.find(({ tool, count }) => count === null || !hasCallPrice(price?.terms, tool));
  if (call !== undefined) return call.reportedAs;
  if ((details.outputAudioTokens ?? 0) > 0 && !hasOutputAudio(price?.terms)) return 'output_audio';
  return details.unpriced ?? null;
}
