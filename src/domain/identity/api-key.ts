// An inference key: its shown form, its reference, and the parameters to create or change one.

import type { ModelAccess, SetModelAccessParams } from './model-access.ts';

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
  /** After a rotation with an overlap: until when the previous secret is accepted too. */
  readonly previousSecretUntilMs: number | null;
}

export interface KeyWithSecret extends Key {
  /** Returned once, at creation; only its hash is stored. */
  readonly secret: string;
}

/** Identifies a key within its organization. */
export interface KeyReference {
  readonly organizationId: string;
  readonly keyId: string;
  /** When set, the key must belong to this user: members may revoke their own keys, and change those they pay for. */
  readonly userId?: string | undefined;
}

/** A field that is absent is left unchanged. */
export interface KeyChange {
  readonly name?: string | undefined;
  readonly allowedModels?: SetModelAccessParams | undefined;
  readonly expiresAtMs?: number | null | undefined;
}

export interface CreateKeyParams {
  readonly organizationId: string;
  readonly name: string;
  readonly teamId?: string | null | undefined;
  readonly userId?: string | null | undefined;
  /** `user` requires `userId`: that user's own wallet in this organization pays. */
  readonly payer?: 'organization' | 'user' | undefined;
  readonly allowedModels?: SetModelAccessParams | undefined;
  readonly expiresAtMs?: number | null | undefined;
}
