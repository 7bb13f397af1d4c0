// Calls to the lease store, each with a deadline. After a call without an answer the store counts as away: calls fail
// at once, and it is probed until it answers. Revocations have no answer to wait for: they are sent in batches, one
// after the other, and one that fails says nothing about the store.
//
// When an answer is lost, it is uncertain whether the call took effect. Until the store has said what became of it
// (`recover`), the process assumes the case that overspends nothing: what it requested was not granted, and what it
// returned is gone. Calls about rates are not recovered: what a lost call changed ages out. The answer that one
// quota is locked does not mean that the store is away.

import type { LeaseAnswer, LeaseRequest, NotDone, Quota, RecoveredCall } from '../../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime } from './lease-store.ts';

/** `unsent`: the store is away and was not asked. `lost`: it was asked, and what became of it is uncertain. */
export type CallFailure = NotDone | 'unsent' | 'lost';

export interface StoreEvents {
  /** Why a call has no answer. */
  fault(fault: unknown): void;
  /** The store answers, after it was away or after `probeOnce`. */
  found(): void;
}

/** This process asks the others to return what they have available. `sent`: whether they were asked, in the end. */
export interface Revocation {
  readonly beganAtMs: number;
  readonly sent: Promise<boolean>;
}

export const CALL_DEADLINE_MS = 2_000;
const PROBE_DEADLINE_MS = 1_000;
const PROBE_INTERVAL_MS = 250;

export class StoreCircuit {
  private readonly store: LeaseStore;
  private readonly time: LeaseTime;
  private readonly on: StoreEvents;
  private away = false;
  /** The next batch of quotas to revoke, by key, collected while the batch before is sent; null: none is collected. */
  private toRevoke: { readonly quotas: Map<string, Quota>; readonly sent: Promise<boolean> } | null = null;
  /** Resolves when the next revocations may be sent. */
  private revocationTurn: Promise<unknown> = Promise.resolve();
  private foundAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: LeaseStore, time: LeaseTime, on: StoreEvents) {
    this.store = store;
    this.time = time;
    this.on = on;
  }

  isAway(): boolean {
    return this.away;
  }

  take(quota: Quota, request: LeaseRequest, call: number): Promise<LeaseAnswer | CallFailure> {
    return this.askUnlessAway(() => this.store.take(quota, request, call));
  }

  giveBack(quota: Quota, grantId: string, amount: bigint, call: number): Promise<'done' | CallFailure> {
    return this.askUnlessAway(() => this.store.giveBack(quota, grantId, amount, call));
  }

  recover(quota: Quota, call: number): Promise<RecoveredCall | CallFailure> {
    return this.askUnlessAway(() => this.store.recover(quota, call));
  }

  /** Calls `found` when the store answers. While the store is away, that is the task of the probes that run already. */
  async probeOnce(): Promise<void> {
    const answer = await this.askUnlessAway(() => this.store.probe().then(() => 'here' as const));
    if (answer === 'here') this.on.found();
  }

  /**
   * Resolves to whether the revocation was sent. Best effort: a revocation that fails or takes long does not mean that
   * the store is away. To notify takes a lock of the whole server, so this process sends one batch at a time, and
   * quotas revoked meanwhile form the next batch. That is sent after CALL_DEADLINE_MS even if the batch before has no
   * answer.
   */
  revoke(quota: Quota): Promise<boolean> {
    if (this.away) return Promise.resolve(false);
    if (this.toRevoke === null) {
      const quotas = new Map<string, Quota>();
      const turn = this.revocationTurn;
      const sent = turn.then(() => this.sendRevocations(quotas));
      this.revocationTurn = turn.then(() => Promise.race([sent, this.time.wait(CALL_DEADLINE_MS)]));
      this.toRevoke = { quotas, sent };
    }
    this.toRevoke.quotas.set(quota.key, quota);
    return this.toRevoke.sent;
  }

  private async sendRevocations(quotas: ReadonlyMap<string, Quota>): Promise<boolean> {
    this.toRevoke = null;
    if (this.away) return false;
    try {
      await this.store.revoke([...quotas.values()]);
      return true;
    } catch (fault) {
      this.on.fault(fault);
      return false;
    }
  }

  private async askUnlessAway<T>(send: () => Promise<T>): Promise<T | CallFailure> {
    if (this.away) return 'unsent';
    const result = await this.within(CALL_DEADLINE_MS, send);
    if (result === 'lost' && !this.away) void this.probeUntilFound();
    return result;
  }

  /** An answer that comes after the deadline counts as lost. */
  private within<T>(deadlineMs: number, send: () => Promise<T>): Promise<T | 'lost'> {
    return new Promise((resolve) => {
      let isOver = false;
      const giveUp = (fault: unknown): void => {
        if (!isOver) this.on.fault(fault);
        isOver = true;
        resolve('lost');
      };
      const answer = (value: T): void => {
        isOver = true;
        resolve(value);
      };
      send().then(answer, giveUp);
      void this.time.wait(deadlineMs).then(() => giveUp(new Error(`no answer within ${deadlineMs} ms`)));
    });
  }

  private async probeUntilFound(): Promise<void> {
    this.away = true;
    // A server that may only read answers probes and fails calls. It counts as away for an interval between two probes.
    if (this.time.monotonicMs() - this.foundAtMs < PROBE_INTERVAL_MS) await this.time.wait(PROBE_INTERVAL_MS);
    while ((await this.within(PROBE_DEADLINE_MS, () => this.store.probe().then(() => 'found' as const))) === 'lost')
      await this.time.wait(PROBE_INTERVAL_MS);
    this.away = false;
    this.foundAtMs = this.time.monotonicMs();
    this.on.found();
  }
}
