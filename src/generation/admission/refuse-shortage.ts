// Makes the refusal of a request that a wallet or limit cannot serve; it names the limit (spec 7.4).

import type { PrincipalLimit } from '../../domain/identity/principal.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import type { LimitResult, Refusal } from '../../domain/refusals/refusal.ts';
import { MINUTE_MS } from '../../platform/durations.ts';
import type { Shortage } from './leases/remembered-refusal.ts';

/** The most that a request can cost, and how it could cost less, when its output limit cannot do that. */
export interface RequestCost {
  readonly authorizedAmount: PicoUsd;
  readonly cheaper?: string;
}

/** The refusal of a request that its wallet cannot pay. */
export function refuseCredit({ reason }: Shortage, cost: RequestCost): Refusal {
  switch (reason) {
    case 'short':
      return { kind: 'insufficient_credit', ...cost };
    case 'frozen':
      return { kind: 'billing_frozen' };
    case 'unavailable':
      return { kind: 'billing_unavailable' };
  }
}

/** `nowMs`: wall time, from which the time is derived at which a budget begins anew. */
export function refuseUnderLimit(
  limit: PrincipalLimit,
  { reason, retryAfterMs }: Shortage,
  cost: RequestCost,
  nowMs: number,
): Refusal {
  const result = showLimit(limit);
  if (reason === 'unavailable') return { kind: 'traffic_capacity_unavailable', result };
  const later = retryAfterMs === null ? {} : { retryAfterMs };
  switch (limit.kind) {
    case 'concurrent_requests':
      return { kind: 'concurrency_limit', result };
    case 'requests_per_minute':
    case 'tokens_per_minute':
      return { kind: 'rate_limit', ...later, result };
    case 'budget': {
      // `retryAfterMs` counts from a moment ago by the store's clock. Budget periods end on the hour, so the time is
      // rounded.
      const resetsAt =
        retryAfterMs === null
          ? null
          : new Date(Math.round((nowMs + retryAfterMs) / MINUTE_MS) * MINUTE_MS).toISOString();
      return { kind: 'usage_limit_exceeded', ...cost, ...later, result: { ...result, resets_at: resetsAt } };
    }
  }
}

/** `result` of spec 7.4. */
export function showLimit({ scope, setBy, kind, window, amount, model }: PrincipalLimit): LimitResult {
  return {
    scope,
    set_by: setBy,
    kind,
    window,
    limit: kind === 'budget' ? formatUsdString(amount) : Number(amount),
    model,
  };
}
