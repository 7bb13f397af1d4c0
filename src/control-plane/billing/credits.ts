// GET /v1/billing/credits: the credit of the principal's payer, which is the organization's wallet or the user's own
// (spec 4.8).

import { z } from 'zod';
import { formatUsdString } from '../../domain/money/format.ts';
import { answerOf, shownOrRefused } from '../identity/outcome.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';
import { shownUsd } from './money-fields.ts';

const shown = z
  .object({
    currency: z.literal('USD'),
    balance: shownUsd
      .nullable()
      .meta({ description: 'Deposited and not yet charged; null for an organization that is not billed.' }),
    held: shownUsd.nullable().meta({
      description:
        'The part that gateways have leased: for requests under way and the next ones, and charges not posted yet.',
    }),
    available: shownUsd
      .nullable()
      .meta({ description: 'The rest of the balance. What is held and needed for no request pays for requests too.' }),
  })
  .meta({ id: 'Credits' });

const NOT_BILLED: z.output<typeof shown> = { currency: 'USD', balance: null, held: null, available: null };

export function getCredits(store: BillingStore): Operation {
  return operation({
    id: 'getCredits',
    summary: 'Shows the credit of the caller’s payer.',
    answer: answerOf(shown),
    run: async ({ principal: { walletId } }) => {
      if (walletId === null) return { data: NOT_BILLED };
      return shownOrRefused(await store.readWallet(walletId), ({ balance, leased }) => ({
        currency: 'USD' as const,
        balance: formatUsdString(balance),
        held: formatUsdString(leased),
        available: formatUsdString(balance - leased),
      }));
    },
  });
}
