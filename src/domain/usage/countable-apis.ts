// Where each API whose tokens can be counted has its texts, for what a provider did not report.

import type { CountableApi } from '../models/apis.ts';
import { chatCompletionsText } from './chat-completions-text.ts';
import { type CountableDialect, type CountableText, parseObject } from './countable-text.ts';
import { messagesText } from './messages-text.ts';
import { responsesText } from './responses-text.ts';

/** A reply of vectors has no tokens to count. */
const NO_TOKENS: CountableText = { texts: [], formatTokens: 0 };

export const COUNTABLE_APIS = {
  chat_completions: chatCompletionsText,
  responses: responsesText,
  messages: messagesText,
  embeddings: { requestText: textToEmbed, responseText: () => NO_TOKENS, streamText: () => NO_TOKENS },
} as const satisfies Record<CountableApi, CountableDialect>;

/** `input` is a text, a list of texts, the tokens of one text, or a list of such lists. null: it is none of these. */
function textToEmbed(body: string): CountableText | null {
  const input = parseObject(body)?.['input'];
  const texts: string[] = [];
  let formatTokens = 0;
  for (const part of Array.isArray(input) ? (input as unknown[]) : [input]) {
    if (typeof part === 'string') texts.push(part);
    else if (typeof part === 'number') formatTokens += 1;
    else if (Array.isArray(part) && part.every((token) => typeof token === 'number')) formatTokens += part.length;
    else return null;
  }
  return { texts, formatTokens };
}
