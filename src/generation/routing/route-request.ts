// Finds the model for a request that names the virtual model (spec 4.11).

import { isRoutedApi } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { admitProvisionally } from '../admission/admit-provisionally.ts';
import { resolveModel } from '../catalog/resolve-model.ts';
import type { ReadRequest, RequestBounds } from '../dialects/dialect.ts';
import type { OpenRequest } from '../open-request.ts';
import type { DataPlane } from '../plane.ts';
import type { Routed } from './router.ts';

/** null: the client named its model itself, or has left. */
export function routeRequest(
  plane: DataPlane,
  request: OpenRequest,
  { requestedModel, bounds }: ReadRequest,
): Promise<Routed | Refusal | null> | Refusal | null {
  return requestedModel === plane.router.virtualModel ? routeVirtualModel(plane, request, bounds) : null;
}

function routeVirtualModel(
  plane: DataPlane,
  request: OpenRequest,
  bounds: RequestBounds,
): Promise<Routed | Refusal | null> | Refusal {
  const { virtualModel } = plane.router;
  const { exchange, principal, catalog } = request;
  const { api } = request.dialect;
  if (!isRoutedApi(api)) {
    // Only text APIs have the virtual model; elsewhere it is a model that the endpoint does not serve.
    const isOn = catalog.routing.policyOf.has(principal.organizationId);
    return isOn
      ? { kind: 'api_not_supported', model: virtualModel, api }
      : { kind: 'unknown_model', model: virtualModel };
  }
  const carriedTokens = request.needsLookUp || bounds.saved?.conversationId != null ? null : 0;
  return plane.router.route({
    principal,
    api,
    body: request.received.body,
    bounds,
    catalog,
    header: (name) => exchange.header(name),
    isPaused: ({ id }) => isPaused(plane, request, id),
    hasLeft: () => exchange.closed,
    admitProvisionally: (models) => admitProvisionally(plane, request, models, carriedTokens),
    refusalOfStored: (models) => refusalOfStored(request, models),
  });
}

function isPaused(
  { relay }: DataPlane,
  { catalog, dialect, principal, receivedAtMs }: OpenRequest,
  id: string,
): boolean {
  const deployments = catalog.byName.get(id)?.deployments.get(dialect.api);
  if (deployments === undefined) return false;
  return 'kind' in relay.cooldowns.filter(deployments, principal.organizationId, receivedAtMs);
}

async function refusalOfStored(request: OpenRequest, models: readonly string[]): Promise<Refusal | null> {
  const { catalog, dialect, principal } = request;
  const deployments = models.flatMap((model) => {
    const resolved = resolveModel(catalog, dialect.api, model, principal.allowedModels);
    return 'kind' in resolved ? [] : resolved.deployments;
  });
  const continued = await request.continuationAmong(deployments);
  return 'kind' in continued ? continued : null;
}
