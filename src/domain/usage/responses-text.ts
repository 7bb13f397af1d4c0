// Finds the texts of a Responses request and reply that make up its tokens, for counting them when the provider
// reported no usage. What a request only refers to (an earlier response, a conversation, a stored prompt) is not in it
// and cannot be counted here.

import {
  asObject,
  type CountableDialect,
  type CountableText,
  type JsonObject,
  objectsOf,
  parseObject,
  pushJson,
  pushText,
  TOKENS_OF_PRIMING,
  TOKENS_PER_MESSAGE,
  textOfReply,
  textsOfContent,
} from './countable-text.ts';
import { readEvents } from './event-payloads.ts';
import { ResponsesOutput, textsOfItem } from './responses-output.ts';

export const responsesText: CountableDialect = { requestText, responseText, streamText };

/** These events repeat the request's instructions and tools before the first text. */
const LEAD_EVENTS: readonly unknown[] = ['response.created', 'response.queued', 'response.in_progress'];

function requestText(body: string): CountableText | null {
  const request = parseObject(body);
  const input = request?.['input'];
  if (typeof input !== 'string' && !Array.isArray(input)) return null;
  const items = objectsOf(typeof input === 'string' ? [{ role: 'user', content: input }] : input);
  // Instructions are one message before the others, or a list of messages.
  const instructions = request?.['instructions'];
  const leading = objectsOf(
    typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : instructions,
  );
  const texts: string[] = [];
  for (const item of leading) pushItem(texts, item);
  for (const item of items) pushItem(texts, item);
  pushJson(texts, request?.['tools']);
  pushJson(texts, asObject(asObject(request?.['text'])?.['format'])?.['schema']);
  return { texts, formatTokens: TOKENS_OF_PRIMING + TOKENS_PER_MESSAGE * (leading.length + items.length) };
}

function pushItem(texts: string[], item: JsonObject): void {
  pushText(texts, item['role']);
  for (const text of textsOfItem(item)) texts.push(text);
  pushResults(texts, item['output']);
  pushResults(texts, item['outputs']);
  pushResults(texts, item['results']);
  if (item['type'] === 'program_output') pushText(texts, item['result']);
  // Tools that were found or listed during the response.
  pushJson(texts, item['tools']);
}

/**
 * The result of a tool: a string or a list of parts; shells and interpreters name their texts by where they were
 * printed.
 */
function pushResults(texts: string[], results: unknown): void {
  for (const text of textsOfContent(results)) texts.push(text);
  for (const result of objectsOf(results)) {
    for (const field of ['stdout', 'stderr', 'logs']) pushText(texts, result[field]);
  }
}

function responseText(body: string): CountableText | null {
  return textOfReply(body, (response) => {
    if (!Array.isArray(response['output'])) return null;
    const output = new ResponsesOutput();
    output.addOutput(response['output']);
    return output.texts();
  });
}

function streamText(body: string): CountableText | null {
  const output = new ResponsesOutput();
  let lastOutput: unknown = null;
  let events = 0;
  let leadBytes = 0;
  for (const { text, event } of readEvents(body)) {
    const type = event['type'];
    if (typeof type !== 'string' || !type.startsWith('response.')) continue;
    events++;
    if (LEAD_EVENTS.includes(type)) leadBytes += Buffer.byteLength(text);
    output.addEvent(type, event);
    lastOutput = asObject(event['response'])?.['output'] ?? lastOutput;
  }
  if (output.isEmpty) output.addOutput(lastOutput);
  return events === 0 ? null : { texts: output.texts(), formatTokens: 0, leadBytes };
}
