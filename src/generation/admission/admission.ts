// What admission has granted one request: the bounds that the holds rely on, and the holds until the request's end.

import { type PicoUsd, ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { assert } from '../../platform/assert.ts';
import type { Hold } from './leases/quota-lease.ts';
import type { QuotaLeases } from './leases/quota-leases.ts';
import type { HoldPlan } from './plan-holds.ts';
import type { TokenBounds } from './worst-case-cost.ts';

/** What an execution has used. The holds are released by it once the execution's record is written. */
export interface AdmissionUse {
  /** What the wallet pays, in pico-dollars; at most the hold. */
  readonly charge: bigint;
  /** What each budget of the execution has spent, in pico-dollars; at most what was held of that budget. */
  readonly budgetUse: bigint;
  /** null: not known, so everything held counts as used. */
  readonly tokens: number | null;
}

export class Admission {
  /** null when the organization is not billed and the request has no bound. */
  readonly tokenBounds: TokenBounds | null;
  readonly walletId: string | null;
  /**
   * The amount held of the wallet's lease until the execution is settled; null when not billed. Spec:
   * authorized_amount.
   */
  readonly hold: PicoUsd | null;
  /**
   * The most that the execution can cost, whoever pays. A reported usage that costs more is not believed. null: no
   * bound is known.
   */
  readonly costMax: PicoUsd | null;
  /**
   * The ids of the budget grants, of each of which the price is held. The execution's use is posted to these grants,
   * whichever period it ends in.
   */
  readonly budgets: readonly string[];
  private readonly budgetPrice: PicoUsd;
  private readonly holds: readonly Hold[];
  private readonly leases: QuotaLeases;
  private released = false;

  constructor(
    { tokenBounds, walletId, billed, price, isBillable, budgetPrice }: HoldPlan,
    holds: readonly Hold[],
    leases: QuotaLeases,
  ) {
    this.tokenBounds = tokenBounds;
    this.walletId = walletId;
    this.hold = billed ? price : null;
    this.costMax = isBillable ? price : null;
    this.budgetPrice = budgetPrice;
    this.holds = holds;
    this.leases = leases;
    this.budgets = budgetsOf(holds);
  }

  /** What each budget has spent on an execution that cost this much: never more than was held. */
  budgetUse(cost: PicoUsd | null): PicoUsd {
    const spent = cost ?? ZERO_PICO_USD;
    return spent < this.budgetPrice ? spent : this.budgetPrice;
  }

  /**
   * Ends the holds; unused amounts are available again. `refused`: the request was refused after all and has used
   * nothing. `unrecorded`: the spool has no record of the end, so whatever the request may have used stays held until
   * this process's epoch is closed; only its place among the concurrent requests is available again.
   */
  release(use: AdmissionUse | 'refused' | 'unrecorded'): void {
    assert(!this.released, 'an admission is released once');
    this.released = true;
    for (const hold of this.holds) {
      if (use === 'refused') this.leases.release(hold, 0n);
      else if (use !== 'unrecorded') this.leases.release(hold, usedOf(hold, use));
      else if (hold.lease.quota.kind === 'concurrent_requests') this.leases.release(hold, 0n);
    }
  }
}

const NO_BUDGETS: readonly string[] = [];

function budgetsOf(holds: readonly Hold[]): readonly string[] {
  const ids: string[] = [];
  for (const { lease, grant } of holds)
    if (lease.quota.kind === 'budget' && grant !== null && grant.id !== null) ids.push(grant.id);
  return ids.length === 0 ? NO_BUDGETS : ids;
}

function usedOf({ lease, amount }: Hold, use: AdmissionUse): bigint {
  switch (lease.quota.kind) {
    case 'credit':
      return use.charge;
    case 'budget':
      return use.budgetUse;
    case 'tokens_per_minute':
      return use.tokens === null || BigInt(use.tokens) > amount ? amount : BigInt(use.tokens);
    // An admitted request counts, whatever became of it.
    case 'requests_per_minute':
      return amount;
    case 'concurrent_requests':
      return 0n;
  }
}

/** After these outcomes no provider did any work, so no tokens were used. */
const WITHOUT_TOKENS: ReadonlySet<Outcome> = new Set(['connect_failed', 'provider_refused', 'provider_failed']);

/** How many tokens of a token limit an execution has used; null: not known. */
export function tokensUsed(outcome: Outcome, usage: Usage | null): number | null {
  if (WITHOUT_TOKENS.has(outcome)) return 0;
  return usage === null || usage.inputTokens === null || usage.outputTokens === null
    ? null
    : usage.inputTokens + usage.outputTokens;
}
