// Money in the bodies of billing operations: USD as exact decimal strings, never numbers.

import { z } from 'zod';
import { formatUsdString } from '../../domain/money/format.ts';
import { parseUsd } from '../../domain/money/parse-usd.ts';
import type { PayerWallet } from '../../domain/money/payer-wallet.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';

/** An amount as answers show it. */
export const shownUsd = z.string();

/** The parts of a wallet's balance, which add up to it. */
export const walletFields = {
  balance: shownUsd.meta({ description: 'Deposited and not yet charged: `held`, `lent` and `available` together.' }),
  held: shownUsd.meta({ description: 'Held by open requests, by what gateways had recorded a moment ago.' }),
  lent: shownUsd.meta({
    description:
      'Leased by gateways for the next requests, and for charges that are not posted yet. It can be spent, too.',
  }),
  available: shownUsd.meta({ description: 'The rest of the balance.' }),
};

export function showMoney({ balance, held, lent }: Pick<PayerWallet, 'balance' | 'held' | 'lent'>): {
  readonly [field in keyof typeof walletFields]: string;
} {
  return {
    balance: formatUsdString(balance),
    held: formatUsdString(held),
    lent: formatUsdString(lent),
    available: formatUsdString(balance - held - lent),
  };
}

const MUST_BE = 'must be USD above 0 as a decimal string, such as "25.00"';

export const amountField = z.string(MUST_BE).refine((text) => (parseUsd(text) ?? ZERO_PICO_USD) > 0n, MUST_BE);

/** The amount of a text that `amountField` has accepted. */
export function amountOf(text: string): PicoUsd {
  return parseUsd(text) ?? ZERO_PICO_USD;
}
