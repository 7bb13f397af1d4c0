// What routing operations ask of storage; the composition root puts it together. An expected no comes back as a value, never as a throw.

import type { Actor } from '../../domain/identity/actor.ts';
import type { PolicyDefinition } from '../../domain/routing/policy-definition.ts';
import type { Answer } from '../identity/identity-store.ts';

export interface PolicyVersion {
  readonly version: number;
  readonly createdAtMs: number;
  readonly definition: PolicyDefinition;
}

/** The present version of a policy. */
export interface Policy extends PolicyVersion {
  readonly name: string;
  /** How many organizations route by it. */
  readonly organizations: number;
}

export interface PolicyHistory extends Policy {
  /** Newest first, the present one included. */
  readonly versions: readonly PolicyVersion[];
}

export interface OrganizationRouting {
  /** null: auto routing is off. */
  readonly policy: string | null;
}

export interface RoutingStore {
  listPolicies(): Promise<readonly Policy[]>;
  getPolicy(name: string): Answer<PolicyHistory>;
  /** A definition that is different becomes the next version. */
  putPolicy(actor: Actor, name: string, definition: PolicyDefinition): Answer<PolicyHistory>;
  getOrganizationRouting(organizationId: string): Answer<OrganizationRouting>;
  setOrganizationRouting(actor: Actor, organizationId: string, policy: string | null): Answer<OrganizationRouting>;
}
