// How an execution ended and what it used, before it is rated.

import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Usage, UsageDetails, UsageSource } from '../../domain/usage/usage.ts';

/** The usage to charge by, and where it comes from. */
export interface MeasuredUsage {
  readonly usage: Usage | null;
  /** null exactly when there is no usage. */
  readonly source: UsageSource | null;
  /** What a report that could not be trusted claimed; goes to suspense, never to the wallet. */
  readonly claimed: Usage | null;
  /** Why the provider's report was set aside; null when it was not. */
  readonly distrust: string | null;
  /** A good report of the input alone, as of a reply that broke off before its output was told, or of the output. */
  readonly halfReport: Usage | null;
  /**
   * What the record shows in the place of `usage`, where a request uses nothing itself and is answered with a count;
   * null where the reply told none. Absent: `usage`.
   */
  readonly counted?: Usage | null;
  /** The reply says that it ended at its limit on output tokens (spec 2.5). */
  readonly truncated: boolean;
  /** What the reply says beside its counts, also where it has none; those of `usage` where there is one. */
  readonly details?: UsageDetails;
}

export const NO_USAGE: MeasuredUsage = {
  usage: null,
  source: null,
  claimed: null,
  distrust: null,
  halfReport: null,
  truncated: false,
};

/** How an execution ended, as the relay saw it. */
export interface ObservedEnd {
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly errorCode: string | null;
  readonly measured: MeasuredUsage;
  readonly responseBytes: number;
  /** Under which the provider keeps the reply; null where it does not. */
  readonly responseId: string | null;
  /** By which its caller may refer to the items of a reply that the provider keeps. */
  readonly itemIds?: readonly string[];
}
