// The rows of the route table about this process itself, for which nobody needs a credential.

import { buildOpenapiDocument } from '../control-plane/openapi/build-document.ts';
import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import { GET_HEALTH, GET_OPENAPI, GET_READINESS } from '../control-plane/openapi/read-descriptions.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RouteParts } from './route-parts.ts';

/** The version of the HTTP API; its paths begin with it. */
const API_VERSION = '1';
const OPEN = { plane: 'process', permission: null, scope: 'none', envelope: 'platform' } as const;

/** `table`: the whole route table, these rows included. */
export function processRoutes(parts: RouteParts, table: () => readonly DescribedRoute[]): readonly DescribedRoute[] {
  let document: string | null = null;
  const openapi = () =>
    (document ??= JSON.stringify(buildOpenapiDocument(table(), { version: API_VERSION, publicUrl: parts.publicUrl })));
  return [
    {
      method: 'GET',
      path: '/healthz',
      ...OPEN,
      description: GET_HEALTH,
      handle: (exchange) => exchange.answerJson(200, '{"status":"ok"}'),
    },
    {
      method: 'GET',
      path: '/readyz',
      ...OPEN,
      description: GET_READINESS,
      handle: (exchange) => answerReadiness(exchange, parts.notReady()),
    },
    {
      method: 'GET',
      path: '/openapi.json',
      ...OPEN,
      description: GET_OPENAPI,
      handle: (exchange) => exchange.answerJson(200, openapi()),
    },
  ];
}

function answerReadiness(exchange: Exchange, notReady: readonly string[]): void {
  exchange.answerJson(
    notReady.length === 0 ? 200 : 503,
    JSON.stringify({ status: notReady.length === 0 ? 'ready' : 'not ready', not_ready: notReady }),
  );
}
