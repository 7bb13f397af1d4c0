// Computes in fractions what a usage costs by a price as the configuration file writes it. It shares no code with the
// gateway, so that the two can be compared to the pico-dollar.

import type { Usage } from '../../src/domain/usage/usage.ts';

/** A count and its price. */
export type BillLine = readonly [count: number, price: string];

export interface BillLines {
  /** Tokens, at dollars per million. */
  readonly tokens?: readonly BillLine[];
  /** Images, at dollars each. */
  readonly images?: readonly BillLine[];
  /** Factors for tokens and images. */
  readonly factors?: readonly string[];
  /** Calls and requests, at dollars each. */
  readonly beside?: readonly BillLine[];
}

interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const PICO_PER_USD = 10n ** 12n;

function fraction(decimal: string): Fraction {
  const [whole = '0', decimals = ''] = decimal.split('.');
  return { numerator: BigInt(whole + decimals), denominator: 10n ** BigInt(decimals.length) };
}

const times = (one: Fraction, other: Fraction): Fraction => ({
  numerator: one.numerator * other.numerator,
  denominator: one.denominator * other.denominator,
});
const plus = (one: Fraction, other: Fraction): Fraction => ({
  numerator: one.numerator * other.denominator + other.numerator * one.denominator,
  denominator: one.denominator * other.denominator,
});
const whole = (count: number | bigint): Fraction => ({ numerator: BigInt(count), denominator: 1n });
const sum = (lines: readonly BillLine[]): Fraction =>
  lines.map(([count, price]) => times(whole(count), fraction(price))).reduce(plus, whole(0));

/** The sum in pico-dollars, rounded up to a whole one. */
export function billOf({ tokens = [], images = [], factors = [], beside = [] }: BillLines): bigint {
  const perToken = times(sum(tokens), { numerator: 1n, denominator: 1_000_000n });
  const scaled = factors.map(fraction).reduce(times, plus(perToken, sum(images)));
  const { numerator, denominator } = times(plus(scaled, sum(beside)), whole(PICO_PER_USD));
  return (numerator + denominator - 1n) / denominator;
}

interface WrittenRates {
  readonly input?: string;
  readonly cached_input?: string;
  readonly cache_write?: string;
  readonly cache_write_1h?: string;
  readonly output?: string;
  readonly input_audio?: string;
  readonly cached_audio?: string;
  readonly output_audio?: string;
}

interface WrittenVariation extends WrittenRates {
  readonly tiers?: readonly (WrittenRates & { readonly from_input: number })[];
  readonly factor?: string;
}

type WrittenVariations = Readonly<Record<string, WrittenVariation | string>>;

/** A price of tokens as a configuration file writes it. */
export interface WrittenPrice extends WrittenVariation {
  readonly service_tiers?: WrittenVariations;
  readonly service_tier_default?: string;
  readonly speeds?: WrittenVariations;
  readonly geos?: WrittenVariations;
  readonly calls?: Readonly<Record<string, string | { readonly usd: string }>>;
  readonly request?: string;
}

/** What this usage of tokens costs, in pico-dollars. */
export function exactCost(price: WrittenPrice, usage: Usage): bigint {
  const { details = {} } = usage;
  const input = usage.inputTokens ?? 0;
  const tier = details.serviceTier ?? 'auto';
  const served = [
    price,
    price.service_tiers?.[tier === 'auto' ? (price.service_tier_default ?? '') : tier],
    price.speeds?.[details.speed ?? ''],
    price.geos?.[details.geo ?? ''],
  ].filter((found) => found !== undefined);
  const rates = served.reduce<WrittenRates>((before, found) => {
    if (typeof found === 'string') return before;
    const size = found.tiers?.filter(({ from_input }) => from_input <= input).at(-1);
    return { ...before, ...found, ...size };
  }, {});
  const factors = served.map((found) => (typeof found === 'string' ? found : (found.factor ?? '1')));
  const calls = (details.calls ?? []).map(({ tool, count }): BillLine => {
    const written = price.calls?.[tool] ?? '0';
    return [count ?? 0, typeof written === 'string' ? written : written.usd];
  });
  return billOf({ tokens: tokenLines(rates, usage), factors, beside: [...calls, [1, price.request ?? '0']] });
}

/** The lines of the bill; each token is in exactly one of them. */
function tokenLines(rates: WrittenRates, usage: Usage): readonly BillLine[] {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, hourCacheWriteTokens, outputTokens, details = {} } = usage;
  const [cached, written, hour, output] = [
    cachedInputTokens ?? 0,
    cacheWriteTokens ?? 0,
    hourCacheWriteTokens ?? 0,
    outputTokens ?? 0,
  ];
  const fresh = (inputTokens ?? 0) - cached - written;
  const cachedSpeech = Math.min(details.cachedAudioTokens ?? 0, cached);
  const freshSpeech = Math.min(Math.max(0, (details.inputAudioTokens ?? 0) - cachedSpeech), fresh);
  const speech = Math.min(details.outputAudioTokens ?? 0, output);
  const plain = rates.input ?? '0';
  const made = rates.output ?? '0';
  const fromCache = rates.cached_input ?? plain;
  const toCache = rates.cache_write ?? plain;
  return [
    [fresh - freshSpeech, plain],
    [freshSpeech, rates.input_audio ?? plain],
    [cached - cachedSpeech, fromCache],
    [cachedSpeech, rates.cached_audio ?? rates.input_audio ?? fromCache],
    [written - hour, toCache],
    [hour, rates.cache_write_1h ?? toCache],
    [output - speech, made],
    [speech, rates.output_audio ?? made],
  ];
}
