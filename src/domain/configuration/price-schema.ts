// The shape of a deployment's price, in the configuration file and in requests, and how it becomes plain data.

import { z } from 'zod';
import { MODEL_KINDS, type ModelKind } from '../models/apis.ts';
import { parsePricePerMillion, parseUsd } from '../money/parse-usd.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import type { ConfiguredPrice } from './configuration.ts';

function money(parse: (text: string) => PicoUsd | null, mustBe: string) {
  return z.string(mustBe).transform((text, context): PicoUsd => {
    const amount = parse(text);
    if (amount !== null) return amount;
    context.issues.push({ code: 'custom', message: mustBe, input: text });
    return z.NEVER;
  });
}

const pricePerMillion = money(
  parsePricePerMillion,
  'must be USD per million tokens as a decimal string in quotes with at most 6 decimals, such as "1.25"',
);
export const usdSchema = money(parseUsd, 'must be USD as a decimal string in quotes, such as "25.00"');

export const priceSchema = z.strictObject({
  input: pricePerMillion.optional(),
  cached_input: pricePerMillion.optional(),
  cache_write: pricePerMillion.optional(),
  cache_write_1h: pricePerMillion.optional(),
  output: pricePerMillion.optional(),
  image: usdSchema.optional(),
});

/** The amounts of a price as it is written. */
export type PriceFields = z.output<typeof priceSchema>;

/** A price as it is written, for a model of this kind. */
export function readPrice(kind: ModelKind, found: PriceFields): ConfiguredPrice {
  return {
    input: found.input ?? null,
    cachedInput: found.cached_input ?? null,
    cacheWrite: found.cache_write ?? null,
    ...(found.cache_write_1h === undefined ? {} : { hourCacheWrite: found.cache_write_1h }),
    output: found.output ?? (MODEL_KINDS[kind].outputIsFree ? ZERO_PICO_USD : null),
    image: found.image ?? null,
  };
}

/** null: the price has all that models of this kind need. */
export function priceProblem(kind: ModelKind, found: PriceFields): string | null {
  const missing = MODEL_KINDS[kind].neededPrices.find((needed) => found[needed] === undefined);
  return missing === undefined ? null : `a model of kind ${kind} needs the price "${missing}"`;
}
