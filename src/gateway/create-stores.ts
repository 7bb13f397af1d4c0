// What the control plane reads and changes: storage, given to it as functions.

import type { CompleteConfig } from '../config.ts';
import type { Clock } from '../platform/clock.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { createBillingStore } from './billing-store.ts';
import { createCatalogStore } from './catalog-store.ts';
import { createGuardrailStore } from './guardrail-store.ts';
import { createIdentityStore } from './identity-store.ts';
import { createOwnKeysStore } from './own-keys-store.ts';
import type { ProviderHealthExchange } from './provider-health-exchange.ts';
import { createRoutingStore } from './routing-store.ts';

type Held = Parameters<typeof createOwnKeysStore>[0] & {
  readonly controlPostgres: Postgres;
  readonly health: ProviderHealthExchange;
};

export function createStores(held: Held, { masterKey }: CompleteConfig, clock: Clock) {
  const { controlPostgres: postgres } = held;
  return {
    identity: createIdentityStore(postgres, { masterKey }),
    billing: createBillingStore(postgres, { masterKey }),
    ownKeys: createOwnKeysStore(held, { masterKey, clock }),
    routing: createRoutingStore(postgres),
    guardrails: createGuardrailStore(postgres, { masterKey }),
    catalogStore: createCatalogStore(postgres, { masterKey }),
    healthOf: (providerId: string) => held.health.healthOf(providerId),
  };
}
