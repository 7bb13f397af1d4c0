// What a model costs an organization at its own provider.

import type { Price } from '../models/price.ts';

export interface OwnModelPrice {
  /** Public id. */
  readonly model: string;
  /** In the words of the configuration file. */
  readonly words: Readonly<Record<string, unknown>>;
  readonly price: Price;
}

/** Of dollars before the point, whatever they are for, and of factors. */
const WHOLE_DIGITS_MAX = 7;

/**
 * Whether an amount in the words of a price is so large that some usage would be rated at more than a column of the
 * ledger holds. Such a record is not posted, and no fee is taken for it.
 */
export function isBeyondLedger(words: unknown): boolean {
  if (typeof words === 'string') return (/^\d+/.exec(words)?.[0].length ?? 0) > WHOLE_DIGITS_MAX;
  return typeof words === 'object' && words !== null && Object.values(words).some(isBeyondLedger);
}

export const BEYOND_LEDGER = `must have at most ${WHOLE_DIGITS_MAX} digits before the point`;
