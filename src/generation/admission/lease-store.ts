// The store from which all processes lease quotas: credit of wallets and room under limits.

import type { LeaseAnswer, LeaseRequest, NotDone, Quota, SettledCall } from '../../domain/quotas/lease.ts';

/**
 * A call rejects when nobody knows whether it was done. `call`: its number, higher than that of every earlier call of
 * this process. Except for rates, a quota's next call is sent only once the one before is answered or settled.
 */
export interface LeaseStore {
  take(quota: Quota, request: LeaseRequest, call: number): Promise<LeaseAnswer | NotDone>;
  giveBack(quota: Quota, grantId: string, amount: bigint, call: number): Promise<'done' | NotDone>;
  /** What became of the last call, if its answer was lost. Not of rates, whose grants end by themselves. */
  settle(quota: Quota, call: number): Promise<SettledCall | NotDone>;
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
