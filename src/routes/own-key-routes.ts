// The rows of the route table about organizations' own provider keys (spec 7.4), which have an envelope of their own.

import * as byok from '../control-plane/own-keys/byok.ts';
import { getByokUsage } from '../control-plane/own-keys/byok-usage.ts';
import * as prices from '../control-plane/own-keys/model-prices.ts';
import * as credentials from '../control-plane/own-keys/provider-credentials.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  ORGANIZATION_PATH,
  PLATFORM_ADMIN,
  row,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

export function ownKeyRows(parts: RouteParts): ControlPlaneRow[] {
  const rows = [...credentialRows(parts), ...byokRows(parts), ...priceRows(parts)];
  return rows.map((one) => ({ ...one, envelope: 'provider_keys' }));
}

function credentialRows({ ownKeys }: RouteParts): ControlPlaneRow[] {
  const path = `${ACTIVE_ORGANIZATION_PATH}/provider-credentials`;
  const credential = `${path}/:credentialId`;
  const admin = ORGANIZATION_ADMIN;
  return [
    row('GET', path, admin, credentials.listProviderCredentials(ownKeys)),
    row('POST', path, admin, credentials.createProviderCredential(ownKeys)),
    row('GET', credential, admin, credentials.getProviderCredential(ownKeys)),
    row('PATCH', credential, admin, credentials.updateProviderCredential(ownKeys)),
    row('DELETE', credential, admin, credentials.removeProviderCredential(ownKeys)),
    row('POST', `${credential}/verify`, admin, credentials.verifyProviderCredential(ownKeys)),
    row('POST', `${credential}/rotate`, admin, credentials.rotateProviderCredential(ownKeys)),
  ];
}

function byokRows({ ownKeys }: RouteParts): ControlPlaneRow[] {
  const path = `${ACTIVE_ORGANIZATION_PATH}/byok`;
  const grant = `${ORGANIZATION_PATH}/byok`;
  const admin = ORGANIZATION_ADMIN;
  return [
    row('GET', `${ACTIVE_ORGANIZATION_PATH}/byok-templates`, admin, byok.listByokTemplates(ownKeys)),
    row('GET', `${path}/settings`, admin, byok.getByokSettings(ownKeys)),
    row('PATCH', `${path}/settings`, admin, byok.setByokSettings(ownKeys)),
    row('GET', `${path}/order`, admin, byok.getByokOrder(ownKeys)),
    row('PUT', `${path}/order`, admin, byok.setByokOrder(ownKeys)),
    row('GET', `${path}/usage`, admin, getByokUsage(ownKeys)),
    row('GET', `${path}/explain`, admin, byok.explainByok(ownKeys)),
    row('GET', grant, PLATFORM_ADMIN, byok.getByokGrant(ownKeys)),
    row('PATCH', grant, PLATFORM_ADMIN, byok.setByokGrant(ownKeys)),
  ];
}

function priceRows({ ownKeys }: RouteParts): ControlPlaneRow[] {
  const path = `${ACTIVE_ORGANIZATION_PATH}/model-prices`;
  // The id of a model may have slashes.
  const price = (method: ControlPlaneRow['method'], operation: ControlPlaneRow['operation']): ControlPlaneRow => ({
    ...row(method, `${path}/:modelName`, ORGANIZATION_ADMIN, operation),
    takesRest: true,
  });
  return [
    row('GET', path, ORGANIZATION_ADMIN, prices.listModelPrices(ownKeys)),
    price('GET', prices.getModelPrice(ownKeys)),
    price('PUT', prices.putModelPrice(ownKeys)),
    price('DELETE', prices.removeModelPrice(ownKeys)),
  ];
}
