// The records a gateway appends to its spool: `admitted` before a byte goes upstream, one `terminal` before the client
// can see the end. They are plain values (record-form.ts says how a spool has them); money is a decimal string of
// pico-dollars. jobs posts them, so their shape is a contract between processes and versions.

import type { ApiName } from '../domain/models/catalog.ts';
import type { ModelRoute } from '../domain/routing/model-route.ts';
import type { BillingStatus, Outcome } from '../domain/settlement/outcome.ts';
import type { Usage, UsageSource } from '../domain/usage/usage.ts';

/**
 * What is known of an execution when it is admitted; repeated in the terminal record so that each record can be posted
 * alone.
 */
export interface ExecutionStart {
  /** Execution id, UUIDv7. */
  readonly id: string;
  readonly admittedAtMs: number;
  readonly organizationId: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  readonly apiKeyId: string;
  /** null: the organization is not billed. */
  readonly walletId: string | null;
  readonly api: ApiName;
  /** As the client wrote it: alias or virtual model. */
  readonly requestedModel: string;
  /** The public id that serves. */
  readonly model: string;
  readonly provider: string;
  readonly providerModel: string;
  readonly priceVersion: string | null;
  readonly streamed: boolean;
  readonly clientRequestId: string | null;
  readonly tags: readonly string[];
  /** The hold: worst-case price in pico-dollars, as a decimal string; null when not billed. Spec: authorized_amount. */
  readonly authorizedAmount: string | null;
  readonly requestBytes: number;
  /** Why this model serves a request that named none (spec 2.4); absent or null where the client named its model. */
  readonly route?: ModelRoute | null;
  /** Budget pools (grant ids) that the execution was held from; absent when none. */
  readonly budgets?: readonly string[];
}

export interface AdmittedRecord extends ExecutionStart {
  readonly type: 'admitted';
}

export interface TerminalRecord extends ExecutionStart {
  readonly type: 'terminal';
  readonly endedAtMs: number;
  readonly outcome: Outcome;
  /** HTTP status the client got; null when it left before one was sent. */
  readonly status: number | null;
  /** Refusal or provider error code, when there is one. */
  readonly errorCode: string | null;
  readonly usage: Usage | null;
  readonly usageSource: UsageSource | null;
  readonly billingStatus: BillingStatus;
  /** Measured usage cost in pico-dollars, decimal string; null when it cannot be known. Spec: rated_cost. */
  readonly ratedCost: string | null;
  /** What the wallet pays, in pico-dollars, decimal string; null when not billed or not known. Spec: total_cost. */
  readonly charge: string | null;
  /**
   * Rated cost that exceeded the hold or could not be trusted: posted to suspense, never to the wallet. Decimal string,
   * "0" normally.
   */
  readonly suspense: string;
  readonly latencyMs: number;
  readonly ttftMs: number | null;
  readonly responseBytes: number;
  /** The provider ended the reply at its output limit (spec 2.5, `truncated`); absent where nobody looked. */
  readonly truncated?: boolean;
  /**
   * The provider's id of a response it has saved (`resp_...`, spec 4.2); absent in records of older versions and of
   * other dialects.
   */
  readonly responseId?: string | null;
  /** The provider's ids of the items of that response, by which a later request may refer to them; absent when none. */
  readonly itemIds?: readonly string[];
  /**
   * What the same tokens cost at the route's baseline model, in pico-dollars, decimal string; absent or null where it
   * is not known (spec 2.4).
   */
  readonly baselineCost?: string | null;
  /** What was used of each of `budgets`, in pico-dollars, decimal string, at most the hold; absent without them. */
  readonly budgetUse?: string;
}

export type ExecutionRecord = AdmittedRecord | TerminalRecord;
