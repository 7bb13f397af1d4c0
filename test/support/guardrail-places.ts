// Every place where people's texts stand in a request, API by API, and replies that contain such texts: for tests of
// what guardrails screen.

import type { ScriptedReply } from './fake-upstream.ts';
import { GENERATION_ROUTES } from './generation-routes.ts';

type Json = Readonly<Record<string, unknown>>;

export interface TextPlace {
  readonly path: string;
  readonly name: string;
  /** Makes a good request with this text in that place. */
  readonly body: (text: string) => Json;
}

function placesOf(path: string, base: Json, places: Readonly<Record<string, (text: string) => Json>>): TextPlace[] {
  return Object.entries(places).map(([name, fields]) => ({
    path,
    name,
    body: (text) => ({ ...base, ...fields(text) }),
  }));
}

const HI = { role: 'user', content: 'hi' };
const schemaWith = (description: string): Json => ({
  type: 'object',
  properties: { to: { type: 'string', description } },
});
const argumentsWith = (text: string): string => JSON.stringify({ to: text });

const CHAT_CALL = (text: string): Json => ({
  role: 'assistant',
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'send', arguments: argumentsWith(text) } }],
});
const chatPlaces = placesOf(
  '/v1/chat/completions',
  { model: 'sim/small', max_tokens: 50 },
  {
    system: (content) => ({ messages: [{ role: 'system', content }, HI] }),
    developer: (content) => ({ messages: [{ role: 'developer', content }, HI] }),
    user: (content) => ({ messages: [{ role: 'user', content }] }),
    'a part of the user’s': (text) => ({ messages: [{ role: 'user', content: [{ type: 'text', text }] }] }),
    assistant: (content) => ({ messages: [HI, { role: 'assistant', content }, HI] }),
    'arguments of a call': (text) => ({
      messages: [HI, CHAT_CALL(text), { role: 'tool', tool_call_id: 'c1', content: 'ok' }],
    }),
    'result of a tool': (content) => ({
      messages: [HI, CHAT_CALL('Bob'), { role: 'tool', tool_call_id: 'c1', content }],
    }),
    'result that is JSON': (text) => ({
      messages: [HI, CHAT_CALL('Bob'), { role: 'tool', tool_call_id: 'c1', content: argumentsWith(`\n${text}`) }],
    }),
    'description of a tool': (description) => ({
      messages: [HI],
      tools: [{ type: 'function', function: { name: 'send', description, parameters: schemaWith('who') } }],
    }),
    'description in a schema': (text) => ({
      messages: [HI],
      tools: [{ type: 'function', function: { name: 'send', parameters: schemaWith(text) } }],
    }),
    metadata: (text) => ({ messages: [HI], metadata: { note: text } }),
    user_id: (user) => ({ messages: [HI], user }),
    'a field that nobody knows': (text) => ({ messages: [HI], some_extension: { deep: [text] } }),
  },
);

const message = (content: unknown): Json => ({ type: 'message', role: 'user', content });
const responsesCall = (text: string): Json => ({
  type: 'function_call',
  call_id: 'c1',
  name: 'send',
  arguments: argumentsWith(text),
});
const responsesPlaces = placesOf(
  '/v1/responses',
  { model: 'sim/small', input: 'hi', max_output_tokens: 50 },
  {
    input: (input) => ({ input }),
    instructions: (instructions) => ({ instructions }),
    'an item': (text) => ({ input: [message(text)] }),
    'a part of an item': (text) => ({ input: [message([{ type: 'input_text', text }])] }),
    'arguments of a call': (text) => ({
      input: [message('hi'), responsesCall(text), { type: 'function_call_output', call_id: 'c1', output: 'ok' }],
    }),
    'result of a tool': (output) => ({
      input: [message('hi'), responsesCall('Bob'), { type: 'function_call_output', call_id: 'c1', output }],
    }),
    'description of a tool': (description) => ({
      tools: [{ type: 'function', name: 'send', description, parameters: schemaWith('who') }],
    }),
    metadata: (text) => ({ metadata: { note: text } }),
  },
);

const MESSAGES_PLACES = {
  system: (system: string) => ({ system, messages: [HI] }),
  'a block of system': (text: string) => ({ system: [{ type: 'text', text }], messages: [HI] }),
  user: (content: string) => ({ messages: [{ role: 'user', content }] }),
  'a block of the user’s': (text: string) => ({ messages: [{ role: 'user', content: [{ type: 'text', text }] }] }),
  'input of a call': (text: string) => ({ messages: [HI, messagesCall(text), messagesResult('ok')] }),
  'result of a tool': (text: string) => ({ messages: [HI, messagesCall('Bob'), messagesResult(text)] }),
  'a block of a result': (text: string) => ({
    messages: [HI, messagesCall('Bob'), messagesResult([{ type: 'text', text }])],
  }),
  'description of a tool': (description: string) => ({
    messages: [HI],
    tools: [{ name: 'send', description, input_schema: schemaWith('who') }],
  }),
};
function messagesCall(text: string): Json {
  return { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'send', input: { to: text } }] };
}
function messagesResult(content: unknown): Json {
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content }] };
}

const question = (fields: Json): Json => ({ questions: { q: { type: 'choice', instructions: 'Is it?', ...fields } } });
const CRITERIA = { yes: null, no: null };

