// What is shown of an inference key, what names one, and what can be asked for and changed of it.

import type { ModelAccess, ModelAccessOrder } from './model-access.ts';

export interface Key extends ModelAccess {
  readonly id: string;
  readonly name: string;
  /** First characters, to recognize it by. */
  readonly prefix: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  readonly payer: 'organization' | 'user';
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** While a rotation overlaps: until when the secret before is good as well. */
  readonly previousSecretUntilMs: number | null;
}

export interface KeyWithSecret extends Key {
  /** Known here and nowhere else: to be shown once. */
  readonly secret: string;
}

/** Names a key and its tenant. */
export interface KeyName {
  readonly organizationId: string;
  readonly keyId: string;
  /** Only if it is this user's, who may end it, and change it where they pay for it. */
  readonly userId?: string | undefined;
}

/** What is absent stays. */
export interface KeyChange {
  readonly name?: string | undefined;
  readonly allowedModels?: ModelAccessOrder | undefined;
  readonly expiresAtMs?: number | null | undefined;
}

export interface KeyOrder {
  readonly organizationId: string;
  readonly name: string;
  readonly teamId?: string | null | undefined;
  readonly userId?: string | null | undefined;
  /** `user` needs a user: their own wallet in this organization pays. */
  readonly payer?: 'organization' | 'user' | undefined;
  readonly allowedModels?: ModelAccessOrder | undefined;
  readonly expiresAtMs?: number | null | undefined;
}
