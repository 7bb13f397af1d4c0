// The routing part of a catalog by which nobody routes.

import type { RoutingTable } from '../../src/domain/routing/routing-table.ts';

export const NO_ROUTING: RoutingTable = { policies: new Map(), policyOf: new Map() };
