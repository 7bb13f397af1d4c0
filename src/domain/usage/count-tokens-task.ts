// What goes to and comes from the worker task count-tokens: the contract between whoever meters and
// workers/count-tokens.ts.

import type { CountableApi } from './countable-apis.ts';

export interface CountTokensInput {
  readonly api: CountableApi;
  /** Name of the encoding; an unknown one is counted as o200k_base. */
  readonly encoding: string;
  readonly request: Uint8Array;
  /** The reply as relayed, or the beginning of it. */
  readonly response: Uint8Array;
  readonly responseIsStream: boolean;
  /**
   * All bytes of the reply; more than `response.byteLength` when only a prefix was kept, and the count is then scaled
   * up.
   */
  readonly responseBytesTotal: number;
  /**
   * `at_most`: of the request, and besides as a token each all its bytes that are in no text: never fewer than it has,
   * whatever else is in it.
   */
  readonly count: { readonly input: boolean | 'at_most'; readonly output: boolean };
}

/** null: not asked for, or not countable. Unknown is never 0. */
export interface CountTokensOutput {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}
