// The generation rows of the route table, and what they say about themselves. They authenticate by themselves, so that
// a warm request waits for nothing.

import { z } from 'zod';
import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import type { OperationDescription } from '../control-plane/operation.ts';
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
import type { RouteParts } from './route-parts.ts';

// The fields that the gateway reads (spec 4.1 to 4.3, 4.9); all others are the provider's.
const model = z.string().meta({ description: 'A public model id.' });
const stream = z.boolean().optional();
const tokens = z.int().optional();

const typedQuestion = z
  .looseObject({
    type: z.enum(['noul', 'choice', 'score']),
    instructions: z.union([z.string(), z.looseObject({})]).optional(),
    criteria: z.unknown().optional(),
  })
  .meta({ id: 'TypedQuestion' });

const messagesBody = { model, messages: z.array(z.looseObject({})), system: z.unknown().optional() };

function generating(id: string, summary: string, body: z.ZodType): OperationDescription {
  return { id, summary, query: null, body, answer: null, status: 200 };
}

function savedResponse(id: string, summary: string): OperationDescription {
  return { id, summary, query: null, body: null, answer: null, status: 200 };
}

const CHAT_COMPLETIONS = generating(
  'createChatCompletion',
  'Generates in the Chat Completions format.',
  z.looseObject({
    model,
    messages: z.array(z.looseObject({})),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    stream,
  }),
);
const RESPONSES = generating(
  'createResponse',
  'Generates in the Responses format.',
  z.looseObject({
    model,
    input: z.unknown().optional(),
    max_output_tokens: tokens,
    previous_response_id: z.string().nullable().optional(),
    stream,
  }),
);
const RESPONSES_UPGRADE = savedResponse('refuseResponsesUpgrade', 'WebSocket is not supported: answers 426, or 405.');
const GET_RESPONSE = savedResponse('getResponse', 'Retrieves a saved response.');
const DELETE_RESPONSE = savedResponse('deleteResponse', 'Deletes a saved response.');
const CANCEL_RESPONSE = savedResponse('cancelResponse', 'Cancels a saved response.');
const LIST_RESPONSE_INPUTS = savedResponse('listResponseInputItems', 'Lists the input items of a saved response.');
const MESSAGES = generating(
  'createMessage',
  'Generates in the Messages format.',
  z.looseObject({ ...messagesBody, max_tokens: z.int(), stream }),
);
const COUNT_TOKENS = generating(
  'countMessageTokens',
  'Counts the tokens of a Messages request.',
  z.looseObject(messagesBody),
);
const IMAGE_GENERATIONS = generating(
  'generateImages',
  'Generates images.',
  z.looseObject({
    model,
    prompt: z.string().optional(),
    size: z.string().optional(),
    quality: z.string().optional(),
    n: z.int().min(1).max(10).optional(),
  }),
);
const IMAGE_EDITS: OperationDescription = {
  ...generating(
    'editImages',
    'Edits images.',
    z.looseObject({ model, prompt: z.string().optional(), 'image[]': z.unknown(), mask: z.unknown().optional() }),
  ),
  form: true,
};
const EMBEDDINGS = generating(
  'createEmbeddings',
  'Makes vectors of texts.',
  z.looseObject({
    model,
    input: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
    encoding_format: z.enum(['float', 'base64']).optional(),
    dimensions: z.int().optional(),
    user: z.string().optional(),
  }),
);
const SYSTEMONE = generating(
  'evaluateQuestions',
  'Answers typed questions about a state.',
  z.looseObject({ model, state: z.unknown(), questions: z.record(z.string(), typedQuestion) }),
);

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
    { method: 'POST', path: '/v1/embeddings', ...generate('openai', embeddings, EMBEDDINGS) },
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
