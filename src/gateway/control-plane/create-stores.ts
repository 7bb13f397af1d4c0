// Gives the control plane its storage and its workers, as functions.

import type { Catalog } from '../../domain/models/catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SharedProviderHealth } from '../generation/shared-provider-health.ts';
import { createBillingStore } from './billing-store.ts';
import { createCatalogStore } from './catalog-store.ts';
import { createCatalogCheck } from './create-catalog-check.ts';
import { createGuardrailTrials } from './create-guardrail-trials.ts';
import { createPolicyReplay } from './create-policy-replay.ts';
import { createGuardrailStore } from './guardrail-store.ts';
import { createIdentityStore } from './identity-store.ts';
import { createInstallationStore } from './installation-store.ts';
import { createMediaRows } from './media-rows.ts';
import { createOwnKeysStore } from './own-keys-store.ts';
import { createRoutingStore } from './routing-store.ts';

type Held = Parameters<typeof createOwnKeysStore>[0] &
  Parameters<typeof createGuardrailTrials>[0] & {
    readonly controlPostgres: Postgres;
    readonly secrets: InstallationSecrets;
    readonly health: SharedProviderHealth;
    readonly catalog: { readonly present: Catalog };
  };

export function createStores(held: Held, clock: Clock) {
  const { controlPostgres: postgres, secrets } = held;
  return {
    identity: createIdentityStore(postgres, secrets),
    installation: createInstallationStore(postgres, clock),
    billing: createBillingStore(postgres, secrets),
    ownKeys: createOwnKeysStore(held, secrets, clock),
    routing: createRoutingStore(postgres),
    replayPolicy: createPolicyReplay({ postgres, catalog: () => held.catalog.present, clock }),
    checkCatalog: createCatalogCheck({ postgres, secrets, workers: held.workers }),
    guardrails: createGuardrailStore(postgres, secrets),
    guardrailTrials: createGuardrailTrials(held),
    mediaRows: createMediaRows(postgres, clock),
    catalogStore: createCatalogStore(postgres, secrets),
    healthOf: (providerId: string) => held.health.healthOf(providerId),
  };
}
