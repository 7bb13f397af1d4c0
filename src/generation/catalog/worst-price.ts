// Computes the highest price that any of several deployments may charge for a request, from which the hold is computed.

import type { Price, Rates } from '../../domain/models/price.ts';
import { type Factor, scaleUp } from '../../domain/money/factor.ts';
import { type PicoUsd, picoUsd } from '../../domain/money/pico-usd.ts';
import { ratesReached } from '../../domain/settlement/rates-of.ts';
import type { UsageDetails } from '../../domain/usage/usage.ts';

/** Pico-dollars per token (per image), whichever way a deployment counts an input token. */
export interface WorstRates {
  readonly input: PicoUsd | null;
  /** The price of input that may be cached for an hour; null: a deployment has no price for that. */
  readonly inputWithHourCache: PicoUsd | null;
  readonly output: PicoUsd | null;
  readonly image: PicoUsd | null;
}

export interface WorstPrice extends WorstRates {
  /**
   * By the most input tokens that a request may have, ascending: a tier has the highest rates of all sizes up to it.
   * Absent: the size changes nothing.
   */
  readonly tiers?: readonly WorstTier[];
  /** Charges beside tokens and images. Absent: none. */
  readonly extras?: WorstExtras;
}

export interface WorstExtras {
  readonly request: PicoUsd;
  readonly calls: Readonly<Record<string, WorstCall>>;
}

export interface WorstCall {
  readonly price: PicoUsd;
  /** The most calls; null: some deployment has no maximum of its own. */
  readonly max: number | null;
  /** How many calls are held whatever the request names, since some deployment's model makes them unasked. 0: none. */
  readonly unaskedMax: number;
}

export interface WorstTier extends WorstRates {
  readonly fromInput: number;
}

/**
 * `named`: what the request names, for which each of the prices has a price. null: a deployment has no price at all.
 */
export function worstOf(prices: readonly (Price | null)[], named: Named = NOTHING): WorstPrice | null {
  if (prices.includes(null)) return null;
  const known = prices as Price[];
  const sizes = [...new Set(known.flatMap(sizesOf))].toSorted((one, other) => one - other);
  const extras = worstExtras(known);
  const worst = { ...worstAt(known, 0, named), ...(extras === null ? {} : { extras }) };
  if (sizes.length === 0) return worst;
  const tiers: WorstTier[] = [];
  for (const fromInput of sizes) {
    const before = tiers.at(-1) ?? worst;
    tiers.push({ fromInput, ...higher(before, worstAt(known, fromInput, named)) });
  }
  return { ...worst, tiers };
}

/** What the request names: how it is to be served, and whether it wants audio. */
export interface Named {
  readonly details: UsageDetails;
  readonly wantsAudio: boolean;
}

const NOTHING: Named = { details: {}, wantsAudio: false };

function worstExtras(prices: readonly Price[]): WorstExtras | null {
  const terms = prices.flatMap((price) => price.terms ?? []);
  const tools = new Set(terms.flatMap(({ calls }) => Object.keys(calls)));
  const request =
    highest(
      [],
      terms.map((one) => one.request),
    ) ?? picoUsd(0n);
  if (tools.size === 0 && request === 0n) return null;
  const worstCall = (tool: string): WorstCall => {
    const found = terms.flatMap(({ calls }) => calls[tool] ?? []);
    const maxima = found.flatMap(({ max }) => max ?? []);
    const max = maxima.length < found.length ? null : Math.max(...maxima);
    const unaskedMax = Math.max(0, ...found.map((call) => (call.unasked === true ? (call.max ?? 0) : 0)));
    return { price: highest(found.map(({ price }) => price)) ?? picoUsd(0n), max, unaskedMax };
  };
  return { request, calls: Object.fromEntries([...tools].map((tool) => [tool, worstCall(tool)])) };
}

/** The numbers of input tokens from which on some rates differ. */
function sizesOf({ terms }: Price): number[] {
  if (terms === undefined) return [];
  const variations = [terms.serviceTiers, terms.speeds, terms.geos].flatMap((found) => Object.values(found));
  return [terms, ...variations].flatMap(({ tiers }) => tiers.map(({ fromInput }) => fromInput));
}

function worstAt(prices: readonly Price[], inputTokens: number, { details, wantsAudio }: Named): WorstRates {
  const found = prices.flatMap((price) =>
    ratesReached(price, { inputTokens, ...details }).map(({ rates, factor }) =>
      factor === null ? rates : scaled(rates, factor),
    ),
  );
  // Only the provider knows, once it has read the input, whether some of it is audio.
  const input = highest(
    found.map((rates) => rates.input),
    found.flatMap((rates) => [
      rates.cachedInput,
      rates.cacheWrite,
      rates.inputAudio ?? null,
      rates.cachedAudio ?? null,
    ]),
  );
  const audio = wantsAudio ? found.map(({ outputAudio }) => outputAudio ?? null) : [];
  return {
    input,
    inputWithHourCache: highest([input, ...found.map(({ hourCacheWrite }) => hourCacheWrite ?? null)]),
    output: highest(
      found.map(({ output }) => output),
      audio,
    ),
    image: highest(found.map(({ image }) => image)),
  };
}

function scaled(rates: Rates, factor: Factor): Rates {
  const scale = (amount: PicoUsd | null): PicoUsd | null => (amount === null ? null : picoUsd(scaleUp(amount, factor)));
  const { input, cachedInput, cacheWrite, output, image, ...others } = rates;
  const optional = OPTIONAL_RATES.flatMap((name) => {
    const amount = scale(others[name] ?? null);
    return amount === null ? [] : [[name, amount] as const];
  });
  return {
    input: scale(input),
    cachedInput: scale(cachedInput),
    cacheWrite: scale(cacheWrite),
    output: scale(output),
    image: scale(image),
    ...Object.fromEntries(optional),
  };
}

const OPTIONAL_RATES = ['hourCacheWrite', 'inputAudio', 'cachedAudio', 'outputAudio'] as const;

function higher(one: WorstRates, other: WorstRates): WorstRates {
  return {
    input: highest([one.input, other.input]),
    inputWithHourCache: highest([one.inputWithHourCache, other.inputWithHourCache]),
    output: highest([one.output, other.output]),
    image: highest([one.image, other.image]),
  };
}

/** The highest price. null: a needed one is missing in some deployment, so there is no upper bound. */
function highest(needed: readonly (PicoUsd | null)[], optional: readonly (PicoUsd | null)[] = []): PicoUsd | null {
  let result = 0n;
  for (const price of needed) {
    if (price === null) return null;
    if (price > result) result = price;
  }
  for (const price of optional) if (price !== null && price > result) result = price;
  return picoUsd(result);
}
