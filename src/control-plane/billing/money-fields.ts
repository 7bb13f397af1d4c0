// Money in the bodies of billing operations: USD as exact decimal strings, never numbers.

import { z } from 'zod';
import { parseUsd } from '../../domain/money/parse-usd.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';

/** An amount as answers show it. */
export const shownUsd = z.string();

const MUST_BE = 'must be USD above 0 as a decimal string, such as "25.00"';

export const amountField = z.string(MUST_BE).refine((text) => (parseUsd(text) ?? ZERO_PICO_USD) > 0n, MUST_BE);

/** The amount of a text that `amountField` has accepted. */
export function amountOf(text: string): PicoUsd {
  return parseUsd(text) ?? ZERO_PICO_USD;
}
