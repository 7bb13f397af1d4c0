// Settles an ended execution by the outcome matrix: what the usage is worth, what the wallet pays, and what goes to
// suspense.

import { assert } from '../../platform/assert.ts';
import type { Price } from '../models/price.ts';
import { type PicoUsd, picoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import type { Usage, UsageSource } from '../usage/usage.ts';
import type { BillingStatus, Outcome } from './outcome.ts';
import { OUTCOME_MATRIX } from './outcome-matrix.ts';
import { rateUsage } from './rate-usage.ts';

export interface SettlementInput {
  readonly outcome: Outcome;
  /** The usage to charge by: the provider's report if it passed checkUsage, else our own count; null without either. */
  readonly usage: Usage | null;
  /** Where `usage` came from; null exactly when it is null. */
  readonly usageSource: UsageSource | null;
  readonly price: Price | null;
  /** Whether the organization is billed. */
  readonly billed: boolean;
  /**
   * When billed: the amount held; it is required, since nothing may be charged without a hold. When not billed: the
   * most that the usage can cost, if that is known.
   */
  readonly authorizedAmount: PicoUsd | null;
  /** The counts that a report which failed checkUsage claimed, if it had any (`claimed`). */
  readonly claimedUsage?: Usage | null;
  /** An upper bound of the charge beside the hold: the most that `usage` can cost; null: only the hold bounds it. */
  readonly chargeMax?: PicoUsd | null;
  /** The reply says that it was served in a way that has no price, so its cost is unknown. */
  readonly isUnpriced?: boolean;
}

export interface Settlement {
  readonly billingStatus: Exclude<BillingStatus, 'pending'>;
  /** Measured cost of `usage`; null when it cannot be known. Spec: rated_cost. */
  readonly ratedCost: PicoUsd | null;
  /** What the wallet pays: null when not billed, else from 0 to the hold. Spec: total_cost. */
  readonly charge: PicoUsd | null;
  /**
   * Money that does not count as earned: cost above the hold, cost claimed by a report that cannot be trusted, or the
   * part of the charge that no price accounts for. Never negative.
   */
  readonly suspense: PicoUsd;
}

export function settle(input: SettlementInput): Settlement {
  const rule = OUTCOME_MATRIX[input.outcome];
  assert((input.usage === null) === (input.usageSource === null), 'settle: a usage has a source and no usage has none');
  if (!input.billed) {
    const ratedCost = rate(input.usage, input.price);
    const { authorizedAmount, chargeMax = null } = input;
    const costMax = authorizedAmount === null ? chargeMax : least(authorizedAmount, chargeMax ?? authorizedAmount);
    const beyond = ratedCost === null || costMax === null ? 0n : ratedCost - costMax;
    const suspense = beyond > 0n ? picoUsd(beyond) : ZERO_PICO_USD;
    return { billingStatus: 'not_billed', ratedCost, charge: null, suspense };
  }
  assert(input.authorizedAmount !== null && input.authorizedAmount >= 0n, 'settle: a billed execution has a hold');

  if (rule.chargeRule === 'nothing') {
    // A cancelled execution costs exactly 0; one that is not billed has no charge at all.
    const charge = rule.billingStatus === 'cancelled' ? ZERO_PICO_USD : null;
    return { billingStatus: rule.billingStatus, ratedCost: null, charge, suspense: ZERO_PICO_USD };
  }

  const ratedCost = rate(input.usage, input.price);
  // Without anything to charge by, the customer is charged nothing.
  const cost = ratedCost ?? ZERO_PICO_USD;
  // Without a price, the provider's bill may be anything up to the hold. The whole hold is charged, and the operator
  // returns the excess.
  if (input.isUnpriced === true && cost < input.authorizedAmount) {
    const charge = input.authorizedAmount;
    return { billingStatus: rule.billingStatus, ratedCost, charge, suspense: picoUsd(charge - cost) };
  }
  const charge = least(cost, least(input.authorizedAmount, input.chargeMax ?? input.authorizedAmount));
  const claimedCost = rate(input.claimedUsage ?? null, input.price) ?? ZERO_PICO_USD;
  return {
    billingStatus: rule.billingStatus,
    ratedCost,
    charge,
    suspense: picoUsd(greatest(cost, claimedCost) - charge),
  };
}

function rate(usage: Usage | null, price: Price | null): PicoUsd | null {
  return usage === null || price === null ? null : rateUsage(usage, price);
}

function least(one: PicoUsd, other: PicoUsd): PicoUsd {
  return one < other ? one : other;
}

function greatest(one: PicoUsd, other: PicoUsd): PicoUsd {
  return one > other ? one : other;
}
