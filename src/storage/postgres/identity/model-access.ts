// Which models an organization, a team or a key may use: allow-lists of public ids. A request needs all three to agree.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';

export type ModelAccessScope =
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'team'; readonly organizationId: string; readonly teamId: string }
  | { readonly kind: 'key'; readonly organizationId: string; readonly keyId: string };

export interface ModelAccess {
  /** null: every model. */
  readonly allowedModels: readonly string[] | null;
}

export async function getModelAccess(_postgres: PostgresClient, _scope: ModelAccessScope): Promise<ModelAccess | Refused> {
  throw new Error('follows');
}
/** Ids that the catalog does not have are `invalid`: a mistyped allow-list would shut everybody out. */
export async function setModelAccess(_postgres: Postgres, _actor: Actor, _scope: ModelAccessScope, _allowedModels: readonly string[] | null): Promise<ModelAccess | Refused> {
  throw new Error('follows');
}
