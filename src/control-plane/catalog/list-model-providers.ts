// GET /v1/models/providers: the providers of the catalog, each with the models that it serves (spec 4.6) and how it is
// doing.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import { callableModels } from './callable-models.ts';
import { type HealthOf, showPublicHealth } from './health-fields.ts';
import { oncePerCatalog } from './once-per-catalog.ts';

export function listModelProviders(
  catalog: () => Catalog,
  healthOf: HealthOf,
  clock: Clock = systemClock,
): (exchange: Exchange, principal: ScopedPrincipal) => void {
  const list = oncePerCatalog(catalog, listProviders);
  return (exchange, { allowedModels }) => {
    const nowMs = clock.nowMs();
    const data = list(allowedModels).map(({ id, models }) => {
      return { id, models, health: showPublicHealth(healthOf(id), nowMs) };
    });
    exchange.answerJson(200, JSON.stringify({ object: 'list', data }));
  };
}

/** The providers in the order of the catalog. Models are listed by id, without aliases. */
function listProviders(catalog: Catalog): readonly { readonly id: string; readonly models: readonly string[] }[] {
  const modelsByProvider = new Map<string, Set<string>>();
  for (const model of callableModels(catalog)) {
    for (const { provider } of model.servedBy) {
      const models = modelsByProvider.get(provider.id) ?? new Set();
      modelsByProvider.set(provider.id, models.add(model.id));
    }
  }
  return [...modelsByProvider].map(([id, models]) => ({ id, models: [...models] }));
}
