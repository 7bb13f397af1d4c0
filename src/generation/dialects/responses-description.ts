// Describes the Responses dialect, and the operations on saved responses, for the OpenAPI document.

import { z } from 'zod';
import { answer, count, type DialectDescription, model, outputLimit, ROUTED, stream, text } from './description.ts';

const items = z.array(z.looseObject({ type: text.optional() }));
const response = {
  id: text.optional(),
  object: text.optional(),
  status: text.optional(),
  model: text.optional(),
  output: items.optional(),
  usage: z.looseObject({ input_tokens: count.optional(), output_tokens: count.optional() }).nullable().optional(),
};
const responseObject = answer('Response', response);
const responseEvent = answer(
  'ResponseEvent',
  { type: text, sequence_number: count.optional(), response: z.looseObject(response).optional() },
  'The data of one event, which `type` names; `response.completed` is the last of a whole stream.',
);

export const responsesDescription: DialectDescription = {
  id: 'createResponse',
  summary: 'Generates in the Responses format.',
  details: ROUTED,
  body: z.looseObject({
    model,
    input: z.unknown().optional(),
    max_output_tokens: outputLimit,
    previous_response_id: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'The request stays on the model that made that response.' }),
    stream,
  }),
  answer: responseObject,
  events: responseEvent,
  isRouted: true,
};

/** The operations on a saved response. The provider's own query fields are forwarded unchanged. */
export const SAVED_RESPONSE_DESCRIPTIONS = {
  get: {
    id: 'getResponse',
    summary: 'Retrieves a saved response.',
    query: z.object({ stream, starting_after: z.int().optional() }),
    answer: responseObject,
    events: responseEvent,
  },
  delete: {
    id: 'deleteResponse',
    summary: 'Deletes a saved response.',
    query: null,
    answer: answer('DeletedResponse', { id: text.optional(), deleted: z.boolean().optional() }),
  },
  cancel: { id: 'cancelResponse', summary: 'Cancels a saved response.', query: null, answer: responseObject },
  inputItems: {
    id: 'listResponseInputItems',
    summary: 'Lists the input items of a saved response.',
    query: z.object({
      limit: z.int().optional(),
      order: z.enum(['asc', 'desc']).optional(),
      after: z.string().optional(),
    }),
    answer: answer('ResponseItems', {
      data: items,
      first_id: text.nullable().optional(),
      last_id: text.nullable().optional(),
      has_more: z.boolean().optional(),
    }),
  },
};
