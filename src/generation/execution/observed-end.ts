// How an execution ended and what it used, before it is rated.

import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Usage, UsageDetails, UsageSource } from '../../domain/usage/usage.ts';

/** The usage to charge by, and where it comes from. */
export interface MeasuredUsage {
  readonly usage: Usage | null;
  /** null exactly when there is no usage. */
  readonly source: UsageSource | null;
  /** What a report that is not trusted claimed: it goes to suspense, never to the wallet. */
  readonly claimed: Usage | null;
  /** Why the provider's report was set aside; null: it was not. */
  readonly distrust: string | null;
  /**
   * A good report of the input alone (a reply that broke off before it reported its output), or of the output alone.
   */
  readonly halfReport: Usage | null;
  /**
   * What the record shows instead of `usage` for a request that uses nothing and is answered with a count; null: the
   * reply had no count. Absent: `usage` is recorded.
   */
  readonly counted?: Usage | null;
  /** The reply says that it ended at its limit on output tokens (spec 2.5). */
  readonly truncated: boolean;
  /** What the reply says beside its counts, even without counts; the details of `usage` if there is one. */
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
  /** The id under which the provider stores the reply; null: it does not. */
  readonly responseId: string | null;
  /** The ids by which the caller may refer to the items of a stored reply. */
  readonly itemIds?: readonly string[];
}
