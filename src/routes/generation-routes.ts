// The generation rows of the route table. They authenticate by themselves, so that a warm request waits for nothing.

import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import type { OperationDescription } from '../control-plane/operation.ts';
import { chatCompletions } from '../generation/dialects/chat-completions.ts';
import { countTokens } from '../generation/dialects/count-tokens.ts';
import type { Dialect } from '../generation/dialects/dialect.ts';
import { imageEdits, imageGenerations } from '../generation/dialects/images.ts';
import { messages } from '../generation/dialects/messages.ts';
import { responses } from '../generation/dialects/responses.ts';
import { systemone } from '../generation/dialects/systemone.ts';
import { serveGeneration } from '../generation/serve.ts';
import { serveSavedResponse } from '../generation/serve-saved-response.ts';
import type { Exchange } from '../http/exchange.ts';
import {
  CANCEL_RESPONSE,
  CHAT_COMPLETIONS,
  COUNT_TOKENS,
  DELETE_RESPONSE,
  GET_RESPONSE,
  IMAGE_EDITS,
  IMAGE_GENERATIONS,
  LIST_RESPONSE_INPUTS,
  MESSAGES,
  RESPONSES,
  RESPONSES_UPGRADE,
  SYSTEMONE,
} from './generation-descriptions.ts';
import type { RouteParts } from './route-parts.ts';

/** What all generation needs; the method is not the only thing that differs. */
const INFERENCE = { plane: 'data', permission: 'inference', scope: 'key' } as const;

export function generationRoutes(parts: RouteParts): readonly DescribedRoute[] {
  /** What the routes of generations have in common: an envelope, an admission form, and the one path of a request. */
  const generate = (envelope: DescribedRoute['envelope'], dialect: Dialect, description: OperationDescription) => ({
    ...INFERENCE,
    envelope,
    admissionForm: parts.dialectRefusals.has(dialect.api) ? ('dialect' as const) : ('flat' as const),
    description,
    handle: serveGeneration(parts.plane, dialect),
  });
  const saved = (subpath: '' | '/cancel' | '/input_items', description: OperationDescription) => ({
    ...INFERENCE,
    envelope: 'openai' as const,
    description,
    handle: serveSavedResponse(parts.plane, subpath),
  });
  return [
    { method: 'POST', path: '/v1/chat/completions', ...generate('chat', chatCompletions, CHAT_COMPLETIONS) },
    { method: 'POST', path: '/v1/responses', ...generate('openai', responses, RESPONSES) },
    {
      method: 'GET',
      path: '/v1/responses',
      plane: 'process',
      permission: null,
      scope: 'none',
      envelope: 'openai',
      description: RESPONSES_UPGRADE,
      handle: refuseUpgrade,
    },
    { method: 'GET', path: '/v1/responses/:id', ...saved('', GET_RESPONSE) },
    { method: 'DELETE', path: '/v1/responses/:id', ...saved('', DELETE_RESPONSE) },
    { method: 'POST', path: '/v1/responses/:id/cancel', ...saved('/cancel', CANCEL_RESPONSE) },
    { method: 'GET', path: '/v1/responses/:id/input_items', ...saved('/input_items', LIST_RESPONSE_INPUTS) },
    { method: 'POST', path: '/v1/messages', ...generate('messages', messages, MESSAGES) },
    { method: 'POST', path: '/v1/messages/count_tokens', ...generate('messages', countTokens, COUNT_TOKENS) },
    { method: 'POST', path: '/v1/images/generations', ...generate('openai', imageGenerations, IMAGE_GENERATIONS) },
    { method: 'POST', path: '/v1/images/edits', ...generate('openai', imageEdits, IMAGE_EDITS) },
    { method: 'POST', path: '/v1/systemone', ...generate('systemone', systemone, SYSTEMONE) },
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
