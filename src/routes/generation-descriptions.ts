// What the generation rows of the route table say about themselves: the fields and headers that the gateway reads, what
// comes back, and the limits of spec 8.

import { z } from 'zod';
import type { HeaderSchemas, OperationDescription } from '../control-plane/operation.ts';
import { LEVELS_MAX, LEVELS_MIN, OPTIONS_MAX } from '../domain/evaluation/check-questions.ts';
import { DONE } from '../domain/guardrails/screening-report.ts';
import { HUMAN_TEXTS_MAX, OPENER_CHARACTERS_MIN } from '../domain/routing/conversation/conversation-reader.ts';
import { SESSION_HEADERS } from '../domain/routing/conversation/session.ts';
import { ANSWERS_BILLED_MAX } from '../generation/dialects/images.ts';
import { TAG, TAGS_MAX } from '../generation/execution/client-labels.ts';
import type { DataPlane } from '../generation/plane.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../records/field-types.ts';
import * as answers from './generation-answers.ts';

/** The headers whose names have the installation's brand in them. */
type BrandHeaders = Pick<DataPlane, 'executionIdHeader' | 'routedModelHeader' | 'tagHeader' | 'guardrailHeaders'>;
export type Described = Pick<OperationDescription, 'id' | 'summary' | 'body' | 'answer'> &
  Partial<Omit<OperationDescription, 'answerHeaders'>>;

// All fields but these are the provider's (spec 4.1 to 4.3, 4.9).
const model = z.string().meta({ description: 'A public model id.' });
const stream = z.boolean().optional().meta({ description: 'The answer is to be a stream of events.' });
const tokens = z.int().optional().meta({
  description: 'The limit of the output. A billed request needs it where the model has no `max_completion_tokens` cap.',
});
const messages = z.array(z.looseObject({}));
const messagesBody = { model, messages, system: z.unknown().optional() };

const described = z.union([z.string(), z.looseObject({}), z.array(z.unknown())]);
const instructions = described.nullable().optional().meta({ description: 'Text, or a structured object.' });
const typedQuestion = z
  .union([
    z.looseObject({
      type: z.literal('noul'),
      instructions,
      criteria: z
        .object({ true: described.nullable().optional(), false: described.nullable().optional() })
        .nullable()
        .optional(),
    }),
    z.looseObject({
      type: z.literal('choice'),
      instructions,
      criteria: z
        .record(z.string(), described.nullable())
        .meta({ description: 'Descriptions by option.', minProperties: 1, maxProperties: OPTIONS_MAX }),
    }),
    z.looseObject({
      type: z.literal('score'),
      instructions,
      criteria: z
        .array(described.nullable())
        .min(LEVELS_MIN)
        .max(LEVELS_MAX)
        .meta({ description: 'Descriptions of the levels, lowest first.' }),
    }),
  ])
  .meta({ id: 'TypedQuestion' });

const imageFields = {
  model,
  prompt: z.string().optional(),
  size: z.string().optional(),
  quality: z.string().optional(),
  n: z
    .int()
    .min(1)
    .max(ANSWERS_BILLED_MAX)
    .optional()
    .meta({ description: `Images to make; above ${ANSWERS_BILLED_MAX} a billed request is 422.` }),
  stream,
};

const ROUTED =
  `The virtual model (\`service/auto\`, by the installation’s brand) is served by a model chosen for each human ` +
  `turn, from the latest message and up to ${HUMAN_TEXTS_MAX - 1} before it, trimmed. A conversation is known by the ` +
  `session that a header or the body names, else by its first message of at least ${OPENER_CHARACTERS_MIN} characters.`;
const sessionId = z.string().optional().meta({
  description: 'The session of the conversation, for the virtual model; the first such header of a request counts.',
});
const SESSIONS: HeaderSchemas = Object.fromEntries(SESSION_HEADERS.map((name) => [name, sessionId]));
const MESSAGES_HEADERS: HeaderSchemas = {
  'anthropic-version': z.iso.date().optional().meta({ description: 'The version of the Messages API; it goes along.' }),
  'anthropic-beta': z.string().optional().meta({ description: 'Betas, separated by commas; they go along.' }),
};
const TEXT = { isRouted: true, details: ROUTED } as const;

/** What all generations read beside their own headers. */
function labelHeaders({ tagHeader }: BrandHeaders): HeaderSchemas {
  return {
    'X-Client-Request-Id': z
      .string()
      .max(CLIENT_REQUEST_ID_LENGTH_MAX)
      .optional()
      .meta({ description: 'A label by which the execution can be found; it is not forwarded.' }),
    [tagHeader]: z
      .array(z.string().regex(TAG))
      .max(TAGS_MAX)
      .optional()
      .meta({
        description: `Tags, separated by commas or in several headers; ${TAGS_MAX} are kept, malformed ones dropped.`,
      }),
    'Idempotency-Key': z.string().optional().meta({ description: 'For the provider, to whom it goes along.' }),
  };
}

