// Provides the operations on the catalog of storage to the control plane.

import type { CatalogStore } from '../../control-plane/catalog/catalog-store.ts';
import {
  getFromCatalog,
  publishModel,
  publishPrice,
  publishProvider,
  removeFromCatalog,
} from '../../storage/postgres/catalog/catalog-operations.ts';
import { readCatalogStates, readPrices } from '../../storage/postgres/catalog/catalog-states.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';

export function createCatalogStore(postgres: Postgres, secrets: { readonly box: SecretBox }): CatalogStore {
  return {
    list: (kind) => readCatalogStates(postgres, kind),
    get: (target) => getFromCatalog(postgres, target),
    putProvider: (actor, change) => publishProvider(postgres, secrets, actor, change),
    putModel: (actor, change) => publishModel(postgres, actor, change),
    putPrice: (actor, change) => publishPrice(postgres, actor, change),
    listPrices: (modelId) => readPrices(postgres, modelId),
    remove: (actor, target) => removeFromCatalog(postgres, actor, target),
  };
}
