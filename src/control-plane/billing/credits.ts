// GET /v1/billing/credits: the credit of the principal's payer, which is the organization's wallet or the user's own
// (spec 4.8).

import { z } from 'zod';
import { answerOf, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';
import { showMoney, walletFields } from './money-fields.ts';

const shown = z
  .object({
    currency: z.literal('USD'),
    balance: walletFields.balance.nullable(),
    held: walletFields.held.nullable(),
    lent: walletFields.lent.nullable(),
    available: walletFields.available.nullable(),
  })
  .meta({ id: 'Credits', description: 'All amounts are null for an organization that is not billed.' });

const NOT_BILLED: z.output<typeof shown> = { currency: 'USD', balance: null, held: null, lent: null, available: null };

export function getCredits(store: BillingStore): Operation {
  return operation({
    id: 'getCredits',
    summary: 'Shows the credit of the caller’s payer.',
    answer: answerOf(shown),
    run: async ({ principal: { walletId } }) => {
      if (walletId === null) return { data: NOT_BILLED };
      return shownOrRefused(await store.readWallet(walletId), (wallet) => ({
        currency: 'USD' as const,
        ...showMoney(wallet),
      }));
    },
  });
}
