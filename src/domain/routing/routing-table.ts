// Which organization routes by which policy: the part of the catalog that auto routing reads.

import type { RoutingPolicy } from './routing-policy.ts';

export interface RoutingTable {
  /** The present version of each policy, by name. */
  readonly policies: ReadonlyMap<string, RoutingPolicy>;
  /** Names of policies by organization id; an organization that is not here has auto routing off. */
  readonly policyOf: ReadonlyMap<string, string>;
}
