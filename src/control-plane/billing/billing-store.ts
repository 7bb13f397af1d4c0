// What billing operations need of storage; the composition root provides it. Expected refusals are returned as values,
// never thrown.

import type { Actor } from '../../domain/identity/actor.ts';
import type { CurrentLimit } from '../../domain/identity/current-limit.ts';
import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Page, PageParams } from '../../domain/lists/page.ts';
import type { Deposit, PostDepositParams } from '../../domain/money/deposit.ts';
import type { PayerWallet } from '../../domain/money/payer-wallet.ts';
import type { SetWebhookParams, Webhook, WebhookWithSecret } from '../../domain/webhooks/webhook.ts';
import type { Answer } from '../identity/identity-store.ts';

export interface BillingStore {
  readWallet(walletId: string): Answer<PayerWallet>;
  listWallets(params: PageParams & { organizationId: string }): Answer<Page<PayerWallet>>;
  freezeWallet(
    actor: Actor,
    params: { organizationId: string; walletId: string; frozen: boolean },
  ): Answer<PayerWallet>;
  postDeposit(actor: Actor, params: PostDepositParams): Answer<Deposit>;
  listDeposits(params: PageParams & { walletId: string }): Answer<Page<Deposit>>;
  /** For a key: the limits that it was loaded with. For a person: the organization's and their own. */
  readCurrentLimits(
    asking: Pick<ScopedPrincipal, 'credential' | 'organizationId' | 'userId' | 'limits'>,
  ): Promise<readonly CurrentLimit[]>;

  /** The limits that are set on one scope. */
  readCurrentLimitsOf(scope: LimitScope): Answer<readonly CurrentLimit[]>;

  getWebhook(organizationId: string): Answer<Webhook>;
  setWebhook(actor: Actor, params: SetWebhookParams): Answer<WebhookWithSecret>;
  rotateWebhookSecret(actor: Actor, organizationId: string): Answer<WebhookWithSecret>;
  removeWebhook(actor: Actor, organizationId: string): Answer<{ readonly removed: true }>;
  redeliverWebhooks(actor: Actor, organizationId: string): Answer<{ readonly requeued: number }>;
}
