// Reads the conversation of a chat-completions request: who wrote which message, and whether it contains reasoning that
// only one model can read.

import { asObject, type JsonObject, objectsOf } from '../../usage/countable-text.ts';
import type { ConversationReader } from './conversation-reader.ts';

export function readChatCompletions(request: JsonObject, reader: ConversationReader): void {
  for (const message of objectsOf(request['messages'])) {
    if (message['role'] === 'system' || message['role'] === 'developer') reader.instructions(message['content']);
    if (message['role'] === 'user') reader.userMessage(message['content']);
    if (message['role'] !== 'assistant') continue;
    reader.modelMessage();
    if (isSigned(message)) reader.signedReasoning();
  }
}

/**
 * The API itself has no field for reasoning. Routers pass it on as `reasoning_details` or `thinking_blocks`, Google
 * inside its tool calls.
 */
function isSigned(message: JsonObject): boolean {
  const thoughts = [message['reasoning_details'], message['thinking_blocks']].flatMap(objectsOf);
  if (thoughts.some((thought) => isText(thought['signature']) || isText(thought['data']))) return true;
  return objectsOf(message['tool_calls']).some((call) =>
    isText(asObject(asObject(call['extra_content'])?.['google'])?.['thought_signature']),
  );
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
