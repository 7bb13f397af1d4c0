// Reads a request's body into what auto routing needs to know of it. It runs in a worker when the body is large, since
// it parses the whole body. It never throws: a body that it cannot read has no human text, and the fallback tier
// serves.

import type { RoutedApi } from '../../models/apis.ts';
import { type JsonObject, parseObject } from '../../usage/countable-text.ts';
import { attachmentBytesIn } from './attachment-bytes.ts';
import { bodySessionOf } from './body-session.ts';
import { readChatCompletions } from './chat-completions-conversation.ts';
import { ConversationReader } from './conversation-reader.ts';
import { readMessages } from './messages-conversation.ts';
import type { PrepareConversationInput, PreparedConversation } from './prepared-conversation.ts';
import { readResponses } from './responses-conversation.ts';

const DIALECTS: Readonly<Record<RoutedApi, (request: JsonObject, reader: ConversationReader) => void>> = {
  chat_completions: readChatCompletions,
  responses: readResponses,
  messages: readMessages,
  count_tokens: readMessages,
};

export function prepareConversation({ api, body }: PrepareConversationInput): PreparedConversation {
  const reader = new ConversationReader();
  const request = parseObject(new TextDecoder().decode(body));
  const textBytes = body.length - attachmentBytesIn(body);
  if (request === null)
    return reader.finish({ bodySession: null, previousResponseId: null, offersTools: false, textBytes });
  DIALECTS[api](request, reader);
  const previous = api === 'responses' ? request['previous_response_id'] : null;
  return reader.finish({
    bodySession: bodySessionOf(request),
    previousResponseId: typeof previous === 'string' && previous !== '' ? previous : null,
    textBytes,
    offersTools: Array.isArray(request['tools']) && request['tools'].length > 0,
  });
}
