// The quantities that providers bill separately, and our rate for each. Their names are those of a price in the
// configuration file.

import type { Rates } from '../models/price.ts';

export const METERS = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'output',
  'image',
  'web_search',
] as const;
export type Meter = (typeof METERS)[number];

/** How much was used of each: tokens, images or calls. */
export type Meters = Readonly<Record<Meter, number>>;

export const NO_METERS: Meters = {
  input: 0,
  cached_input: 0,
  cache_write: 0,
  cache_write_1h: 0,
  output: 0,
  image: 0,
  web_search: 0,
};

export function addMeters(one: Meters, other: Meters, sign: 1 | -1 = 1): Meters {
  return mapMeters((meter) => one[meter] + sign * other[meter]);
}

export function sumMeters(lines: readonly { readonly meters: Meters }[]): Meters {
  return lines.reduce((sum, { meters }) => addMeters(sum, meters), NO_METERS);
}

export function mapMeters(of: (meter: Meter) => number): Meters {
  return Object.fromEntries(METERS.map((meter) => [meter, of(meter)])) as Record<Meter, number>;
}

export function isNothing(meters: Meters): boolean {
  return METERS.every((meter) => meters[meter] === 0);
}

/** The meters that are not zero, as text: `output +1,204`. */
export function describeMeters(meters: Meters, isSigned = false): string {
  const shown = METERS.filter((meter) => meters[meter] !== 0);
  return shown.map((meter) => `${meter} ${isSigned ? signed(meters[meter]) : grouped(meters[meter])}`).join(', ');
}

function signed(count: number): string {
  return count > 0 ? `+${grouped(count)}` : grouped(count);
}

export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** Cached tokens and cache writes cost the input rate if they have none of their own, as in domain/settlement. */
export function meterRate(rates: Rates, meter: Exclude<Meter, 'web_search'>): bigint | null {
  switch (meter) {
    case 'input':
      return rates.input;
    case 'cached_input':
      return rates.cachedInput ?? rates.input;
    case 'cache_write':
      return rates.cacheWrite ?? rates.input;
    case 'cache_write_1h':
      return rates.hourCacheWrite ?? rates.cacheWrite ?? rates.input;
    case 'output':
      return rates.output;
    case 'image':
      return rates.image;
  }
}
