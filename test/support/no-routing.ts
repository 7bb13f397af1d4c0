// The routing part of a catalog in which no organization uses auto routing.

import type { RoutingTable } from '../../src/domain/routing/routing-table.ts';

export const NO_ROUTING: RoutingTable = { policies: new Map(), policyOf: new Map() };
