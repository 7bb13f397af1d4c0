// Describes the Messages dialect and its token counts for the OpenAPI document.

import { z } from 'zod';
import { answer, count, type DialectDescription, model, ROUTED, stream, text } from './description.ts';

const headers = {
  'anthropic-version': z.iso.date().optional().meta({ description: 'The version of the Messages API; it goes along.' }),
  'anthropic-beta': z.string().optional().meta({ description: 'Betas, separated by commas; they go along.' }),
};
const body = { model, messages: z.array(z.looseObject({})), system: z.unknown().optional() };

export const messagesDescription: DialectDescription = {
  id: 'createMessage',
  summary: 'Generates in the Messages format.',
  details: ROUTED,
  headers,
  body: z.looseObject({ ...body, max_tokens: z.int(), stream }),
  answer: answer('Message', {
    id: text.optional(),
    type: text.optional(),
    role: text.optional(),
    model: text.optional(),
    content: z.array(z.looseObject({ type: text, text: text.optional() })),
    stop_reason: text.nullable().optional(),
    usage: z
      .looseObject({ input_tokens: count.nullable().optional(), output_tokens: count.nullable().optional() })
      .nullable()
      .optional(),
  }),
  events: answer(
    'MessageEvent',
    { type: text },
    'The data of one event, which `type` names; `message_stop` is the last of a whole stream.',
  ),
  isRouted: true,
};

export const countTokensDescription: DialectDescription = {
  id: 'countMessageTokens',
  summary: 'Counts the tokens of a Messages request.',
  details: `Free of charge. The record shows the provider’s count as input tokens; no total counts them. ${ROUTED}`,
  headers,
  body: z.looseObject(body),
  answer: answer('TokenCount', { input_tokens: count }),
  isRouted: true,
};
