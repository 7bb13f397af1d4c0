// Finds the texts of a chat-completions request and reply that make up its tokens, for counting them when the provider
// reported no usage.

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
  TOKENS_PER_NAME,
  textOfReply,
  textsOfContent,
} from './countable-text.ts';
import { readEvents } from './event-payloads.ts';

export const chatCompletionsText: CountableDialect = { requestText, responseText, streamText };

function requestText(body: string): CountableText | null {
  const request = parseObject(body);
  if (request === null || !Array.isArray(request['messages'])) return null;
  const texts: string[] = [];
  let formatTokens = TOKENS_OF_PRIMING;
  for (const message of objectsOf(request['messages'])) {
    formatTokens += TOKENS_PER_MESSAGE;
    pushText(texts, message['role']);
    if (pushText(texts, message['name'])) formatTokens += TOKENS_PER_NAME;
    pushMessage(texts, message);
  }
  for (const field of ['tools', 'functions', 'response_format']) pushJson(texts, request[field]);
  return { texts, formatTokens };
}

function responseText(body: string): CountableText | null {
  return textOfReply(body, (response) => {
    if (!Array.isArray(response['choices'])) return null;
    const texts: string[] = [];
    for (const choice of objectsOf(response['choices'])) {
      const message = asObject(choice['message']);
      if (message !== null) pushMessage(texts, message);
      pushText(texts, choice['text']);
    }
    return texts;
  });
}

function streamText(body: string): CountableText | null {
  const deltas = new Map<string, string[]>();
  let chunks = 0;
  for (const { event: chunk } of readEvents(body)) {
    if (!Array.isArray(chunk['choices'])) continue;
    chunks++;
    for (const choice of objectsOf(chunk['choices'])) collectDelta(deltas, choice);
  }
  // A token can span deltas, so each field's deltas are joined before they are counted.
  return chunks === 0 ? null : { texts: [...deltas.values()].map((parts) => parts.join('')), formatTokens: 0 };
}

function collectDelta(deltas: Map<string, string[]>, choice: JsonObject): void {
  const append = (key: string, text: unknown): void => {
    if (typeof text !== 'string' || text === '') return;
    const parts = deltas.get(key);
    if (parts === undefined) deltas.set(key, [text]);
    else parts.push(text);
  };
  const delta = asObject(choice['delta']);
  const at = typeof choice['index'] === 'number' ? choice['index'] : 0;
  append(`${at} text`, choice['text']);
  if (delta === null) return;
  for (const text of textsOfContent(delta['content'])) append(`${at} content`, text);
  append(`${at} reasoning`, reasoningOf(delta));
  append(`${at} refusal`, delta['refusal']);
  appendCall(append, `${at} call`, asObject(delta['function_call']));
  for (const call of objectsOf(delta['tool_calls'])) {
    const key = `${at} call ${typeof call['index'] === 'number' ? call['index'] : 0}`;
    appendCall(append, key, asObject(call['function']) ?? asObject(call['custom']));
  }
}

function appendCall(append: (key: string, text: unknown) => void, key: string, call: JsonObject | null): void {
  append(`${key} name`, call?.['name']);
  append(`${key} arguments`, call?.['arguments'] ?? call?.['input']);
}

function pushMessage(texts: string[], message: JsonObject): void {
  // Not by spreading: a long list of parts would exceed the number of arguments that a call can have.
  for (const text of textsOfContent(message['content'])) texts.push(text);
  pushText(texts, reasoningOf(message));
  pushText(texts, message['refusal']);
  pushCall(texts, asObject(message['function_call']));
  for (const call of objectsOf(message['tool_calls']))
    pushCall(texts, asObject(call['function']) ?? asObject(call['custom']));
}

function pushCall(texts: string[], call: JsonObject | null): void {
  pushText(texts, call?.['name']);
  pushText(texts, call?.['arguments'] ?? call?.['input']);
}

/** Some providers send the same reasoning under both names; it is counted once. */
function reasoningOf(message: JsonObject): unknown {
  return message['reasoning_content'] ?? message['reasoning'];
}
