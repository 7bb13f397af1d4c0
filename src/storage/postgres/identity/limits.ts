// Ceilings on use of an organization, or of a team, user or key in it: listed, and replaced as a whole.

import type { UsageLimit } from '../../../domain/configuration/configuration.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';

export type LimitScope =
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'team'; readonly organizationId: string; readonly teamId: string }
  | { readonly kind: 'user'; readonly organizationId: string; readonly userId: string }
  | { readonly kind: 'key'; readonly organizationId: string; readonly keyId: string };

export async function listLimits(_postgres: PostgresClient, _scope: LimitScope): Promise<{ readonly items: readonly UsageLimit[] } | Refused> {
  throw new Error('follows');
}
/** Two limits of one kind (and window) are `invalid`. */
export async function replaceLimits(_postgres: Postgres, _actor: Actor, _scope: LimitScope, _limits: readonly UsageLimit[]): Promise<{ readonly items: readonly UsageLimit[] } | Refused> {
  throw new Error('follows');
}
