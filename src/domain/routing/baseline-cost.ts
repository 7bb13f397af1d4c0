// What the tokens of a routed request would have cost at its baseline model (spec 2.4): only where both prices are
// real.

import type { Price } from '../models/catalog.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import { rateUsage } from '../settlement/rate-usage.ts';
import type { Settlement } from '../settlement/settle.ts';
import type { Usage } from '../usage/usage.ts';

/**
 * `own`: the model that served is the baseline. A price: the catalog's, of the baseline model on the called API; null
 * where it has none.
 */
export type Baseline = 'own' | Price | null;

export interface EndedRequest {
  readonly usage: Usage | null;
  readonly settlement: Pick<Settlement, 'ratedCost' | 'charge'>;
  readonly isBilled: boolean;
}

/**
 * null unless the request's own cost is a real price too: rated by the catalog and, on a billed request, charged in
 * full. A request that ran into its hold, or that nobody is charged for because it failed, compares with nothing.
 */
export function baselineCost(baseline: Baseline, { usage, settlement, isBilled }: EndedRequest): PicoUsd | null {
  const { ratedCost, charge } = settlement;
  if (baseline === null || usage === null || ratedCost === null) return null;
  if (isBilled && charge !== ratedCost) return null;
  return baseline === 'own' ? ratedCost : rateUsage(usage, baseline);
}
