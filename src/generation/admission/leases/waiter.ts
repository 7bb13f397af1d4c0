// A request that waits at one lease for the store, and what several waiting requests need: the smallest need, the sum,
// and when the first one came.

import type { Shortage } from './remembered-refusal.ts';

export interface Waiter {
  readonly need: bigint;
  /** How many lease requests had been sent when this request came: only the answer to a later one can refuse it. */
  readonly requestsSentBefore: number;
  readonly cameAtMs: number;
  /** Called with null when it may try again, else with the reason why it cannot be served. */
  resume(shortage: Shortage | null): void;
}

/** The smallest need of `waiters`, of which there must be one. */
export function smallestNeed(waiters: readonly Waiter[]): bigint {
  return waiters.map(({ need }) => need).reduce((least, need) => (need < least ? need : least));
}

export function sumOfNeeds(waiters: readonly Waiter[]): bigint {
  return waiters.reduce((sum, { need }) => sum + need, 0n);
}

/** Infinity when no request waits. */
export function firstCameAtMs(waiters: readonly Waiter[]): number {
  return waiters.reduce((firstMs, { cameAtMs }) => Math.min(firstMs, cameAtMs), Number.POSITIVE_INFINITY);
}
