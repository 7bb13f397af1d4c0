// The input and output of the worker task count-tokens (workers/count-tokens.ts).

import type { BegunFlag } from '../../platform/begun-flag.ts';
import type { CountableApi } from '../models/apis.ts';

export interface CountTokensInput {
  readonly api: CountableApi;
  /** Name of the encoding; an unknown one is counted as o200k_base. */
  readonly encoding: string;
  readonly request: Uint8Array;
  /** The reply as relayed, or its beginning. */
  readonly response: Uint8Array;
  readonly responseIsStream: boolean;
  /** The reply did not end by itself: an incomplete event at its end has reached no client. */
  readonly responseIsCut?: boolean;
  /** The number of bytes of the whole reply. If `response` is only its beginning, the count is scaled up. */
  readonly responseBytesTotal: number;
  /**
   * `at_most`: an upper bound of the request's tokens; every byte that is not in a counted text counts as one token.
   */
  readonly count: { readonly input: boolean | 'at_most'; readonly output: boolean };
  /** Set once the tokenizer is loaded: the deadline of the count runs from then on. */
  readonly begun?: BegunFlag;
}

/** null: not asked for, or not countable. Unknown is never 0. */
export interface CountTokensOutput {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** The reply says that it failed, or is nothing that a provider would answer. */
  readonly tellsFailure: boolean;
}
