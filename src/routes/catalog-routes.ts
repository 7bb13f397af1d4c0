// The rows of the route table with which platform administrators change the catalog: providers, models, prices.

import { checkCatalog } from '../control-plane/catalog/check-catalog.ts';
import * as models from '../control-plane/catalog/models.ts';
import * as providers from '../control-plane/catalog/providers.ts';
import { type ControlPlaneRow, PLATFORM_ADMIN, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

const PROVIDERS_PATH = '/v1/admin/providers';
const MODELS_PATH = '/v1/admin/models';
const PRICES_PATH = '/v1/admin/prices';

export function catalogRows({ catalogStore, healthOf, checkCatalog: check }: RouteParts): ControlPlaneRow[] {
  const provider = `${PROVIDERS_PATH}/:providerName`;
  return [
    row('GET', PROVIDERS_PATH, PLATFORM_ADMIN, providers.listProviders(catalogStore, healthOf)),
    row('GET', provider, PLATFORM_ADMIN, providers.getProvider(catalogStore, healthOf)),
    row('PUT', provider, PLATFORM_ADMIN, providers.putProvider(catalogStore)),
    row('DELETE', provider, PLATFORM_ADMIN, providers.removeProvider(catalogStore)),
    row('GET', MODELS_PATH, PLATFORM_ADMIN, models.listModels(catalogStore)),
    modelRow('GET', models.getModel(catalogStore)),
    modelRow('PUT', models.putModel(catalogStore)),
    modelRow('DELETE', models.removeModel(catalogStore)),
    row('GET', PRICES_PATH, PLATFORM_ADMIN, models.listPrices(catalogStore)),
    row('PUT', PRICES_PATH, PLATFORM_ADMIN, models.putPrice(catalogStore)),
    row('POST', '/v1/admin/catalog/check', PLATFORM_ADMIN, checkCatalog(check)),
  ];
}

/** The id of a model may have slashes. */
function modelRow(method: ControlPlaneRow['method'], operation: ControlPlaneRow['operation']): ControlPlaneRow {
  return { ...row(method, `${MODELS_PATH}/:modelName`, PLATFORM_ADMIN, operation), takesRest: true };
}
