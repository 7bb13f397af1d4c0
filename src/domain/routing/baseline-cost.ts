// What the tokens of a routed request would have cost at its baseline model (spec 2.4), where both prices are known.

import type { Price } from '../models/price.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import { rateUsage, unpricedDetail } from '../settlement/rate-usage.ts';
import type { Settlement } from '../settlement/settle.ts';
import type { Usage } from '../usage/usage.ts';

/**
 * `own`: the model that served is the baseline itself. Otherwise the catalog price of the baseline model on the called
 * API; null where it has none.
 */
export type Baseline = 'own' | Price | null;

export interface EndedRequest {
  readonly usage: Usage | null;
  readonly settlement: Pick<Settlement, 'ratedCost' | 'charge' | 'suspense'>;
  readonly isBilled: boolean;
  /** Part of its usage has no price of its own, so its rated cost is too low. */
  readonly isUnpriced: boolean;
}

/**
 * null unless the request's own cost is a full price too: rated by the catalog and, on a billed request, charged in
 * full. Not comparable are a billed request whose charge was capped at its hold, an unbilled request that cannot have
 * used what was reported, and a failed request that costs nothing.
 */
export function baselineCost(baseline: Baseline, ended: EndedRequest): PicoUsd | null {
  const { usage, settlement, isBilled, isUnpriced } = ended;
  const { ratedCost, charge, suspense } = settlement;
  if (baseline === null || usage === null || ratedCost === null || isUnpriced) return null;
  if (isBilled ? charge !== ratedCost : suspense > 0n) return null;
  if (baseline === 'own') return ratedCost;
  const { details } = usage;
  if (details === undefined) return rateUsage(usage, baseline);
  // The cost that the provider reported is not what the baseline model would have cost.
  const { reportedCost: _, ...others } = details;
  return unpricedDetail(others, baseline) === null ? rateUsage({ ...usage, details: others }, baseline) : null;
}
