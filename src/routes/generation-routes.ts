// The generation rows of the route table. They authenticate by themselves, so that a warm request waits for nothing.

import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import type { ApiName } from '../domain/models/apis.ts';
import type { AdmissionForm } from '../domain/refusals/render.ts';
import { ALL_DIALECTS } from '../generation/dialects/all-dialects.ts';
import type { Dialect } from '../generation/dialects/dialect.ts';
import { responses } from '../generation/dialects/responses.ts';
import { SAVED_RESPONSE_DESCRIPTIONS as SAVED } from '../generation/dialects/responses-description.ts';
import { serveGeneration } from '../generation/serve.ts';
import { serveSavedResponse } from '../generation/serve-saved-response.ts';
import type { Exchange } from '../http/exchange.ts';
import { describeGeneration } from './describe-generation.ts';
import type { RouteParts } from './route-parts.ts';

/** The access that all generation routes have. */
const INFERENCE = { plane: 'data', permission: 'inference', scope: 'key' } as const;

export function generationRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const formOf = (api: ApiName): AdmissionForm => (parts.dialectRefusals.has(api) ? 'dialect' : 'flat');
  const generate = (dialect: Dialect): DescribedRoute => ({
    ...INFERENCE,
    method: 'POST',
    path: dialect.path,
    envelope: dialect.envelope,
    admissionForm: formOf(dialect.api),
    executionIdHeader: parts.plane.executionIdHeader,
    description: describeGeneration(parts.plane, dialect.description),
    handle: serveGeneration(parts.plane, dialect),
  });
  const saved = (subpath: '' | '/cancel' | '/input_items', description: (typeof SAVED)[keyof typeof SAVED]) => ({
    ...INFERENCE,
    path: `${responses.path}/:id${subpath}`,
    envelope: responses.envelope,
    admissionForm: formOf(responses.api),
    description: { ...description, body: null, status: 200 as const },
    handle: serveSavedResponse(parts.plane, subpath),
  });
  return [
    ...ALL_DIALECTS.map(generate),
    RESPONSES_UPGRADE,
    { method: 'GET', ...saved('', SAVED.get) },
    { method: 'DELETE', ...saved('', SAVED.delete) },
    { method: 'POST', ...saved('/cancel', SAVED.cancel) },
    { method: 'GET', ...saved('/input_items', SAVED.inputItems) },
  ];
}

const RESPONSES_UPGRADE: DescribedRoute = {
  method: 'GET',
  path: responses.path,
  plane: 'process',
  permission: null,
  scope: 'none',
  envelope: responses.envelope,
  description: {
    id: 'refuseResponsesUpgrade',
    summary: 'WebSocket is not supported: answers 426, or 405.',
    query: null,
    body: null,
    answer: null,
    status: null,
  },
  servesNothing: true,
  handle: refuseUpgrade,
};

/**
 * POST over HTTPS is the only transport; 426 is what makes clients that dial a WebSocket first fall back to it (spec
 * 4.2).
 */
function refuseUpgrade(exchange: Exchange): void {
  if (exchange.header('upgrade')?.toLowerCase() === 'websocket') exchange.refuse({ kind: 'websocket_not_supported' });
  else exchange.refuse({ kind: 'method_not_allowed', allow: ['POST'] });
}
