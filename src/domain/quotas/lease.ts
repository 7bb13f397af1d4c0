// What a process asks of the store of quotas when it leases, and what the store answers.

import type { LimitKind } from './limit-kinds.ts';

/** `credit` is a wallet's money; the others are the kinds of limits. */
export type QuotaKind = 'credit' | LimitKind;

/**
 * A limit per minute. Its grants age out of the last 60 seconds; grants of the other kinds last until they are
 * returned.
 */
export function isRate(kind: QuotaKind): boolean {
  return kind === 'requests_per_minute' || kind === 'tokens_per_minute';
}

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
  /** The newly granted amount, not counting what moved over from the present grant. */
  readonly granted: bigint;
  /**
   * The id under which the amount is returned and, for a budget, posted. Credit: the wallet. A budget: the pool of its
   * period. Open requests: the limit itself. Rates: `limit@second`, usable until the end of that second.
   */
  readonly grantId: string;
  /** Counted from when the request was sent, which is the safe side; null: valid until it is returned. */
  readonly validForMs: number | null;
  /** The available part of the present grant now belongs to `grantId`. */
  readonly presentMoved: boolean;
  /** What the store can still grant after this. */
  readonly available: bigint;
  /**
   * What other processes have leased, as far as the store knows: only that can be revoked. For a rate, what they may
   * still use.
   */
  readonly leasedElsewhere: bigint;
  /** A frozen wallet grants nothing. */
  readonly frozen: boolean;
  /** The limit itself: more than this can never be granted. null for wallets, and for a limit that is gone. */
  readonly ceiling: bigint | null;
  /**
   * How long until the minimum may be available: enough of a rate has aged out, or a budget's period ends. null:
   * unknown, or never.
   */
  readonly retryAfterMs: number | null;
  /** The limit does not exist any more. */
  readonly gone: boolean;
}

/**
 * What became of a call whose answer was lost. A call that was not done never will be, even if it is still on its way.
 * `granted` is the amount under `grantId`; 0n for a return.
 */
export type RecoveredCall =
  | { readonly isDone: false }
  | { readonly isDone: true; readonly granted: bigint; readonly grantId: string };

/**
 * The store's answer that it did nothing for this one quota. `busy`: another transaction had it locked. `refused`: the
 * store's rules forbid it, however often it is asked.
 */
export type NotDone = 'busy' | 'refused';
