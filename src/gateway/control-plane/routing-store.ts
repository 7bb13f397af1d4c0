// Provides the routing operations of storage to the control plane.

import type { RoutingStore } from '../../control-plane/routing/routing-store.ts';
import { publishPolicy } from '../../storage/postgres/catalog/catalog-operations.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import {
  getOrganizationRouting,
  getPolicy,
  listPolicies,
  setOrganizationRouting,
} from '../../storage/postgres/routing/policies.ts';

export function createRoutingStore(postgres: Postgres): RoutingStore {
  return {
    listPolicies: () => listPolicies(postgres),
    getPolicy: (name) => getPolicy(postgres, name),
    putPolicy: (actor, policy) => publishPolicy(postgres, actor, policy),
    getOrganizationRouting: (organizationId) => getOrganizationRouting(postgres, organizationId),
    setOrganizationRouting: (actor, organizationId, policy) =>
      setOrganizationRouting(postgres, actor, organizationId, policy),
  };
}
