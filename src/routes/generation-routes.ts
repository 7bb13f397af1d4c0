// The generation rows of the route table. They authenticate by themselves, so that a warm request waits for nothing.

import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import type { OperationDescription } from '../control-plane/operation.ts';
import type { ApiName } from '../domain/models/apis.ts';
import type { AdmissionForm } from '../domain/refusals/render.ts';
import { chatCompletions } from '../generation/dialects/chat-completions.ts';
import { countTokens } from '../generation/dialects/count-tokens.ts';
import type { Dialect } from '../generation/dialects/dialect.ts';
import { embeddings } from '../generation/dialects/embeddings.ts';
import { imageEdits, imageGenerations } from '../generation/dialects/images.ts';
import { messages } from '../generation/dialects/messages.ts';
import { responses } from '../generation/dialects/responses.ts';
import { systemone } from '../generation/dialects/systemone.ts';
import { serveGeneration } from '../generation/serve.ts';
import { serveSavedResponse } from '../generation/serve-saved-response.ts';
import type { Exchange } from '../http/exchange.ts';
import * as descriptions from './generation-descriptions.ts';
import type { RouteParts } from './route-parts.ts';

/** What all generation needs; the method is not the only thing that differs. */
const INFERENCE = { plane: 'data', permission: 'inference', scope: 'key' } as const;

export function generationRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const formOf = (api: ApiName): AdmissionForm => (parts.dialectRefusals.has(api) ? 'dialect' : 'flat');
  /** What the routes of generations have in common: an envelope, an admission form, and the one path of a request. */
  const generate = (envelope: DescribedRoute['envelope'], dialect: Dialect, description: descriptions.Described) => ({
    ...INFERENCE,
    envelope,
    admissionForm: formOf(dialect.api),
    executionIdHeader: parts.plane.executionIdHeader,
    description: descriptions.describeGeneration(parts.plane, description),
    handle: serveGeneration(parts.plane, dialect),
  });
  const saved = (subpath: '' | '/cancel' | '/input_items', description: OperationDescription) => ({
    ...INFERENCE,
    envelope: 'openai' as const,
    admissionForm: formOf('responses'),
    description,
    handle: serveSavedResponse(parts.plane, subpath),
  });
  return [
    {
      method: 'POST',
      path: '/v1/chat/completions',
      ...generate('chat', chatCompletions, descriptions.CHAT_COMPLETIONS),
    },
    { method: 'POST', path: '/v1/responses', ...generate('openai', responses, descriptions.RESPONSES) },
    {
      method: 'GET',
      path: '/v1/responses',
      plane: 'process',
      permission: null,
      scope: 'none',
      envelope: 'openai',
      description: descriptions.RESPONSES_UPGRADE,
      handle: refuseUpgrade,
    },
    { method: 'GET', path: '/v1/responses/:id', ...saved('', descriptions.SAVED_RESPONSES.get) },
    { method: 'DELETE', path: '/v1/responses/:id', ...saved('', descriptions.SAVED_RESPONSES.delete) },
    { method: 'POST', path: '/v1/responses/:id/cancel', ...saved('/cancel', descriptions.SAVED_RESPONSES.cancel) },
    {
      method: 'GET',
      path: '/v1/responses/:id/input_items',
      ...saved('/input_items', descriptions.SAVED_RESPONSES.inputItems),
    },
    { method: 'POST', path: '/v1/messages', ...generate('messages', messages, descriptions.MESSAGES) },
    {
      method: 'POST',
      path: '/v1/messages/count_tokens',
      ...generate('messages', countTokens, descriptions.COUNT_TOKENS),
    },
    {
      method: 'POST',
      path: '/v1/images/generations',
      ...generate('openai', imageGenerations, descriptions.IMAGE_GENERATIONS),
    },
    { method: 'POST', path: '/v1/images/edits', ...generate('openai', imageEdits, descriptions.IMAGE_EDITS) },
    { method: 'POST', path: '/v1/embeddings', ...generate('openai', embeddings, descriptions.EMBEDDINGS) },
    { method: 'POST', path: '/v1/systemone', ...generate('systemone', systemone, descriptions.SYSTEMONE) },
  ];
}

/**
 * POST over HTTPS is the only transport; 426 is what makes clients that dial a WebSocket first fall back to it (spec
 * 4.2).
 */
function refuseUpgrade(exchange: Exchange): void {
  if (exchange.header('upgrade')?.toLowerCase() === 'websocket') exchange.refuse({ kind: 'websocket_not_supported' });
  else exchange.refuse({ kind: 'method_not_allowed', allow: ['POST'] });
}
