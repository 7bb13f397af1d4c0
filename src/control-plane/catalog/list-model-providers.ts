// GET /v1/models/providers: the providers of the catalog, each with the models that it serves (spec 4.6).

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import type { Exchange } from '../../http/exchange.ts';
import { callableModels } from './callable-models.ts';
import { oncePerCatalog } from './once-per-catalog.ts';

export function listModelProviders(catalog: () => Catalog): (exchange: Exchange, principal: ScopedPrincipal) => void {
  const body = oncePerCatalog(catalog, renderProviders);
  return (exchange, { allowedModels }) => exchange.answerJson(200, body(allowedModels));
}

/** In the order of the catalog. Models are listed by id, without aliases. */
function renderProviders(catalog: Catalog): string {
  const modelsByProvider = new Map<string, Set<string>>();
  for (const model of callableModels(catalog)) {
    for (const { provider } of model.servedBy) {
      const models = modelsByProvider.get(provider.id) ?? new Set();
      modelsByProvider.set(provider.id, models.add(model.id));
    }
  }
  return JSON.stringify({
    object: 'list',
    data: [...modelsByProvider].map(([id, models]) => ({ id, models: [...models] })),
  });
}
