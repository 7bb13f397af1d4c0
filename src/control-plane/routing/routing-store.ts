// What routing operations ask of storage; the composition root puts it together. An expected no comes back as a value,
// never as a throw.

import type { Actor } from '../../domain/identity/actor.ts';
import type { PolicyDefinition } from '../../domain/routing/policy-definition.ts';
import type { OrganizationRouting, PolicyHistory, StoredPolicy } from '../../domain/routing/stored-policy.ts';
import type { Answer } from '../identity/identity-store.ts';

export interface RoutingStore {
  listPolicies(): Promise<readonly StoredPolicy[]>;
  getPolicy(name: string): Answer<PolicyHistory>;
  /** A definition that is different becomes the next version. */
  putPolicy(actor: Actor, name: string, definition: PolicyDefinition): Answer<PolicyHistory>;
  getOrganizationRouting(organizationId: string): Answer<OrganizationRouting>;
  setOrganizationRouting(actor: Actor, organizationId: string, policy: string | null): Answer<OrganizationRouting>;
}
