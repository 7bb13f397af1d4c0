// The webhook of an organization, which is called when a charge is final. Only the answers that make its secret contain
// it.

import { z } from 'zod';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Webhook, WebhookWithSecret } from '../../domain/webhooks/webhook.ts';
import { webhookSecretProblem } from '../../domain/webhooks/webhook-signature.ts';
import { webhookUrlProblem } from '../../domain/webhooks/webhook-url.ts';
import { isPublicAddress } from '../../platform/egress/public-address.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import { showMoment, showMomentOrNull, shownMoment } from '../identity/fields.ts';
import { actorOf, type Tenancy } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';

/** Which targets this installation allows for webhooks (WEBHOOK_ALLOW_HTTP, WEBHOOK_ALLOW_PRIVATE). */
export interface WebhookTargets {
  readonly allowHttp: boolean;
  readonly allowPrivate: boolean;
}

const shown = z
  .object({
    url: z.string(),
    active: z.boolean(),
    created_at: shownMoment,
    waiting: z.int(),
    dead: z.int(),
    last_success_at: shownMoment.nullable(),
    last_error_at: shownMoment.nullable(),
    last_error: z.string().nullable(),
  })
  .meta({ id: 'Webhook' });
const shownWithSecret = shown
  .extend({ secret: z.string().nullable() })
  .meta({ id: 'WebhookWithSecret', description: 'The secret is null when it has not changed.' });

function show(webhook: Webhook): z.output<typeof shown> {
  return {
    url: webhook.url,
    active: webhook.active,
    created_at: showMoment(webhook.createdAtMs),
    waiting: webhook.waiting,
    dead: webhook.dead,
    last_success_at: showMomentOrNull(webhook.lastSuccessAtMs),
    last_error_at: showMomentOrNull(webhook.lastErrorAtMs),
    last_error: webhook.lastError,
  };
}

function showWithSecret(webhook: WebhookWithSecret): z.output<typeof shownWithSecret> {
  return { ...show(webhook), secret: webhook.secret };
}

const params = z.strictObject({
  url: z.string(),
  active: z.boolean('must be true or false').default(true),
  secret: z
    .string()
    .optional()
    .meta({ description: 'Left out: the present one stays; if there is none, one is made and is in the answer.' }),
});

export function getWebhook(store: BillingStore, tenancy: Tenancy): Operation {
  return operation({
    id: `getWebhook${tenancy.suffix}`,
    summary: 'Shows the webhook that is told when a charge is final, and how its delivery goes.',
    answer: answerOf(shown),
    run: async (input) => shownOrRefused(await store.getWebhook(tenancy.organizationId(input)), show),
  });
}

export function setWebhook(store: BillingStore, targets: WebhookTargets, tenancy: Tenancy): Operation {
  return operation({
    id: `setWebhook${tenancy.suffix}`,
    summary: 'Sets the webhook that is told when a charge is final.',
    body: params,
    answer: answerOf(shownWithSecret),
    run: async (input) => {
      const { url, active, secret } = input.body;
      const refusal = refuseWebhook(input.body, targets);
      if (refusal !== null) return refusal;
      const wanted = { organizationId: tenancy.organizationId(input), url, active, secret };
      return shownOrRefused(await store.setWebhook(actorOf(input.principal), wanted), showWithSecret);
    },
  });
}

/** Checks the address but not what a host name stands for. That is checked at each call, because it can change. */
function refuseWebhook(
  { url, secret }: z.output<typeof params>,
  { allowHttp, allowPrivate }: WebhookTargets,
): Refusal | null {
  const urlProblem = webhookUrlProblem(url, { allowHttp });
  if (urlProblem !== null) return { kind: 'invalid_field', field: 'url', reason: `it ${urlProblem}` };
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  const isAddress = /^[\d.]+$/.test(host) || host.includes(':');
  if (!allowPrivate && (host === 'localhost' || host.endsWith('.localhost') || (isAddress && !isPublicAddress(host)))) {
    return { kind: 'invalid_field', field: 'url', reason: 'it must not be a loopback, private or reserved address' };
  }
  const secretProblem = secret === undefined ? null : webhookSecretProblem(secret);
  return secretProblem === null ? null : { kind: 'invalid_field', field: 'secret', reason: `it ${secretProblem}` };
}

export function rotateWebhookSecret(store: BillingStore, tenancy: Tenancy): Operation {
  return operation({
    id: `rotateWebhookSecret${tenancy.suffix}`,
    summary: 'Gives the webhook a new secret, at once; it is in this answer and nowhere else.',
    answer: answerOf(shownWithSecret),
    run: async (input) =>
      shownOrRefused(
        await store.rotateWebhookSecret(actorOf(input.principal), tenancy.organizationId(input)),
        showWithSecret,
      ),
  });
}

export function removeWebhook(store: BillingStore, tenancy: Tenancy): Operation {
  return operation({
    id: `removeWebhook${tenancy.suffix}`,
    summary: 'Removes the webhook, and what it was still to be told.',
    answer: removedAnswer,
    run: async (input) =>
      shownOrRefused(
        await store.removeWebhook(actorOf(input.principal), tenancy.organizationId(input)),
        (removed) => removed,
      ),
  });
}

export function redeliverWebhooks(store: BillingStore, tenancy: Tenancy): Operation {
  return operation({
    id: `redeliverWebhooks${tenancy.suffix}`,
    summary: 'Tries the messages that were given up again.',
    answer: answerOf(z.object({ requeued: z.int() })),
    run: async (input) =>
      shownOrRefused(
        await store.redeliverWebhooks(actorOf(input.principal), tenancy.organizationId(input)),
        (done) => done,
      ),
  });
}
