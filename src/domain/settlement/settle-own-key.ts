// Settles an execution that an organization's own key served: its provider bills the organization, so the wallet pays
// the platform's fee or nothing.

import { assert } from '../../platform/assert.ts';
import type { Price } from '../models/price.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../money/pico-usd.ts';
import { type ByokFee, feeOf } from '../own-keys/byok-settings.ts';
import type { Usage } from '../usage/usage.ts';
import type { Outcome } from './outcome.ts';
import { OUTCOME_MATRIX } from './outcome-matrix.ts';
import { rateUsage } from './rate-usage.ts';
import type { Settlement } from './settle.ts';

export interface OwnKeySettlementInput {
  readonly outcome: Outcome;
  /** null: neither reported nor counted. */
  readonly usage: Usage | null;
  /** What the organization pays its provider, as far as this gateway knows. */
  readonly price: Price | null;
  readonly fee: ByokFee | null;
  /** null: the organization is not billed, and pays no fee. */
  readonly authorizedAmount: PicoUsd | null;
}

/** A fee is due only for an outcome that the outcome matrix charges. */
export function settleOwnKey(input: OwnKeySettlementInput): Settlement {
  const { outcome, usage, price, fee, authorizedAmount } = input;
  const rule = OUTCOME_MATRIX[outcome];
  const ratedCost = usage === null || price === null ? null : rateUsage(usage, price);
  const unbilled: Settlement = { billingStatus: 'not_billed', ratedCost, charge: null, suspense: ZERO_PICO_USD };
  if (fee === null || authorizedAmount === null) return unbilled;
  if (rule.chargeRule === 'nothing') {
    const charge = rule.billingStatus === 'cancelled' ? ZERO_PICO_USD : null;
    return { ...unbilled, billingStatus: rule.billingStatus, ratedCost: null, charge };
  }
  const due = feeOf(fee, ratedCost ?? ZERO_PICO_USD);
  assert(due >= 0n, 'a fee is no credit');
  return { ...unbilled, billingStatus: rule.billingStatus, charge: due < authorizedAmount ? due : authorizedAmount };
}
