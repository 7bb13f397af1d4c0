// Inference keys of an organization: made, listed, looked up, changed, revoked. A key is shown once, when it is made or rotated.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface Key {
  readonly id: string;
  readonly name: string;
  /** First characters, to recognize it by. */
  readonly prefix: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  readonly payer: 'organization' | 'user';
  /** Public model ids; null: all that organization and team allow. */
  readonly allowedModels: readonly string[] | null;
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

export interface KeyOrder {
  readonly organizationId: string;
  readonly name: string;
  readonly teamId?: string | null | undefined;
  readonly userId?: string | null | undefined;
  /** `user` needs a user: their own wallet in this organization pays. */
  readonly payer?: 'organization' | 'user' | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly expiresAtMs?: number | null | undefined;
}

/** Names a key and its tenant; `userId`: only if it is this user's (what members may see of keys). */
export interface KeyName {
  readonly organizationId: string;
  readonly keyId: string;
  readonly userId?: string | undefined;
}

/** What is absent stays. */
export interface KeyChange {
  readonly name?: string | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly expiresAtMs?: number | null | undefined;
}

export type KeySecrets = { readonly masterKey: Buffer };

export async function createKey(_postgres: Postgres, _secrets: KeySecrets, _actor: Actor, _order: KeyOrder): Promise<KeyWithSecret | Refused> {
  throw new Error('follows');
}
/** Revoked ones too. */
export async function listKeys(_postgres: PostgresClient, _question: PageQuestion & { organizationId: string; teamId?: string | undefined; userId?: string | undefined }): Promise<Page<Key> | Refused> {
  throw new Error('follows');
}
export async function getKey(_postgres: PostgresClient, _name: KeyName): Promise<Key | Refused> {
  throw new Error('follows');
}
/** `conflict`: the key is revoked, or the new name is taken. */
export async function updateKey(_postgres: Postgres, _actor: Actor, _name: KeyName, _change: KeyChange): Promise<Key | Refused> {
  throw new Error('follows');
}
/** Idempotent: revoking a revoked key changes nothing. Every gateway hears of it at once. */
export async function revokeKey(_postgres: Postgres, _actor: Actor, _name: KeyName): Promise<Key | Refused> {
  throw new Error('follows');
}
