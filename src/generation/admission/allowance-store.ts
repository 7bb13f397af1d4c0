// What admission borrows, and from whom: credit of wallets and room under limits, lent by a store that all processes
// share (DESIGN 4).

import type { PrincipalLimit } from '../../domain/identity/principal.ts';

/** `credit` is a wallet's money; the others are the kinds of limits. */
export type AllowanceKind = 'credit' | PrincipalLimit['kind'];

/** What is borrowed from: a wallet or a limit, by its id. Amounts are pico-dollars, requests or tokens, by the kind. */
export interface Pool {
  readonly kind: AllowanceKind;
  readonly key: string;
}

export interface LendingWish {
  readonly amount: bigint;
  /** Less than this is of no use: then nothing is lent. */
  readonly minimum: bigint;
  /** What is free of the present grant of a rate: the next grant takes it over. */
  readonly present: { readonly grantId: string; readonly free: bigint } | null;
}

export interface LendingAnswer {
  /** Beside what moved over from the present grant. */
  readonly granted: bigint;
  /** Under which the amount is given back and, for a budget, posted. */
  readonly grantId: string;
  /** From when the question was sent; null: it does not expire. */
  readonly validForMs: number | null;
  /** What was free of the present grant now belongs to `grantId`. */
  readonly presentMoved: boolean;
  /** What can still be lent after this. */
  readonly available: bigint;
  /** What other processes hold, as far as the store knows: only that can be recalled. */
  readonly leasedElsewhere: bigint;
  /** A frozen wallet lends nothing. */
  readonly frozen: boolean;
  /** The limit itself: more than this can never be lent. null for wallets. */
  readonly ceiling: bigint | null;
  /** When the minimum may be there; null where nobody knows. */
  readonly retryAfterMs: number | null;
  /** The limit does not exist any more. */
  readonly gone: boolean;
}

/**
 * The store has answered, about this pool alone, that nothing was done. `busy`: somebody else had it locked. `refused`:
 * the store's rules forbid it, however often it is asked.
 */
export type NotDone = 'busy' | 'refused';

/** A call rejects when nobody knows whether it was done. */
export interface AllowanceStore {
  take(pool: Pool, wish: LendingWish): Promise<LendingAnswer | NotDone>;
  giveBack(pool: Pool, grantId: string, amount: bigint): Promise<'done' | NotDone>;
  /** Asks every other process to hand back what it has free. */
  recall(pool: Pool): Promise<void>;
  /** Rejects when the store cannot be reached. */
  probe(): Promise<void>;
}

/** How the leases see time; a simulation brings its own. */
export interface LeaseTime {
  monotonicMs(): number;
  wait(ms: number): Promise<void>;
}
