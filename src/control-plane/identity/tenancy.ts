// Which organization an operation concerns, and which principal calls it.

import type { Actor } from '../../domain/identity/actor.ts';
import type { Principal } from '../../domain/identity/principal.ts';
import type { SetBy } from '../../domain/identity/set-by.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { assert } from '../../platform/assert.ts';
import type { OperationSubject } from '../operation.ts';
import type { IdentityStore } from './identity-store.ts';

/**
 * How an operation finds its organization. The same operations exist for the principal's active organization and, for
 * platform administrators, for any organization that the path names.
 */
export interface Tenancy {
  /** The end of the operationId. */
  readonly suffix: string;
  /**
   * Whose limits and lists the operation sets. The route decides this and not the principal, because a platform
   * administrator may mean either.
   */
  readonly setBy: SetBy;
  readonly organizationId: (input: OperationSubject) => string;
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

/** Lists what an organization has. An organization that does not exist is refused, not shown as an empty list. */
export async function listOf<T>(
  store: IdentityStore,
  tenancy: Tenancy,
  input: OperationSubject,
  list: (organizationId: string) => Promise<T | Refused>,
): Promise<T | Refused> {
  const organizationId = tenancy.organizationId(input);
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

/** The principal as the audit log names it. Only access tokens and sessions of the console change anything. */
export function actorOf({ credential, userId, apiKeyId }: Principal): Actor {
  if (credential === 'session')
    return { kind: userId === null ? 'bootstrap' : 'token', userId, label: `console session ${apiKeyId}` };
  if (userId === null) return { kind: 'bootstrap', userId: null, label: 'ADMIN_TOKEN' };
  return { kind: 'token', userId, label: `access token ${apiKeyId}` };
}

/** The person behind an access token. */
export function personOf(principal: Principal): string {
  assert(principal.userId !== null, 'the route table lets nobody but people here');
  return principal.userId;
}
