// What providers answer on each generation route, as schemas for the OpenAPI document. The bytes are the provider's and
// are relayed unread: only what a format's every answer has is required, and further members may come.

import { z } from 'zod';

const count = z.int();
const text = z.string();
const items = z.array(z.looseObject({ type: text.optional() }));
const relayed = 'The provider’s own, relayed byte for byte; it may have further members.';
const event = 'The data of one event; the stream ends with an event whose data is the text `[DONE]`.';

function answer(id: string, members: z.ZodRawShape, description = relayed): z.ZodType {
  return z.looseObject(members).meta({ id, description });
}

const chatUsage = answer('ChatCompletionUsage', {
  prompt_tokens: count.optional(),
  completion_tokens: count.optional(),
  total_tokens: count.optional(),
});
const chatHead = {
  id: text.optional(),
  object: text.optional(),
  created: z.number().optional(),
  model: text.optional(),
  usage: chatUsage.nullable().optional(),
};

export const chatCompletion = answer('ChatCompletion', {
  ...chatHead,
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
export const chatCompletionChunk = answer(
  'ChatCompletionChunk',
  {
    ...chatHead,
    choices: z.array(
      z.looseObject({
        index: count.optional(),
        delta: z.looseObject({ content: text.nullable().optional() }).optional(),
        finish_reason: text.nullable().optional(),
      }),
    ),
  },
  event,
);

const response = {
  id: text.optional(),
  object: text.optional(),
  status: text.optional(),
  model: text.optional(),
  output: items.optional(),
  usage: z.looseObject({ input_tokens: count.optional(), output_tokens: count.optional() }).nullable().optional(),
};
export const responseObject = answer('Response', response);
export const responseEvent = answer(
  'ResponseEvent',
  { type: text, sequence_number: count.optional(), response: z.looseObject(response).optional() },
  'The data of one event, which `type` names; `response.completed` is the last of a whole stream.',
);
export const deletedResponse = answer('DeletedResponse', { id: text.optional(), deleted: z.boolean().optional() });
export const responseItems = answer('ResponseItems', {
  data: items,
  first_id: text.nullable().optional(),
  last_id: text.nullable().optional(),
  has_more: z.boolean().optional(),
});

export const message = answer('Message', {
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
});
export const messageEvent = answer(
  'MessageEvent',
  { type: text },
  'The data of one event, which `type` names; `message_stop` is the last of a whole stream.',
);
export const tokenCount = answer('TokenCount', { input_tokens: count });

export const images = answer('Images', {
  created: count.optional(),
  data: z.array(z.looseObject({ b64_json: text.optional(), url: text.optional() })),
  usage: z
    .looseObject({
      input_tokens: count.optional(),
      output_tokens: count.optional(),
      total_tokens: count.optional(),
      input_tokens_details: z.looseObject({ text_tokens: count.optional(), image_tokens: count.optional() }).optional(),
    })
    .optional(),
});
export const imageEvent = answer(
  'ImageEvent',
  { type: text, b64_json: text.optional() },
  'The data of one event: a partial image, or one that is whole.',
);

export const embeddingList = answer('EmbeddingList', {
  object: text.optional(),
  data: z.array(
    z.looseObject({
      index: count.optional(),
      embedding: z
        .union([z.array(z.number()), text])
        .meta({ description: 'Floats, or base64 where that was asked for.' }),
    }),
  ),
  model: text.optional(),
  usage: z.looseObject({ prompt_tokens: count.optional(), total_tokens: count.optional() }).optional(),
});

const probability = z.number().min(0).max(1);
const typedAnswer = z
  .union([
    z.looseObject({ type: z.literal('noul'), noul: probability }),
    z.looseObject({
      type: z.literal('choice'),
      choice: text,
      confidence: probability.optional(),
      probabilities: z.record(text, probability).optional(),
    }),
    z.looseObject({
      type: z.literal('score'),
      score: z.number(),
      confidence: probability.optional(),
      legend: z.record(text, z.unknown()).optional(),
      probabilities: z.record(text, probability).optional(),
    }),
  ])
  .meta({ id: 'TypedAnswer' });
export const evaluation = answer('Evaluation', {
  model: text.meta({ description: 'The versioned id of the model that answered.' }),
  answers: z.record(text, typedAnswer).meta({ description: 'By the ids of the questions.' }),
  usage: z.looseObject({ input_tokens: count.optional(), output_tokens: count.optional() }).optional(),
});
