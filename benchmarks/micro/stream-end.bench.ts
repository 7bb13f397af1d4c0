// Measures what each chunk of a stream costs for the detection of the stream's end, and each reply for reading its
// usage. Nanoseconds, median of rounds.

import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { measureNs } from './measure-ns.ts';

const COPIES = 64;

const event = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`;

const CHAT_CHUNK = `data: ${JSON.stringify({
  id: 'chatcmpl-0123456789',
  object: 'chat.completion.chunk',
  created: 1763474589,
  model: 'gpt-4o',
  choices: [{ index: 0, delta: { content: ' word' }, logprobs: null, finish_reason: null }],
})}\n\n`;
const RESPONSES_CHUNK = event('response.output_text.delta', {
  item_id: 'msg_0123456789abcdef',
  output_index: 0,
  content_index: 0,
  delta: ' word',
  sequence_number: 17,
  obfuscation: 'abcdefghij',
});
const MESSAGES_CHUNK = event('content_block_delta', {
  index: 0,
  delta: { type: 'text_delta', text: ' and then some more words, as they come from a busy model' },
});

function measureChunks(name: string, dialect: Dialect, texts: readonly string[]): void {
  const watcher = dialect.watchStreamEnd();
  const chunks = Array.from({ length: COPIES }, () => texts.map((text) => Buffer.from(text))).flat();
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0) / chunks.length;
  measureNs(`${name} (${bytes.toFixed(0)} bytes)`, (round) => watcher.feed(chunks[round % chunks.length] as Buffer));
}

function halves(text: string): string[] {
  return [text.slice(0, 100), text.slice(100)];
}

measureChunks('chat: an ordinary chunk', chatCompletions, [CHAT_CHUNK]);
measureChunks('responses: an ordinary chunk', responses, [RESPONSES_CHUNK]);
measureChunks('messages: an ordinary chunk', messages, [MESSAGES_CHUNK]);
measureChunks('responses: data without an event line', responses, [
  RESPONSES_CHUNK.slice(RESPONSES_CHUNK.indexOf('data:')),
]);
measureChunks('chat: an event in halves', chatCompletions, halves(CHAT_CHUNK));
measureChunks('responses: an event in halves', responses, halves(RESPONSES_CHUNK));
measureChunks('responses: one byte', responses, RESPONSES_CHUNK.split(''));
measureChunks('responses: 64 KB of one event', responses, ['x'.repeat(65_536)]);

function measureUsage(name: string, dialect: Dialect, reply: string): void {
  const relayed = new CaptureBuffer();
  relayed.append(Buffer.from(reply));
  measureNs(`${name} (${reply.length} bytes)`, () =>
    dialect.readUsage({ beginning: relayed.beginning(), end: relayed.end(), cut: false }),
  );
}

const CHAT_USAGE = {
  prompt_tokens: 7,
  completion_tokens: 2,
  total_tokens: 9,
  prompt_tokens_details: { cached_tokens: 0 },
};
const TYPED_USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 9,
};
const TOOLS = Array.from({ length: 40 }, (_, index) => ({
  name: `tool_${index}`,
  parameters: { properties: { usage: { type: 'string' } }, required: ['usage'] },
}));

measureUsage(
  'chat body: usage',
  chatCompletions,
  JSON.stringify({ id: 'x', choices: [{ message: { content: 'word '.repeat(400) } }], usage: CHAT_USAGE }),
);
measureUsage(
  'chat body: usage before a long answer',
  chatCompletions,
  JSON.stringify({ usage: CHAT_USAGE, choices: [{ message: { content: 'word '.repeat(40_000) } }] }),
);
measureUsage(
  'chat stream: usage',
  chatCompletions,
  `${CHAT_CHUNK.repeat(200)}data: ${JSON.stringify({ choices: [], usage: CHAT_USAGE })}\n\ndata: [DONE]\n\n`,
);
measureUsage(
  'responses stream: usage of an event with 40 tools before it',
  responses,
  RESPONSES_CHUNK.repeat(200) +
    event('response.completed', { response: { tools: TOOLS, usage: TYPED_USAGE, user: null, metadata: {} } }),
);
measureUsage(
  'messages stream: usage',
  messages,
  event('message_start', { message: { content: [], usage: { input_tokens: 7, output_tokens: 1 } } }) +
    MESSAGES_CHUNK.repeat(200) +
    event('message_delta', { usage: { output_tokens: 2 } }) +
    event('message_stop', {}),
);
