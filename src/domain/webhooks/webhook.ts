// What is shown of an organization's webhook, and what can be asked for.

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
