// The control-plane part of the route table: the rows of each area, made into routes.

import { getModel } from '../control-plane/catalog/get-model.ts';
import { listModelProviders } from '../control-plane/catalog/list-model-providers.ts';
import { listModels } from '../control-plane/catalog/list-models.ts';
import { getGeneration } from '../control-plane/executions/get-generation.ts';
import { listGenerations } from '../control-plane/executions/list-generations.ts';
import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import {
  GET_GENERATION,
  GET_MODEL,
  LIST_GENERATIONS,
  LIST_MODEL_PROVIDERS,
  LIST_MODELS,
} from '../control-plane/openapi/read-descriptions.ts';
import type { Authorize, OperationDescription } from '../control-plane/operation.ts';
import type { OrganizationPermission } from '../domain/identity/permit.ts';
import { isScoped, type ScopedPrincipal } from '../domain/identity/principal.ts';
import { refuseUnknownParameter } from '../domain/refusals/read-query.ts';
import type { Exchange } from '../http/exchange.ts';
import { assert } from '../platform/assert.ts';
import { alsoRefusedBy, authorizeWithSession, meterChanges } from './authorize.ts';
import { billingRows } from './billing-routes.ts';
import { catalogRows } from './catalog-routes.ts';
import { consoleRoutes, consoleRows } from './console-routes.ts';
import type { ControlPlaneRow } from './control-plane-row.ts';
import { guardrailRows } from './guardrail-routes.ts';
import { installationRows } from './installation-routes.ts';
import { mediaRoutes, mediaRows } from './media-routes.ts';
import { organizationRows } from './organization-routes.ts';
import { ownKeyRows } from './own-key-routes.ts';
import { personalRows } from './personal-routes.ts';
import { platformRows } from './platform-routes.ts';
import { reportRows } from './report-routes.ts';
import type { RouteParts } from './route-parts.ts';

export function controlPlaneRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const rows = [
    ...personalRows(parts),
    ...platformRows(parts),
    ...catalogRows(parts),
    ...organizationRows(parts),
    ...guardrailRows(parts),
    ...ownKeyRows(parts),
    ...mediaRows(parts),
    ...billingRows(parts),
    ...reportRows(parts),
    ...consoleRows(parts),
    ...installationRows(parts),
  ];
  const routes: readonly DescribedRoute[] = [
    ...readingRoutes(parts),
    ...mediaRoutes(parts),
    ...rows.map((row) => routeOf(row, parts)),
    ...consoleRoutes(parts),
  ];
  // The answers depend on the caller, by headers that a cache in front need not tell apart.
  return routes.map((route) => ({ ...route, isNeverCached: true }));
}

function routeOf({ operation, ...row }: ControlPlaneRow, parts: RouteParts): DescribedRoute {
  const handle = (exchange: Exchange) => {
    const authorize = authorizeWithSession(parts, row, exchange);
    if (row.method === 'GET') return operation.serve(exchange, checkParameters(authorize, operation, exchange));
    return operation.serve(exchange, row.method === 'DELETE' ? authorize : meterChanges(authorize, parts.changeMeter));
  };
  return { envelope: 'platform', ...row, plane: 'control', takesSession: true, description: operation, handle };
}

/** Lets through only parameters that the route describes, once it is known that the principal may ask at all. */
function checkParameters(authorize: Authorize, { query }: OperationDescription, exchange: Exchange): Authorize {
  return () => alsoRefusedBy(authorize(), () => refuseUnknownParameter(query, exchange.query));
}

/** Routes that write their JSON text themselves. */
function readingRoutes(parts: RouteParts): DescribedRoute[] {
  type Handle = (exchange: Exchange, principal: ScopedPrincipal) => void | Promise<void>;
  const reading = (
    path: string,
    permission: OrganizationPermission,
    description: OperationDescription,
    handle: Handle,
  ): DescribedRoute => {
    const access = { path, permission, scope: 'organization' } as const;
    return {
      method: 'GET',
      ...access,
      plane: 'control',
      takesSession: true,
      envelope: 'platform',
      description,
      async handle(exchange) {
        const identified = await authorizeWithSession(parts, access, exchange)();
        if ('kind' in identified) return exchange.refuse(identified);
        const unknown = refuseUnknownParameter(description.query, exchange.query);
        if (unknown !== null) return exchange.refuse(unknown);
        assert(isScoped(identified), 'the route table lets nobody without an organization here');
        await handle(exchange, identified);
      },
    };
  };
  return [
    reading('/v1/generation', 'usage.read', GET_GENERATION, getGeneration(parts.lookup)),
    reading(
      '/v1/generations',
      'usage.read',
      LIST_GENERATIONS,
      listGenerations(parts.findGenerations, (limitMs) => parts.lookup.postingPassed(limitMs)),
    ),
    reading('/v1/models', 'inference', LIST_MODELS, listModels(parts.catalog, parts.virtualModel)),
    reading(
      '/v1/models/providers',
      'inference',
      LIST_MODEL_PROVIDERS,
      listModelProviders(parts.catalog, parts.healthOf),
    ),
    // The id of a model may have slashes.
    {
      ...reading('/v1/models/:id', 'inference', GET_MODEL, getModel(parts.catalog, parts.virtualModel)),
      takesRest: true,
    },
  ];
}
