// Describes the Chat Completions dialect for the OpenAPI document.

import { z } from 'zod';
import { answer, count, type DialectDescription, model, outputLimit, ROUTED, stream, text } from './description.ts';

const usage = answer('ChatCompletionUsage', {
  prompt_tokens: count.optional(),
  completion_tokens: count.optional(),
  total_tokens: count.optional(),
});
const head = {
  id: text.optional(),
  object: text.optional(),
  created: z.number().optional(),
  model: text.optional(),
  usage: usage.nullable().optional(),
};

const chatCompletion = answer('ChatCompletion', {
  ...head,
  choices: z.array(
    z.looseObject({
      index: count.optional(),
      message: z.looseObject({
        role: text.optional(),
        content: text.nullable().optional(),
        tool_calls: z.array(z.looseObject({})).nullable().optional(),
      }),
      finish_reason: text.nullable().optional(),
    }),
  ),
});
const chatCompletionChunk = answer(
  'ChatCompletionChunk',
  {
    ...head,
    choices: z.array(
      z.looseObject({
        index: count.optional(),
        delta: z.looseObject({ content: text.nullable().optional() }).optional(),
        finish_reason: text.nullable().optional(),
      }),
    ),
  },
  'The data of one event; the stream ends with an event whose data is the text `[DONE]`.',
);

export const chatCompletionsDescription: DialectDescription = {
  id: 'createChatCompletion',
  summary: 'Generates in the Chat Completions format.',
  details: ROUTED,
  body: z.looseObject({
    model,
    messages: z.array(z.looseObject({})),
    max_tokens: outputLimit,
    max_completion_tokens: outputLimit,
    stream,
  }),
  answer: chatCompletion,
  events: chatCompletionChunk,
  isRouted: true,
};
