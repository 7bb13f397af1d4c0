// The store from which all processes lease quotas: credit of wallets and room under limits.

import type { LeaseAnswer, LeaseRequest, NotDone, Quota } from '../../domain/quotas/lease.ts';

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
