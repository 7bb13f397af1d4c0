// The store from which all processes lease quotas: credit of wallets and room under limits.

import type { LeaseAnswer, LeaseRequest, NotDone, Quota, RecoveredCall } from '../../../domain/quotas/lease.ts';

/**
 * A call rejects when it is unknown whether it was done. `call`: its number, higher than that of every earlier call of
 * this process. The next call about a quota is sent only once the one before is answered or recovered, or the store has
 * refused to say what became of it. Rates are the exception: their lost calls are not recovered.
 */
export interface LeaseStore {
  take(quota: Quota, request: LeaseRequest, call: number): Promise<LeaseAnswer | NotDone>;
  giveBack(quota: Quota, grantId: string, amount: bigint, call: number): Promise<'done' | NotDone>;
  /**
   * What became of the last call about this quota, whose answer was lost. Never called for rates, whose grants age out.
   */
  recover(quota: Quota, call: number): Promise<RecoveredCall | NotDone>;
  /** Asks every other process to return what it has available of these quotas. */
  revoke(quotas: readonly Quota[]): Promise<void>;
  /** Rejects when the store cannot be reached. */
  probe(): Promise<void>;
}

/** A call to the store whose answer was lost. */
export interface LostCall {
  readonly call: number;
  /** null: it was a lease request. */
  readonly returned: { readonly grantId: string; readonly amount: bigint } | null;
}

/** How the leases see time; a simulation brings its own. */
export interface LeaseTime {
  monotonicMs(): number;
  /**
   * Resolves after `ms`, never earlier, and not before every answer that a socket has received by then is handed on. A
   * process that stood still runs its timers before it reads its sockets, and would otherwise take answers that are
   * there for late.
   */
  wait(ms: number): Promise<void>;
}
