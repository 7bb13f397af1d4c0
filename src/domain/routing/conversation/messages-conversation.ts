// Reads the conversation of a Messages or count-tokens request: text, tool results and thinking in blocks under two
// roles.

import { type JsonObject, objectsOf } from '../../usage/countable-text.ts';
import type { ConversationReader } from './conversation-reader.ts';

export function readMessages(request: JsonObject, reader: ConversationReader): void {
  reader.instructions(request['system']);
  for (const message of objectsOf(request['messages'])) {
    if (message['role'] === 'user') reader.userMessage(message['content']);
    if (message['role'] !== 'assistant') continue;
    reader.modelMessage();
    if (objectsOf(message['content']).some(isSigned)) reader.signedReasoning();
  }
}

function isSigned({ type, signature, data }: JsonObject): boolean {
  if (type === 'thinking') return typeof signature === 'string' && signature !== '';
  return type === 'redacted_thinking' && typeof data === 'string' && data !== '';
}
