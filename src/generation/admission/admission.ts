// What admission has granted one request: the bounds it relied on, and what was drawn for it until its end.

import { type PicoUsd, ZERO_PICO_USD } from '../../domain/money/pico-usd.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { assert } from '../../platform/assert.ts';
import type { Draw } from './allowance.ts';
import type { AllowanceLeases } from './allowance-leases.ts';
import type { DrawingPlan } from './plan-draws.ts';
import type { TokenBounds } from './worst-case-price.ts';

/** What an execution has used, once its record is written. */
export interface AdmissionUse {
  /** What the wallet pays; at most the hold. */
  readonly charge: bigint;
  /** What each of its budgets has spent; at most what was drawn from it. */
  readonly budgetUse: bigint;
  /** null: not known, so all that was drawn counts as used. */
  readonly tokens: number | null;
}

export class Admission {
  /** null when the organization is not billed and the request has no bound. */
  readonly tokenBounds: TokenBounds | null;
  readonly walletId: string | null;
  /** Taken from the wallet's lease until the execution is settled; null when not billed. Spec: authorized_amount. */
  readonly hold: PicoUsd | null;
  /**
   * Pools of budgets that were drawn from, the price from each: the execution's use is posted to these, whichever
   * period it ends in.
   */
  readonly budgets: readonly string[];
  private readonly price: PicoUsd;
  private readonly draws: readonly Draw[];
  private readonly leases: AllowanceLeases;
  private released = false;

  constructor({ tokenBounds, walletId, billed, price }: DrawingPlan, draws: readonly Draw[], leases: AllowanceLeases) {
    this.tokenBounds = tokenBounds;
    this.walletId = walletId;
    this.hold = billed ? price : null;
    this.price = price;
    this.draws = draws;
    this.leases = leases;
    this.budgets = draws.length > 1 || !billed ? budgetsOf(draws) : NO_BUDGETS;
  }

  /** What each budget has spent of an execution that cost this much: never more than was drawn. */
  budgetUse(cost: PicoUsd | null): PicoUsd {
    const spent = cost ?? ZERO_PICO_USD;
    return spent < this.price ? spent : this.price;
  }

  /**
   * Gives back what was not used. `refused`: it was after all, and has used nothing. `unrecorded`: how it ended is not
   * in the spool, so what it may have used stays held until this process's epoch is closed; only its place among the
   * open requests is free again.
   */
  release(use: AdmissionUse | 'refused' | 'unrecorded'): void {
    assert(!this.released, 'an admission is released once');
    this.released = true;
    for (const draw of this.draws) {
      if (use === 'refused') this.leases.release(draw, 0n);
      else if (use !== 'unrecorded') this.leases.release(draw, usedOf(draw, use));
      else if (draw.allowance.pool.kind === 'concurrent_requests') this.leases.release(draw, 0n);
    }
  }
}

const NO_BUDGETS: readonly string[] = [];

function budgetsOf(draws: readonly Draw[]): readonly string[] {
  const ids: string[] = [];
  for (const { allowance, grant } of draws)
    if (allowance.pool.kind === 'budget' && grant !== null && grant.id !== null) ids.push(grant.id);
  return ids.length === 0 ? NO_BUDGETS : ids;
}

function usedOf({ allowance, amount }: Draw, use: AdmissionUse): bigint {
  switch (allowance.pool.kind) {
    case 'credit':
      return use.charge;
    case 'budget':
      return use.budgetUse;
    case 'tokens_per_minute':
      return use.tokens === null || BigInt(use.tokens) > amount ? amount : BigInt(use.tokens);
    // Admitted is admitted, whatever became of it.
    case 'requests_per_minute':
      return amount;
    case 'concurrent_requests':
      return 0n;
  }
}

/** Nobody worked: the tokens were not used, whatever was drawn for them. */
const WITHOUT_TOKENS: ReadonlySet<Outcome> = new Set(['connect_failed', 'provider_refused', 'provider_failed']);

/** What of a limit on tokens an execution has used; null when nobody knows. */
export function tokensUsed(outcome: Outcome, usage: Usage | null): number | null {
  if (WITHOUT_TOKENS.has(outcome)) return 0;
  return usage === null || usage.inputTokens === null || usage.outputTokens === null
    ? null
    : usage.inputTokens + usage.outputTokens;
}
