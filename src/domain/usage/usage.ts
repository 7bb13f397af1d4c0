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
  /** Absent, as nearly always: the counts above are all that its cost depends on. */
  readonly details?: UsageDetails;
}

/** What else a reply says that its cost depends on. */
export interface UsageDetails {
  /** What the reply was served with, by the reply's own words; else what the request asked for. Absent: plainly. */
  readonly serviceTier?: string;
  readonly speed?: string;
  readonly geo?: string;
  /** Parts of the input, of what of it was read from the cache, and of the output. Absent: none. */
  readonly inputAudioTokens?: number;
  readonly cachedAudioTokens?: number;
  readonly outputAudioTokens?: number;
  /** Tools that the provider ran. */
  readonly calls?: readonly ToolCalls[];
  /** What the provider says that it asks for the request. Told only where the price asks for it. */
  readonly reportedCost?: PicoUsd;
  /** What no price can be for, as a record's error code names it. */
  readonly unpriced?: string;
}

export interface ToolCalls {
  /** The name that a price has for it. */
  readonly tool: string;
  /** null: the reply does not say. */
  readonly count: number | null;
  /** Where the reply says it, as a record's error code names it. */
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
