// The token usage of one execution, in the same shape for all dialects. A count that the provider did not report is
// null, never 0 (spec 2.1).

import type { PicoUsd } from '../money/pico-usd.ts';

export interface Usage {
  /** All input tokens, cached ones and cache writes included. */
  readonly inputTokens: number | null;
  /** The part of `inputTokens` read from the provider's prompt cache. */
  readonly cachedInputTokens: number | null;
  /** The part of `inputTokens` written to the provider's prompt cache. */
  readonly cacheWriteTokens: number | null;
  /**
   * The part of `cacheWriteTokens` that is kept for an hour, which costs more. Absent where the provider does not
   * report it.
   */
  readonly hourCacheWriteTokens?: number | null;
  /** All output tokens, reasoning included. */
  readonly outputTokens: number | null;
  /** The part of `outputTokens` spent on hidden reasoning. */
  readonly reasoningTokens: number | null;
  /** Images made, for models priced per image. */
  readonly images: number | null;
  /** Usually absent: the cost depends on the counts above alone. */
  readonly details?: UsageDetails;
}

/** What else the cost of a reply depends on, as the reply reports it. */
export interface UsageDetails {
  /** What the reply says that it was served with, else what the request asked for. Absent: the ordinary service. */
  readonly serviceTier?: string;
  readonly speed?: string;
  readonly geo?: string;
  /** The audio parts of the input, of the cached input, and of the output. Absent: none. */
  readonly inputAudioTokens?: number;
  readonly cachedAudioTokens?: number;
  readonly outputAudioTokens?: number;
  /** Tools that the provider ran. */
  readonly calls?: readonly ToolCalls[];
  /** The cost that the provider reports for the request. Set only if the price's `cost` is `reported`. */
  readonly reportedCost?: PicoUsd;
  /** Something that no price can cover, as a record's error code names it. */
  readonly unpriced?: string;
}

export interface ToolCalls {
  /** The name of the tool in prices. */
  readonly tool: string;
  /** null: the reply does not say. */
  readonly count: number | null;
  /** The part of the reply that reports the calls, as a record's error code names it. */
  readonly reportedAs: string;
}

/** Nothing was reported. */
export const NO_COUNTS: Usage = {
  inputTokens: null,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  outputTokens: null,
  reasoningTokens: null,
  images: null,
};

/** Where the counts come from: the provider's report, or our own count of what was relayed. */
export type UsageSource = 'reported' | 'counted';
