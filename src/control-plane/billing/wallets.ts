// The wallets of an organization, its own and its users', as platform administrators see and freeze them.

import { z } from 'zod';
import type { PayerWallet } from '../../domain/money/payer-wallet.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { pageQuery, showMoment, shownId, shownMoment } from '../identity/fields.ts';
import type { IdentityStore } from '../identity/identity-store.ts';
import { actorOf, idOf, listOf, NAMED } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';
import { showMoney, walletFields } from './money-fields.ts';

const shown = z
  .object({
    id: shownId,
    organization_id: shownId,
    user_id: shownId.nullable(),
    currency: z.literal('USD'),
    ...walletFields,
    frozen: z.boolean(),
    created_at: shownMoment,
  })
  .meta({ id: 'Wallet' });

function show({ id, organizationId, userId, frozen, createdAtMs, ...money }: PayerWallet): z.output<typeof shown> {
  return {
    id,
    organization_id: organizationId,
    user_id: userId,
    currency: 'USD',
    ...showMoney(money),
    frozen,
    created_at: showMoment(createdAtMs),
  };
}

export function listWallets(store: BillingStore, identity: IdentityStore): Operation {
  return operation({
    id: 'listWalletsOfOrganization',
    summary: 'Lists the wallets of an organization: its own, and those of users who pay for themselves.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) =>
      pageOrRefused(
        await listOf(identity, NAMED, input, (organizationId) => store.listWallets({ ...input.query, organizationId })),
        show,
      ),
  });
}

export function freezeWallet(store: BillingStore): Operation {
  return operation({
    id: 'updateWalletOfOrganization',
    summary: 'Freezes a wallet, so that it pays for no more requests, or ends that. What is under way still settles.',
    body: z.strictObject({ frozen: z.boolean('must be true or false') }),
    answer: answerOf(shown),
    run: async ({ principal, ids, body: { frozen } }) => {
      const params = { organizationId: idOf(ids, 'organizationId'), walletId: idOf(ids, 'walletId'), frozen };
      return shownOrRefused(await store.freezeWallet(actorOf(principal), params), show);
    },
  });
}
