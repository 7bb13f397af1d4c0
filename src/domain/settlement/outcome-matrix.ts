// The outcome matrix (DESIGN 4): for each way an execution can end, what is charged and which billing status it gets
// (spec 3.1).
//
// One row serves every dialect: dialects differ in how usage is read from their bytes, not in who pays for what. A
// request that is refused before its principal and model are known has no record and no row. An organization that is
// not billed is `not_billed` in every row. `pending` is not an outcome: it is what an `admitted` record shows until its
// terminal record, or reconciliation's `process_killed`, is posted.
//
//   outcome                     charge     status       because
//   refused                     nothing    not_billed   we said no before anything was held or sent
//   completed                   reported   final        the provider's own report of a whole reply
//   completed_without_usage     counted    final        the reply is whole; we can count exactly what was delivered
//   connect_failed              nothing    not_billed   no byte was sent, nobody worked
//   provider_refused            nothing    not_billed   providers do not bill a 4xx
//   provider_failed             nothing    not_billed   providers do not bill a 5xx, and the client got no answer
//   no_reply                    nothing    not_billed   the provider may have worked, but nothing was reported or
//                                                       delivered; what cannot be shown is not charged
//   aborted_before_first_byte   nothing    cancelled    the client left with nothing delivered and nothing reported
//   aborted_mid_stream          counted    final        input was read and output delivered up to where the client left
//   cut_mid_stream              counted    final        likewise up to where the provider broke off
//   usage_then_cut              reported   final        the report had come; what was cut after it costs nothing more
//   process_killed              nothing    cancelled    our fault: without a terminal record no client saw the end

import type { BillingStatus, Outcome } from './outcome.ts';

/**
 * `reported`: by the provider's usage, or by our count where the report is unusable. `counted`: by our count of what
 * was relayed.
 */
export type ChargeRule = 'reported' | 'counted' | 'nothing';

export interface OutcomeRule {
  readonly chargeRule: ChargeRule;
  /** For a billed organization. */
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
  process_killed: { chargeRule: 'nothing', billingStatus: 'cancelled' },
};
