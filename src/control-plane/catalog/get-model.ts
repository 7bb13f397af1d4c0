// GET /v1/models/{id}: one entry of the catalog, in the shape that clients of OpenAI and Anthropic read (spec 2.3,
// 4.6).

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Catalog, Model } from '../../domain/models/catalog.ts';
import type { VirtualModel } from '../../domain/routing/virtual-model.ts';
import type { Exchange } from '../../http/exchange.ts';
import { decodePath } from '../decode-path.ts';
import { mergedEntry, modelsOf, namesOf } from './list-models.ts';
import { oncePerCatalog } from './once-per-catalog.ts';

/** An id may have slashes, as they are or escaped. A model that the list does not show is not found here either. */
export function getModel(
  catalog: () => Catalog,
  virtual: VirtualModel,
): (exchange: Exchange, principal: ScopedPrincipal) => void {
  const modelsByName = oncePerCatalog(catalog, (present, policy) => byName(modelsOf(present, policy, virtual)));
  return (exchange, { allowedModels, organizationId }) => {
    const id = decodePath(exchange.parameter ?? '');
    if (id === '') return exchange.refuse({ kind: 'unknown_path', path: exchange.path, hint: LIST_HINT });
    const policy = catalog().routing.policyOf.get(organizationId) ?? null;
    const model = modelsByName(allowedModels, policy).get(id);
    if (model === undefined) exchange.refuse({ kind: 'unknown_model', model: id });
    else exchange.answerJson(200, JSON.stringify(mergedEntry(model, id)));
  };
}

const LIST_HINT = 'The path of the list is "/v1/models", without a slash at its end.';

function byName(models: readonly Model[]): ReadonlyMap<string, Model> {
  return new Map(models.flatMap((model) => namesOf(model).map((name) => [name, model])));
}
