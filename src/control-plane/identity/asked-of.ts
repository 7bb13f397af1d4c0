// Whom an identity operation is about, and who asks for it.

import type { Actor } from '../../domain/identity/actor.ts';
import type { Principal } from '../../domain/identity/principal.ts';
import type { SetBy } from '../../domain/identity/set-by.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { assert } from '../../platform/assert.ts';
import type { Asked } from '../operation.ts';
import type { IdentityStore } from './identity-store.ts';

type Question = Pick<Asked<unknown, unknown>, 'principal' | 'ids'>;

/**
 * The same operations exist on the caller's active organization and, for platform administrators, on any that the path
 * names.
 */
export interface Tenancy {
  /** Ends the operationId. */
  readonly suffix: string;
  /**
   * Who sets what is set there: by the route and not by the caller, so that a platform administrator says which of the
   * two is meant.
   */
  readonly setBy: SetBy;
  readonly organizationId: (asked: Question) => string;
}

export const ACTIVE: Tenancy = {
  suffix: '',
  setBy: 'organization',
  organizationId({ principal }) {
    assert(principal.organizationId !== null, 'the route table lets nobody without an active organization here');
    return principal.organizationId;
  },
};

export const NAMED: Tenancy = {
  suffix: 'OfOrganization',
  setBy: 'platform',
  organizationId: ({ ids }) => idOf(ids, 'organizationId'),
};

/** Lists what an organization has; an empty list must not stand for an organization that does not exist. */
export async function listOf<T>(
  store: IdentityStore,
  tenancy: Tenancy,
  asked: Question,
  list: (organizationId: string) => Promise<T | Refused>,
): Promise<T | Refused> {
  const organizationId = tenancy.organizationId(asked);
  if (tenancy === NAMED) {
    const organization = await store.getOrganization(organizationId);
    if ('refused' in organization) return organization;
  }
  return list(organizationId);
}

export function idOf(ids: Readonly<Record<string, string>>, name: string): string {
  const id = ids[name];
  assert(id !== undefined, `the route's path has no :${name}`);
  return id;
}

/** What the audit log says of the caller; only access tokens change anything. */
export function actorOf(principal: Principal): Actor {
  if (principal.userId === null) return { kind: 'bootstrap', userId: null, label: 'ADMIN_TOKEN' };
  return { kind: 'token', userId: principal.userId, label: `access token ${principal.apiKeyId}` };
}

/** The person behind an access token. */
export function personOf(principal: Principal): string {
  assert(principal.userId !== null, 'the route table lets nobody but people here');
  return principal.userId;
}
