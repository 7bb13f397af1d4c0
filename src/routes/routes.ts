// THE route table (spec 4): method, path, plane, permission, scope, envelope, description, handler. A route that is not
// here does not exist.

import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import { controlPlaneRoutes } from './control-plane-routes.ts';
import { generationRoutes } from './generation-routes.ts';
import { processRoutes } from './process-routes.ts';
import type { RouteParts } from './route-parts.ts';

export function createRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const table: readonly DescribedRoute[] = [
    ...generationRoutes(parts),
    ...controlPlaneRoutes(parts),
    ...processRoutes(parts, () => table),
  ];
  return table;
}
