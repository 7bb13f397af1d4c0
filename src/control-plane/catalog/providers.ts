// The providers of the catalog, for platform administrators.

import { z } from 'zod';
import type { CatalogState } from '../../domain/configuration/difference.ts';
import { requestedProvider } from '../../domain/configuration/schema/provider-schema.ts';
import { systemClock } from '../../platform/clock.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import { actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import { changedProvider, showChangedProvider, shownProvider, showProvider } from './catalog-fields.ts';
import type { CatalogStore } from './catalog-store.ts';
import { type HealthOf, showWholeHealth, wholeHealth } from './health-fields.ts';

const healthyProvider = shownProvider.extend({ health: wholeHealth }).meta({ id: 'CatalogProviderInService' });

function showHealthy(state: CatalogState, healthOf: HealthOf): z.output<typeof healthyProvider> {
  return { ...showProvider(state), health: showWholeHealth(healthOf(state.id), systemClock.nowMs()) };
}

export function listProviders(store: CatalogStore, healthOf: HealthOf): Operation {
  return operation({
    id: 'listCatalogProviders',
    summary: 'Lists the providers, without their keys, and how each is doing.',
    answer: z.object({ data: z.array(healthyProvider) }),
    run: async () => ({ data: (await store.list('provider')).map((state) => showHealthy(state, healthOf)) }),
  });
}

export function getProvider(store: CatalogStore, healthOf: HealthOf): Operation {
  return operation({
    id: 'getCatalogProvider',
    summary: 'Shows a provider, without its key, and how it is doing.',
    answer: answerOf(healthyProvider),
    run: async ({ ids }) =>
      shownOrRefused(await store.get({ kind: 'provider', id: idOf(ids, 'providerName') }), (state) =>
        showHealthy(state, healthOf),
      ),
  });
}

export function putProvider(store: CatalogStore): Operation {
  return operation({
    id: 'putCatalogProvider',
    summary:
      'Makes a provider, or replaces what is said of one; gateways follow within a second. Without `api_key` the ' +
      'stored key stays.',
    body: requestedProvider,
    answer: answerOf(changedProvider),
    run: async ({ principal, ids, body: { version, provider } }) => {
      const change = { version, provider: provider(idOf(ids, 'providerName')) };
      return shownOrRefused(await store.putProvider(actorOf(principal), change), showChangedProvider);
    },
  });
}

export const basedOnQuery = z.object({
  version: z.coerce
    .number('must be a whole number')
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .optional()
    .meta({ description: 'The version that was read. If it is not the present one, the answer is 409.' }),
});

export function removeProvider(store: CatalogStore): Operation {
  return operation({
    id: 'removeCatalogProvider',
    summary: 'Removes a provider that serves no model.',
    query: basedOnQuery,
    answer: removedAnswer,
    run: async ({ principal, ids, query: { version = null } }) => {
      const target = { kind: 'provider', id: idOf(ids, 'providerName'), version } as const;
      return shownOrRefused(await store.remove(actorOf(principal), target), (done) => done);
    },
  });
}
