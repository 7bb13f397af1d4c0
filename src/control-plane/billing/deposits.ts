// /v1/billing/deposits: lists the deposits of the principal's payer, and takes deposits that a platform administrator
// posts (spec 4.8).

import { z } from 'zod';
import type { Deposit } from '../../domain/money/deposit.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { idField, labelField, pageQuery, showMoment, shownMoment } from '../identity/fields.ts';
import { actorOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';
import { amountField, amountOf, shownUsd } from './money-fields.ts';

const shown = z
  .object({
    id: z.string(),
    currency: z.literal('USD'),
    amount: shownUsd,
    reference: z.string(),
    created_at: shownMoment,
  })
  .meta({ id: 'Deposit' });

function show({ id, amount, reference, createdAtMs }: Deposit): z.output<typeof shown> {
  return { id, currency: 'USD', amount: formatUsdString(amount), reference, created_at: showMoment(createdAtMs) };
}

export function listDeposits(store: BillingStore): Operation {
  return operation({
    id: 'listDeposits',
    summary: 'Lists the deposits of the caller’s payer, newest first.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async ({ principal: { walletId }, query }) =>
      walletId === null
        ? { data: [], next_cursor: null }
        : pageOrRefused(await store.listDeposits({ ...query, walletId }), show),
  });
}

export function postDeposit(store: BillingStore): Operation {
  return operation({
    id: 'postDeposit',
    summary: 'Puts credit into a wallet, once for each reference; the same reference with another amount is refused.',
    body: z.strictObject({
      amount: amountField,
      reference: labelField.meta({ description: 'Names this deposit. Posting the same one again changes nothing.' }),
      organization_id: idField.optional().meta({ description: 'Left out: the active organization.' }),
      user_id: idField
        .optional()
        .meta({ description: 'A member, for their own wallet; left out: the organization’s.' }),
    }),
    answer: answerOf(shown),
    status: 201,
    run: async ({ principal, body: { amount, reference, organization_id, user_id } }) => {
      const organizationId = organization_id ?? principal.organizationId;
      if (organizationId === null) return { kind: 'scope_required' };
      const params = { organizationId, userId: user_id ?? null, amount: amountOf(amount), reference };
      return shownOrRefused(await store.postDeposit(actorOf(principal), params), show);
    },
  });
}
