// What routing operations need of storage; the composition root provides it. Expected refusals are returned as values,
// never thrown.

import type { Actor } from '../../domain/identity/actor.ts';
import type { PolicyDefinition } from '../../domain/routing/policy-definition.ts';
import type { OrganizationRouting, PolicyHistory, StoredPolicy } from '../../domain/routing/stored-policy.ts';
import type { Answer } from '../identity/identity-store.ts';

export interface RoutingStore {
  listPolicies(): Promise<readonly StoredPolicy[]>;
  getPolicy(name: string): Answer<PolicyHistory>;
  /** A changed definition becomes the next version. `version`: the one that it was made from; null: none is named. */
  putPolicy(
    actor: Actor,
    policy: { readonly name: string; readonly definition: PolicyDefinition; readonly version: number | null },
  ): Answer<PolicyHistory>;
  getOrganizationRouting(organizationId: string): Answer<OrganizationRouting>;
  setOrganizationRouting(actor: Actor, organizationId: string, policy: string | null): Answer<OrganizationRouting>;
}
