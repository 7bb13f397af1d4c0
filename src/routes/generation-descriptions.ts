// What generation routes say about themselves: the fields that the gateway reads (spec 4.1 to 4.3, 4.9). All others are
// the provider's.

import { z } from 'zod';
import type { OperationDescription } from '../control-plane/operation.ts';

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

export const CHAT_COMPLETIONS = generating(
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
export const RESPONSES = generating(
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
export const RESPONSES_UPGRADE = savedResponse(
  'refuseResponsesUpgrade',
  'WebSocket is not supported: answers 426, or 405.',
);
export const GET_RESPONSE = savedResponse('getResponse', 'Retrieves a saved response.');
export const DELETE_RESPONSE = savedResponse('deleteResponse', 'Deletes a saved response.');
export const CANCEL_RESPONSE = savedResponse('cancelResponse', 'Cancels a saved response.');
export const LIST_RESPONSE_INPUTS = savedResponse(
  'listResponseInputItems',
  'Lists the input items of a saved response.',
);
export const MESSAGES = generating(
  'createMessage',
  'Generates in the Messages format.',
  z.looseObject({ ...messagesBody, max_tokens: z.int(), stream }),
);
export const COUNT_TOKENS = generating(
  'countMessageTokens',
  'Counts the tokens of a Messages request.',
  z.looseObject(messagesBody),
);
export const IMAGE_GENERATIONS = generating(
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
export const IMAGE_EDITS: OperationDescription = {
  ...generating(
    'editImages',
    'Edits images.',
    z.looseObject({ model, prompt: z.string().optional(), 'image[]': z.unknown(), mask: z.unknown().optional() }),
  ),
  form: true,
};
export const SYSTEMONE = generating(
  'evaluateQuestions',
  'Answers typed questions about a state.',
  z.looseObject({ model, state: z.unknown(), questions: z.record(z.string(), typedQuestion) }),
);