function answerHeaders(
  { executionIdHeader, routedModelHeader, guardrailHeaders }: BrandHeaders,
  isRouted: boolean,
): HeaderSchemas {
  const executionId = z.uuid().optional().meta({
    description: 'The id under which the request is recorded, if its sender is known; also of one that is refused.',
  });
  const all = {
    [executionIdHeader]: executionId,
    [guardrailHeaders.action]: z
      .enum(['none', ...Object.values(DONE)])
      .optional()
      .meta({ description: 'The strongest that guardrails did. Absent: no rule is for the request.' }),
    [guardrailHeaders.count]: z.int().optional().meta({ description: 'How many findings there were.' }),
  };
  if (!isRouted) return all;
  const routedModel = z.string().optional().meta({ description: 'The model that the virtual model chose.' });
  return { ...all, [routedModelHeader]: routedModel };
}

/** With what all generations have in common. */
export function describeGeneration(brand: BrandHeaders, route: Described): OperationDescription {
  const isRouted = route.isRouted === true;
  const headers = { ...labelHeaders(brand), ...(isRouted ? SESSIONS : {}), ...route.headers };
  return { query: null, status: 200, ...route, headers, answerHeaders: answerHeaders(brand, isRouted) };
}

/** The provider's own fields of a query go along as they are. */
function savedResponse(
  id: string,
  summary: string,
  answer: z.ZodType,
  more: Partial<OperationDescription> = {},
): OperationDescription {
  return { id, summary, query: null, body: null, answer, status: 200, ...more };
}

export const SAVED_RESPONSES = {
  get: savedResponse('getResponse', 'Retrieves a saved response.', answers.responseObject, {
    query: z.object({ stream, starting_after: z.int().optional() }),
    events: answers.responseEvent,
  }),
  delete: savedResponse('deleteResponse', 'Deletes a saved response.', answers.deletedResponse),
  cancel: savedResponse('cancelResponse', 'Cancels a saved response.', answers.responseObject),
  inputItems: savedResponse(
    'listResponseInputItems',
    'Lists the input items of a saved response.',
    answers.responseItems,
    {
      query: z.object({
        limit: z.int().optional(),
        order: z.enum(['asc', 'desc']).optional(),
        after: z.string().optional(),
      }),
    },
  ),
};

export const RESPONSES_UPGRADE: OperationDescription = {
  id: 'refuseResponsesUpgrade',
  summary: 'WebSocket is not supported: answers 426, or 405.',
  query: null,
  body: null,
  answer: null,
  status: null,
};

export const CHAT_COMPLETIONS: Described = {
  id: 'createChatCompletion',
  summary: 'Generates in the Chat Completions format.',
  body: z.looseObject({ model, messages, max_tokens: tokens, max_completion_tokens: tokens, stream }),
  answer: answers.chatCompletion,
  events: answers.chatCompletionChunk,
  ...TEXT,
};

export const RESPONSES: Described = {
  id: 'createResponse',
  summary: 'Generates in the Responses format.',
  body: z.looseObject({
    model,
    input: z.unknown().optional(),
    max_output_tokens: tokens,
    previous_response_id: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'The request stays on the model that made that response.' }),
    stream,
  }),
  answer: answers.responseObject,
  events: answers.responseEvent,
  ...TEXT,
};

export const MESSAGES: Described = {
  id: 'createMessage',
  summary: 'Generates in the Messages format.',
  headers: MESSAGES_HEADERS,
  body: z.looseObject({ ...messagesBody, max_tokens: z.int(), stream }),
  answer: answers.message,
  events: answers.messageEvent,
  ...TEXT,
};

export const COUNT_TOKENS: Described = {
  id: 'countMessageTokens',
  summary: 'Counts the tokens of a Messages request.',
  headers: MESSAGES_HEADERS,
  body: z.looseObject(messagesBody),
  answer: answers.tokenCount,
  ...TEXT,
  details: `Free of charge. The record shows the provider’s count as input tokens; no total counts them. ${ROUTED}`,
};

export const IMAGE_GENERATIONS: Described = {
  id: 'generateImages',
  summary: 'Generates images.',
  details: 'Priced by image; the tokens of its usage are for analytics.',
  body: z.looseObject(imageFields),
  answer: answers.images,
  events: answers.imageEvent,
};

export const IMAGE_EDITS: Described = {
  id: 'editImages',
  summary: 'Edits images.',
  details: IMAGE_GENERATIONS.details ?? '',
  body: z.looseObject({ ...imageFields, images: z.array(z.looseObject({})).optional() }),
  form: z.looseObject({ ...imageFields, 'image[]': z.unknown(), mask: z.unknown().optional() }),
  answer: answers.images,
  events: answers.imageEvent,
};

export const EMBEDDINGS: Described = {
  id: 'createEmbeddings',
  summary: 'Makes vectors of texts.',
  body: z.looseObject({
    model,
    input: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
    encoding_format: z.enum(['float', 'base64']).optional(),
    dimensions: z.int().optional(),
    user: z.string().optional(),
  }),
  answer: answers.embeddingList,
};

export const SYSTEMONE: Described = {
  id: 'evaluateQuestions',
  summary: 'Answers typed questions about a state.',
  details:
    'The state and the longest question must fit the model’s `context_length` together: 413 otherwise. Input tokens ' +
    'are priced, output is free.',
  body: z.looseObject({
    model,
    state: z
      .union([z.string(), z.looseObject({}), z.array(z.union([z.string(), z.looseObject({}), z.array(z.unknown())]))])
      .meta({ description: 'What is evaluated; text only.' }),
    questions: z.record(z.string(), typedQuestion).meta({ description: 'By ids of the caller’s choice.' }),
  }),
  answer: answers.evaluation,
};
