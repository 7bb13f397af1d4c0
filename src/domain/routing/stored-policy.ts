// Stored routing policies with their versions, and the policy that an organization routes by.

import type { PolicyDefinition } from './policy-definition.ts';

export interface PolicyVersion {
  readonly version: number;
  readonly createdAtMs: number;
  readonly definition: PolicyDefinition;
}

/** The present version of a policy, and how many organizations use it. */
export interface StoredPolicy extends PolicyVersion {
  readonly name: string;
  /** How many organizations route by it. */
  readonly organizations: number;
}

export interface PolicyHistory extends StoredPolicy {
  /** Newest first, the present one included. */
  readonly versions: readonly PolicyVersion[];
}

export interface OrganizationRouting {
  /** null: auto routing is off. */
  readonly policy: string | null;
}
