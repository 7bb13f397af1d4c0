// The token counting endpoint of the Messages dialect: the same request, answered with a number and free of charge
// (spec 4.1).

import { APIS } from '../../domain/models/apis.ts';
import { parseObject } from '../../domain/usage/countable-text.ts';
import { NO_COUNTS, type Usage } from '../../domain/usage/usage.ts';
import type { Dialect, KeptReply } from './dialect.ts';
import { messages } from './messages.ts';
import { countTokensDescription } from './messages-description.ts';

export const countTokens: Dialect = {
  api: 'count_tokens',
  path: APIS.count_tokens.path,
  envelope: 'messages',
  description: countTokensDescription,
  outputLimitField: 'max_tokens',
  texts: messages.texts,
  storedObjects: messages.storedObjects ?? null,
  inputField: 'messages',
  charged: false,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds: () => ({ streamed: false, outputTokensMax: 0, answers: 1 }),
  readUsage: () => NO_TOKENS_USED,
  readCountedTokens,
  watchStreamEnd: () => messages.watchStreamEnd(),
  failingEvents: messages.failingEvents ?? [],
};

/** The number in the reply is what another request would use. This request used nothing, so its cost is a known 0. */
const NO_TOKENS_USED: Usage = { ...NO_COUNTS, inputTokens: 0, outputTokens: 0 };

/** A count has a few dozen bytes; a reply longer than this is not worth the event loop's time. */
const REPLY_BYTES_MAX = 16_384;

function readCountedTokens({ beginning }: KeptReply): number | null {
  if (beginning.length > REPLY_BYTES_MAX) return null;
  const count = parseObject(beginning.toString('utf8'))?.['input_tokens'];
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count + 0 : null;
}
