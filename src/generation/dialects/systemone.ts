// The typed-question dialect: no stream, output free of charge, usage in two counts (spec 4.9, 8).

import type { Price } from '../../domain/models/catalog.ts';
import { ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { StreamEnd } from '../sse/stream-end.ts';
import { documentUsage } from '../sse/usage-window.ts';
import type { Dialect, KeptReply } from './dialect.ts';
import { countOf } from './reported-counts.ts';
import { refuseWithoutQuestions, validateQuestions } from './systemone-request.ts';

/**
 * Input tokens that a provider adds to what the body says, beyond the bytes of it: 260 to 300 were measured for a
 * request of one question, which itself can be shorter than that. Part of the hold's bound.
 */
export const SYSTEMONE_OVERHEAD_TOKENS = 1_024;

export const systemone: Dialect = {
  api: 'systemone',
  upstreamPath: '/v1/systemone',
  outputLimitField: 'questions',
  inputField: 'state',
  charged: true,
  unit: 'tokens',
  overheadTokens: SYSTEMONE_OVERHEAD_TOKENS,
  countable: false,
  check: validateQuestions,
  refuseUnbounded: ({ scanned, body }) => (scanned === null ? null : refuseWithoutQuestions(scanned, body)),
  // Output costs nothing and so needs no bound.
  readBounds: () => ({ streamed: false, outputTokensMax: 0, answers: 1 }),
  readUsage,
  watchStreamEnd: () => NO_STREAM,
  isWholeWithoutEnd: () => true,
};

/** The endpoint has no stream; should a provider answer with one, it is over when the provider ends it. */
const NO_STREAM: StreamEnd = { feed: () => 'open', endedBy: null };

/** Answers are keyed by ids of the caller's choice, `usage` among them; the report is the one at the top level. */
function readUsage(reply: KeptReply): Usage | null {
  const usage = documentUsage(reply);
  if (usage === null) return null;
  return {
    inputTokens: countOf(usage['input_tokens']),
    cachedInputTokens: null,
    cacheWriteTokens: null,
    outputTokens: countOf(usage['output_tokens']),
    reasoningTokens: null,
    images: null,
  };
}

/** Spec 8: input tokens are priced from the catalog, output tokens are free, whatever the catalog says of them. */
export function systemonePrice(price: Price): Price {
  return { ...price, output: ZERO_PICO_USD };
}
