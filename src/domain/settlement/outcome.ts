// The ways in which an execution can end: the rows of the outcome matrix.

/** The state of an execution's charge (spec 3.1). */
export type BillingStatus = 'final' | 'pending' | 'not_billed' | 'cancelled';

/** One name for each way a recorded request ends. */
export type Outcome =
  /** The request was refused after its principal and model were known; it was not admitted and no provider saw it. */
  | 'refused'
  /** The provider's reply ended cleanly with usage. */
  | 'completed'
  /** The provider's reply ended cleanly and reported no usage. */
  | 'completed_without_usage'
  /** No connection to any provider could be made; no byte was sent. */
  | 'connect_failed'
  /** The provider answered 4xx. */
  | 'provider_refused'
  /** The provider answered 5xx. */
  | 'provider_failed'
  /** The request was sent, and the provider did not answer in time or broke off before the client got a reply byte. */
  | 'no_reply'
  /** The client left before the provider's first reply byte. */
  | 'aborted_before_first_byte'
  /** The client left while the reply was being relayed; no usage was seen. */
  | 'aborted_mid_stream'
  /** The provider's reply was cut; no usage was seen. */
  | 'cut_mid_stream'
  /** A guardrail of the organization ended the reply, or put a refusal in its place; it was produced all the same. */
  | 'output_blocked'
  /** Usage had been reported, then the client left or the provider's reply was cut. */
  | 'usage_then_cut'
  /**
   * The gateway process died with the execution open, which reconciliation records, or a fault of ours ended it, or its
   * end could not be recorded.
   */
  | 'process_killed';
