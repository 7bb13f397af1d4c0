// What billing operations ask of storage; the composition root puts it together. An expected no comes back as a value, never as a throw.

import type { Actor } from '../../domain/identity/actor.ts';
import type { PrincipalLimit, ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import type { Answer, Page, PageQuestion } from '../identity/identity-store.ts';

export interface Wallet {
  readonly id: string;
  readonly organizationId: string;
  /** null: the organization's wallet; otherwise the user's own. */
  readonly userId: string | null;
  readonly balance: bigint;
  /** What gateways have borrowed of the balance. */
  readonly leased: bigint;
  readonly frozen: boolean;
  readonly createdAtMs: number;
}

export interface Deposit {
  readonly id: string;
  readonly amount: PicoUsd;
  readonly reference: string;
  readonly createdAtMs: number;
}

export interface DepositOrder {
  readonly organizationId: string;
  readonly userId: string | null;
  readonly amount: PicoUsd;
  readonly reference: string;
}

export interface Webhook {
  readonly url: string;
  readonly active: boolean;
  readonly createdAtMs: number;
  /** Messages to be sent, and those given up. */
  readonly waiting: number;
  readonly dead: number;
  readonly lastSuccessAtMs: number | null;
  readonly lastErrorAtMs: number | null;
  readonly lastError: string | null;
}

export interface WebhookWithSecret extends Webhook {
  /** null: it is the one from before, and stays unseen. */
  readonly secret: string | null;
}

export interface WebhookOrder {
  readonly organizationId: string;
  readonly url: string;
  readonly active: boolean;
  /** Left out: the present one stays, or one is made. */
  readonly secret?: string | undefined;
}

export interface CurrentLimit extends PrincipalLimit {
  /** null: not known here. */
  readonly used: bigint | null;
  readonly remaining: bigint | null;
  readonly resetsAtMs: number | null;
}

export interface BillingStore {
  readWallet(walletId: string): Answer<Wallet>;
  listWallets(question: PageQuestion & { organizationId: string }): Answer<Page<Wallet>>;
  freezeWallet(actor: Actor, order: { organizationId: string; walletId: string; frozen: boolean }): Answer<Wallet>;
  postDeposit(actor: Actor, order: DepositOrder): Answer<Deposit>;
  listDeposits(question: PageQuestion & { walletId: string }): Answer<Page<Deposit>>;
  /** Of a key those that it was read with; of a person the organization's and their own. */
  readCurrentLimits(asking: Pick<ScopedPrincipal, 'credential' | 'organizationId' | 'userId' | 'limits'>): Promise<readonly CurrentLimit[]>;

  getWebhook(organizationId: string): Answer<Webhook>;
  setWebhook(actor: Actor, order: WebhookOrder): Answer<WebhookWithSecret>;
  rotateWebhookSecret(actor: Actor, organizationId: string): Answer<WebhookWithSecret>;
  removeWebhook(actor: Actor, organizationId: string): Answer<{ readonly removed: true }>;
  redeliverWebhooks(actor: Actor, organizationId: string): Answer<{ readonly requeued: number }>;
}
