// A request that waits at one lease for the store; the least and the sum of what several need, and who came first.

import type { Shortage } from './remembered-refusal.ts';

export interface Waiter {
  readonly need: bigint;
  /** How many lease requests had been sent when it came: only the answer to a later one can refuse it. */
  readonly requestsSentBefore: number;
  readonly cameAtMs: number;
  /** Called with null when it may try again, else with the reason why it cannot be served. */
  resume(shortage: Shortage | null): void;
}

/** Of one at least. */
export function leastOf(waiters: readonly Waiter[]): bigint {
  return waiters.map(({ need }) => need).reduce((least, need) => (need < least ? need : least));
}

export function sumOf(waiters: readonly Waiter[]): bigint {
  return waiters.reduce((sum, { need }) => sum + need, 0n);
}

/** Infinity where nobody waits. */
export function firstCameAtMs(waiters: readonly Waiter[]): number {
  return waiters.reduce((firstMs, { cameAtMs }) => Math.min(firstMs, cameAtMs), Number.POSITIVE_INFINITY);
}
