// Calls to the lease store, each with a deadline; while the store is known to be away, calls fail at once until a probe
// finds it again.
//
// When an answer is lost, it is uncertain whether the call took effect. Until the store has said what became of it
// (`settle`), the process assumes the case that overspends nothing: what it requested was not granted, and what it
// returned is gone. Rates are not settled: what a lost call leaves of them ages out. The answer that one quota is
// locked does not mean that the store is away.

import type { LeaseAnswer, LeaseRequest, NotDone, Quota, SettledCall } from '../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime } from './lease-store.ts';

/** `unsent`: the store is away and was not asked. `lost`: it was asked, and what became of it is uncertain. */
export type CallFailure = NotDone | 'unsent' | 'lost';

const CALL_DEADLINE_MS = 2_000;
const PROBE_DEADLINE_MS = 1_000;
/** After a failed call the store counts as away for this long; then the next call may find out. */
const AWAY_MS = 1_000;
const PROBE_INTERVAL_MS = 250;

export class StoreCircuit {
  private readonly store: LeaseStore;
  private readonly time: LeaseTime;
  private readonly onStoreFault: (fault: unknown) => void;
  /** 0: as far as known the store can be reached. */
  private awayUntilMs = 0;
  private probing = false;
  private nextProbeMs = 0;

  /** `onStoreFault` is told why the store could not be asked. */
  constructor(store: LeaseStore, time: LeaseTime, onStoreFault: (fault: unknown) => void) {
    this.store = store;
    this.time = time;
    this.onStoreFault = onStoreFault;
  }

  /** Asking keeps a probe going, so that the answer changes as soon as the store is back. */
  isAway(): boolean {
    if (this.awayUntilMs === 0) return false;
    const nowMs = this.time.monotonicMs();
    if (this.probing) return true;
    if (nowMs >= this.awayUntilMs) {
      this.awayUntilMs = 0;
      return false;
    }
    if (nowMs >= this.nextProbeMs) void this.probe();
    return true;
  }

  take(quota: Quota, request: LeaseRequest, call: number): Promise<LeaseAnswer | CallFailure> {
    return this.call(() => this.store.take(quota, request, call));
  }

  giveBack(quota: Quota, grantId: string, amount: bigint, call: number): Promise<'done' | CallFailure> {
    return this.call(() => this.store.giveBack(quota, grantId, amount, call));
  }

  settle(quota: Quota, call: number): Promise<SettledCall | CallFailure> {
    return this.call(() => this.store.settle(quota, call));
  }

  /** Best effort: the lease request that follows meets the same store and says what is wrong. */
  async revoke(quota: Quota): Promise<void> {
    await this.call(() => this.store.revoke(quota).then(() => 'done' as const));
  }

  private async call<T>(send: () => Promise<T>): Promise<T | CallFailure> {
    if (this.isAway()) return 'unsent';
    const result = await this.within(CALL_DEADLINE_MS, send);
    if (result === 'lost') this.noteFailure();
    else this.awayUntilMs = 0;
    return result;
  }

  /** An answer that comes after the deadline says nothing: it is lost. */
  private within<T>(deadlineMs: number, send: () => Promise<T>): Promise<T | 'lost'> {
    return new Promise((resolve) => {
      let isOver = false;
      const giveUp = (fault: unknown): void => {
        if (!isOver) this.onStoreFault(fault);
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

  private noteFailure(): void {
    this.awayUntilMs = this.time.monotonicMs() + AWAY_MS;
    if (!this.probing) void this.probe();
  }

  private async probe(): Promise<void> {
    this.probing = true;
    const found = await this.within(PROBE_DEADLINE_MS, () => this.store.probe().then(() => 'found' as const));
    this.probing = false;
    const nowMs = this.time.monotonicMs();
    this.nextProbeMs = nowMs + PROBE_INTERVAL_MS;
    this.awayUntilMs = found === 'found' ? 0 : nowMs + AWAY_MS;
  }
}