const MANY_PLACES: readonly TextPlace[] = [
  ...chatPlaces,
  ...responsesPlaces,
  ...placesOf('/v1/messages', { model: 'sim/small', max_tokens: 50 }, MESSAGES_PLACES),
  ...placesOf('/v1/messages/count_tokens', { model: 'sim/small' }, MESSAGES_PLACES),
  ...placesOf('/v1/images/generations', { model: 'sim/image', prompt: 'a cat' }, { user: (user) => ({ user }) }),
  ...placesOf('/v1/embeddings', { model: 'sim/embedding' }, { 'one of many': (text) => ({ input: ['a text', text] }) }),
  ...placesOf(
    '/v1/systemone',
    { model: 'sim/judge', state: 's', ...question({ criteria: CRITERIA }) },
    {
      instructions: (instructions) => question({ instructions, criteria: CRITERIA }),
      'a criterion': (text) => question({ criteria: { ...CRITERIA, yes: text } }),
    },
  ),
];

/** For every API: the place of the text in its good request, and further places in the APIs that have many. */
export const TEXT_PLACES: readonly TextPlace[] = [
  ...GENERATION_ROUTES.filter(({ model }) => model !== 'sim/small').map(({ path, model, saying }) => ({
    path,
    name: 'what is said',
    body: (text: string) => ({ model, ...saying(text) }),
  })),
  ...MANY_PLACES,
];

export interface TextReply {
  readonly path: string;
  readonly name: string;
  readonly request: (text: string) => Json;
  /** Makes a provider's reply that contains this text. */
  readonly reply: (text: string) => ScriptedReply;
}

const json = (body: Json): ScriptedReply => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(body),
});
/** The text in two pieces. */
const stream = (text: string, eventsOf: (pieces: readonly string[]) => readonly string[]): ScriptedReply => ({
  headers: [['content-type', 'text/event-stream']],
  body: eventsOf([text.slice(0, text.length >> 1), text.slice(text.length >> 1)]).join(''),
  framing: 'chunked',
});
const event = (data: Json): string => `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: Json): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;

const CHAT_USAGE = { prompt_tokens: 40, completion_tokens: 3, total_tokens: 43 };
const USAGE = { input_tokens: 40, output_tokens: 3 };
const chatRequest = (content: string): Json => ({
  model: 'sim/small',
  messages: [{ role: 'user', content }],
  max_tokens: 50,
});
const responsesRequest = (input: string): Json => ({ model: 'sim/small', input, max_output_tokens: 50 });
const streamed = (request: (text: string) => Json) => (text: string) => ({ ...request(text), stream: true });
const outputOf = (text: string): Json[] => [
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] },
];

export const TEXT_REPLIES: readonly TextReply[] = [
  {
    path: '/v1/chat/completions',
    name: 'whole',
    request: chatRequest,
    reply: (content) => json({ choices: [{ index: 0, message: { role: 'assistant', content } }], usage: CHAT_USAGE }),
  },
  {
    path: '/v1/chat/completions',
    name: 'arguments of a call',
    request: chatRequest,
    reply: (text) =>
      json({ choices: [{ index: 0, message: { ...CHAT_CALL(text), content: null } }], usage: CHAT_USAGE }),
  },
  {
    path: '/v1/chat/completions',
    name: 'streamed',
    request: streamed(chatRequest),
    reply: (text) =>
      stream(text, (pieces) => [
        ...pieces.map((content) => chunk({ content })),
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        `data: ${JSON.stringify({ choices: [], usage: CHAT_USAGE })}\n\n`,
        'data: [DONE]\n\n',
      ]),
  },
  {
    path: '/v1/responses',
    name: 'whole',
    request: responsesRequest,
    reply: (text) =>
      json({ id: 'resp_1', object: 'response', status: 'completed', output: outputOf(text), usage: USAGE }),
  },
  {
    path: '/v1/responses',
    name: 'streamed',
    request: streamed(responsesRequest),
    reply: (text) =>
      stream(text, (pieces) => [
        event({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } }),
        ...pieces.map((delta) =>
          event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta }),
        ),
        event({
          type: 'response.completed',
          response: { id: 'resp_1', status: 'completed', output: outputOf(text), usage: USAGE },
        }),
      ]),
  },
  {
    path: '/v1/messages',
    name: 'whole',
    request: chatRequest,
    reply: (text) => json({ id: 'm', type: 'message', content: [{ type: 'text', text }], usage: USAGE }),
  },
  {
    path: '/v1/messages',
    name: 'input of a call',
    request: chatRequest,
    reply: (text) => json({ id: 'm', type: 'message', ...messagesCall(text), usage: USAGE }),
  },
  {
    path: '/v1/messages',
    name: 'streamed',
    request: streamed(chatRequest),
    reply: (text) =>
      stream(text, (pieces) => [
        event({ type: 'message_start', message: { id: 'm', content: [], usage: USAGE } }),
        event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        ...pieces.map((piece) =>
          event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } }),
        ),
        event({ type: 'content_block_stop', index: 0 }),
        event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
        event({ type: 'message_stop' }),
      ]),
  },
];

/** A good reply to a request on this path, without text. */
export function emptyReply(path: string): ScriptedReply {
  return json((GENERATION_ROUTES.find((route) => route.path === path)?.reply ?? {}) as Json);
}
