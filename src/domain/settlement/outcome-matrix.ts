// The outcome matrix: for each way in which an execution can end, what is charged and which billing status it gets
// (spec 3.1).
//
// A row is the same for every dialect: dialects differ in how usage is read from their bytes, not in who pays for what.
// A request that is refused before its principal and model are known has no record and no row. An organization that is
// not billed gets `not_billed` in every row. `pending` is not an outcome: an `admitted` record shows it until its
// terminal record, or reconciliation's `process_killed`, is posted.

import type { BillingStatus, Outcome } from './outcome.ts';

/**
 * `reported`: by the provider's usage, or by our own count if the report is unusable. `counted`: by our own count of
 * what was relayed.
 */
export type ChargeRule = 'reported' | 'counted' | 'nothing';

export interface OutcomeRule {
  readonly chargeRule: ChargeRule;
  /** The status for a billed organization. */
  readonly billingStatus: Exclude<BillingStatus, 'pending'>;
}

export const OUTCOME_MATRIX: Readonly<Record<Outcome, OutcomeRule>> = {
  refused: { chargeRule: 'nothing', billingStatus: 'not_billed' },
  completed: { chargeRule: 'reported', billingStatus: 'final' },
  completed_without_usage: { chargeRule: 'counted', billingStatus: 'final' },
  connect_failed: { chargeRule: 'nothing', billingStatus: 'not_billed' },
  provider_refused: { chargeRule: 'nothing', billingStatus: 'not_billed' },
  provider_failed: { chargeRule: 'nothing', billingStatus: 'not_billed' },
  no_reply: { chargeRule: 'nothing', billingStatus: 'not_billed' },
  aborted_before_first_byte: { chargeRule: 'nothing', billingStatus: 'cancelled' },
  aborted_mid_stream: { chargeRule: 'counted', billingStatus: 'final' },
  cut_mid_stream: { chargeRule: 'counted', billingStatus: 'final' },
  usage_then_cut: { chargeRule: 'reported', billingStatus: 'final' },
  output_blocked: { chargeRule: 'reported', billingStatus: 'final' },
  process_killed: { chargeRule: 'nothing', billingStatus: 'cancelled' },
};
