// Reads the conversation of a Responses request: its input is a text or a list of items, and earlier turns may be
// stored by the provider.

import { type JsonObject, objectsOf } from '../../usage/countable-text.ts';
import type { ConversationReader } from './conversation-reader.ts';

/** Reasoning and summaries of compacted conversations: only their provider can read what is encrypted. */
const ENCRYPTED_FIELD = 'encrypted_content';

export function readResponses(request: JsonObject, reader: ConversationReader): void {
  const input = request['input'];
  reader.instructions(request['instructions']);
  if (typeof input === 'string') reader.userMessage(input);
  for (const item of objectsOf(input)) {
    const { type, role } = item;
    if (isMessage(type) && (role === 'system' || role === 'developer')) reader.instructions(item['content']);
    if (isMessage(type) && role === 'user') reader.userMessage(item['content']);
    else if (isFromModel(type, role)) reader.modelMessage();
    const encrypted = item[ENCRYPTED_FIELD];
    if (typeof encrypted === 'string' && encrypted !== '') reader.signedReasoning();
  }
}

function isMessage(type: unknown): boolean {
  return type === undefined || type === 'message';
}

/** The model's messages, reasoning and calls; the types of tool results end in `_output`. */
function isFromModel(type: unknown, role: unknown): boolean {
  if (isMessage(type)) return role === 'assistant';
  return typeof type === 'string' && !type.endsWith('_output');
}
