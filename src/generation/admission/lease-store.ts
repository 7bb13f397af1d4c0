// The store from which all processes lease quotas: credit of wallets and room under limits.

import type { PrincipalLimit } from '../../domain/identity/principal.ts';

/** `credit` is a wallet's money; the others are the kinds of limits. */
export type QuotaKind = 'credit' | PrincipalLimit['kind'];

/** A wallet or a limit, by its id. Amounts are pico-dollars, requests or tokens, by the kind. */
export interface Quota {
  readonly kind: QuotaKind;
  readonly key: string;
}

export interface LeaseRequest {
  readonly amount: bigint;
  /** With less than this left, nothing is granted. */
  readonly minimum: bigint;
  /** The available part of a rate's present grant, which the next grant takes over. */
  readonly present: { readonly grantId: string; readonly available: bigint } | null;
}

export interface LeaseAnswer {
  /** Beside what moved over from the present grant. */
  readonly granted: bigint;
  /** The id under which the amount is returned and, for a budget, posted. */
  readonly grantId: string;
  /** Counted from when the request was sent; null: it does not expire. */
  readonly validForMs: number | null;
  /** The available part of the present grant now belongs to `grantId`. */
  readonly presentMoved: boolean;
  /** What the store can still grant after this. */
  readonly available: bigint;
  /** What other processes have leased, as far as the store knows: only that can be revoked. */
  readonly leasedElsewhere: bigint;
  /** A frozen wallet grants nothing. */
  readonly frozen: boolean;
  /** The limit itself: more than this can never be granted. null for wallets. */
  readonly ceiling: bigint | null;
  /** When the minimum may be there; null where nobody knows. */
  readonly retryAfterMs: number | null;
  /** The limit does not exist any more. */
  readonly gone: boolean;
}

/**
 * The store has answered, about this quota alone, that nothing was done. `busy`: another transaction had it locked.
 * `refused`: the store's rules forbid it, however often it is asked.
 */
export type NotDone = 'busy' | 'refused';

/** A call rejects when nobody knows whether it was done. */
export interface LeaseStore {
  take(quota: Quota, request: LeaseRequest): Promise<LeaseAnswer | NotDone>;
  giveBack(quota: Quota, grantId: string, amount: bigint): Promise<'done' | NotDone>;
  /** Asks every other process to return what it has available. */
  revoke(quota: Quota): Promise<void>;
  /** Rejects when the store cannot be reached. */
  probe(): Promise<void>;
}

/** How the leases see time; a simulation brings its own. */
export interface LeaseTime {
  monotonicMs(): number;
  wait(ms: number): Promise<void>;
}
