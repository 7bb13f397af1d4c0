// The real route table without anything behind it, for tests that go through it.

import { ConsoleSessions } from '../../src/control-plane/console/console-sessions.ts';
import { SessionCookie } from '../../src/control-plane/console/session-cookie.ts';
import { buildOpenapiDocument } from '../../src/control-plane/openapi/build-document.ts';
import type { DescribedRoute } from '../../src/control-plane/openapi/described-route.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';

/** The parts that the rows themselves need. A test adds what its own rows must find behind them. */
export const NOTHING_BEHIND = {
  plane: {
    executionIdHeader: 'X-Service-Execution-Id',
    routedModelHeader: 'X-Service-Routed-Model',
    tagHeader: 'x-service-tag',
    guardrailHeaders: { action: 'X-Service-Guardrail', count: 'X-Service-Guardrail-Count' },
  },
  dialectRefusals: new Set(),
  webhookTargets: {},
  publicUrl: 'https://gate.test',
  // No files are kept.
  media: null,
  // The console is switched off, but every route that accepts sessions looks for one.
  console: {
    built: null,
    sessions: new ConsoleSessions(new SessionCookie('https://gate.test'), async () => undefined, systemClock),
    brand: 'Service',
    oidc: { providers: [] },
  },
} as unknown as RouteParts;

export function routeTable(): readonly DescribedRoute[] {
  return createRoutes(NOTHING_BEHIND);
}

/** The OpenAPI document of the whole table. */
export function openapiDocument(): object {
  return buildOpenapiDocument(routeTable(), { version: '1', publicUrl: 'https://gate.test' });
}

/** The name of a route in the form of uWebSockets.js and of the table. */
export function nameOf(route: Pick<DescribedRoute, 'method' | 'path'>): string {
  return `${route.method} ${route.path}`;
}
