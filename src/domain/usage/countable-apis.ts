// The APIs whose tokens can be counted where a provider reported none, and where each keeps its texts.

import type { ApiName } from '../models/apis.ts';
import { chatCompletionsText } from './chat-completions-text.ts';
import type { CountableDialect } from './countable-text.ts';
import { messagesText } from './messages-text.ts';
import { responsesText } from './responses-text.ts';

export const COUNTABLE_APIS = {
  chat_completions: chatCompletionsText,
  responses: responsesText,
  messages: messagesText,
} as const satisfies Partial<Record<ApiName, CountableDialect>>;

export type CountableApi = keyof typeof COUNTABLE_APIS;
