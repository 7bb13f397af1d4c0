// An organization's webhook, as it is shown and as it is set.

export interface Webhook {
  readonly url: string;
  readonly active: boolean;
  readonly createdAtMs: number;
  /** How many messages wait to be sent, and how many were given up. */
  readonly waiting: number;
  readonly dead: number;
  readonly lastSuccessAtMs: number | null;
  readonly lastErrorAtMs: number | null;
  readonly lastError: string | null;
}

export interface WebhookWithSecret extends Webhook {
  /** null: the secret is unchanged and is not shown again. */
  readonly secret: string | null;
}

export interface SetWebhookParams {
  readonly organizationId: string;
  readonly url: string;
  readonly active: boolean;
  /** Absent: the present secret stays; if there is none, one is made. */
  readonly secret?: string | undefined;
}
