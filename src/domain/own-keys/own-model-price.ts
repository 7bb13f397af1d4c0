// The price of a model for an organization at its own provider.

import type { Price } from '../models/price.ts';

export interface OwnModelPrice {
  /** Public id. */
  readonly model: string;
  /** In the terms of the configuration file. */
  readonly words: Readonly<Record<string, unknown>>;
  readonly price: Price;
}

/** The most digits before the point, of dollars and of factors. */
const WHOLE_DIGITS_MAX = 7;

/** Whether an amount of the price is so large that the cost of some usage would exceed the maximum (rate-usage.ts). */
function isTooLarge(words: unknown): boolean {
  if (typeof words === 'string') return (/^\d+/.exec(words)?.[0].length ?? 0) > WHOLE_DIGITS_MAX;
  return typeof words === 'object' && words !== null && Object.values(words).some(isTooLarge);
}

/** An organization may have a thousand prices, and a gateway reads all of them when one has changed. */
const WORDS_BYTES_MAX = 4_096;

/** What is wrong with a price as it is written; null: nothing. */
export function problemOfWords(words: object): string | null {
  if (Buffer.byteLength(JSON.stringify(words)) > WORDS_BYTES_MAX)
    return `must have at most ${WORDS_BYTES_MAX} bytes as JSON`;
  return isTooLarge(words) ? `must have at most ${WHOLE_DIGITS_MAX} digits before the point` : null;
}
