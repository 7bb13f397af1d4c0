// The token counting endpoint of the Messages dialect: the same request, answered with a number and free of charge
// (spec 4.1).

import { NO_COUNTS, type Usage } from '../../domain/usage/usage.ts';
import type { Dialect } from './dialect.ts';
import { messages } from './messages.ts';

export const countTokens: Dialect = {
  api: 'count_tokens',
  upstreamPath: '/v1/messages/count_tokens',
  outputLimitField: 'max_tokens',
  inputField: 'messages',
  charged: false,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds: () => ({ streamed: false, outputTokensMax: 0, answers: 1 }),
  readUsage: () => NO_TOKENS_USED,
  watchStreamEnd: () => messages.watchStreamEnd(),
};

/** The number in the reply is what another request would use. This one used none: known, and therefore zero. */
const NO_TOKENS_USED: Usage = { ...NO_COUNTS, inputTokens: 0, outputTokens: 0 };
