// The rows that read and replace usage limits and allow-lists of models: the same rows below every path that has them.

import { getCurrentLimitsOf } from '../control-plane/billing/current-limits.ts';
import * as limits from '../control-plane/identity/limits.ts';
import * as models from '../control-plane/identity/model-access.ts';
import type { RouteScope } from '../control-plane/identity/route-scopes.ts';
import type { Tenancy } from '../control-plane/identity/tenancy.ts';
import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import type { ModelAccessScope } from '../domain/identity/model-access.ts';
import { type ControlPlaneRow, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

export interface CeilingAccess {
  readonly read: RouteAccess;
  readonly replace: RouteAccess;
}

export function limitRows(
  { identity, billing }: RouteParts,
  path: string,
  { read, replace }: CeilingAccess,
  tenancy: Tenancy,
  routeScope: RouteScope,
): ControlPlaneRow[] {
  return [
    row('GET', `${path}/limits/current`, read, getCurrentLimitsOf(billing, tenancy, routeScope)),
    row('GET', `${path}/limits`, read, limits.getLimits(identity, tenancy, routeScope)),
    row('PUT', `${path}/limits`, replace, limits.replaceLimits(identity, tenancy, routeScope)),
  ];
}

export function modelAccessRows(
  { identity }: RouteParts,
  path: string,
  { read, replace }: CeilingAccess,
  tenancy: Tenancy,
  routeScope: RouteScope<ModelAccessScope>,
): ControlPlaneRow[] {
  return [
    row('GET', `${path}/model-access`, read, models.getModelAccess(identity, tenancy, routeScope)),
    row('PUT', `${path}/model-access`, replace, models.setModelAccess(identity, tenancy, routeScope)),
  ];
}
