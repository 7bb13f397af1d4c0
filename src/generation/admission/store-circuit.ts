// Calls to the lending store, each with a deadline; while the store is known to be away, answers come at once until a
// probe finds it again.
//
// A lost answer leaves in doubt whether the call took effect. It is taken for the case that overspends nothing: what
// was asked for is not there, and what was given back is gone. That stays lent in the store until it ages out or this
// process's epoch is closed. An answer about one pool, that somebody has it locked, says nothing against the store.

import type { AllowanceStore, LeaseTime, LendingAnswer, LendingWish, NotDone, Pool } from './allowance-store.ts';

/** `unsent`: the store is away and was not asked. `lost`: it was asked, and nobody knows what became of it. */
export type CallFailure = NotDone | 'unsent' | 'lost';

const CALL_DEADLINE_MS = 2_000;
const PROBE_DEADLINE_MS = 1_000;
/** For so long a failed call speaks for the next ones; then one of them may find out. */
const AWAY_MS = 1_000;
const PROBE_INTERVAL_MS = 250;

export class StoreCircuit {
  private readonly store: AllowanceStore;
  private readonly time: LeaseTime;
  /** 0: as far as known the store can be reached. */
  private awayUntilMs = 0;
  private probing = false;
  private nextProbeMs = 0;

  constructor(store: AllowanceStore, time: LeaseTime) {
    this.store = store;
    this.time = time;
  }

  /** Known to be away. Whoever asks keeps a probe going, so that it ends as soon as the store is back. */
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

  /** `onLate`: an answer for which nobody waits any more. */
  take(pool: Pool, wish: LendingWish, onLate: (answer: LendingAnswer) => void): Promise<LendingAnswer | CallFailure> {
    return this.call(
      () => this.store.take(pool, wish),
      (answer) => {
        if (typeof answer !== 'string') onLate(answer);
      },
    );
  }

  async giveBack(pool: Pool, grantId: string, amount: bigint): Promise<'done' | CallFailure> {
    return this.call(() => this.store.giveBack(pool, grantId, amount), ignore);
  }

  /** Best effort: the borrowing that follows meets the same store and says what is wrong. */
  async recall(pool: Pool): Promise<void> {
    await this.call(() => this.store.recall(pool).then(() => 'done' as const), ignore);
  }

  private async call<T>(send: () => Promise<T>, onLate: (value: T) => void): Promise<T | CallFailure> {
    if (this.isAway()) return 'unsent';
    const result = await this.within(CALL_DEADLINE_MS, send, onLate);
    if (result === 'lost') this.noteFailure();
    else this.awayUntilMs = 0;
    return result;
  }

  private within<T>(deadlineMs: number, send: () => Promise<T>, onLate: (value: T) => void): Promise<T | 'lost'> {
    return new Promise((resolve) => {
      let isLate = false;
      const giveUp = (): void => {
        isLate = true;
        resolve('lost');
      };
      send().then((value) => (isLate ? onLate(value) : resolve(value)), giveUp);
      void this.time.wait(deadlineMs).then(giveUp);
    });
  }

  private noteFailure(): void {
    this.awayUntilMs = this.time.monotonicMs() + AWAY_MS;
    if (!this.probing) void this.probe();
  }

  private async probe(): Promise<void> {
    this.probing = true;
    const found = await this.within(PROBE_DEADLINE_MS, () => this.store.probe().then(() => 'found' as const), ignore);
    this.probing = false;
    const nowMs = this.time.monotonicMs();
    this.nextProbeMs = nowMs + PROBE_INTERVAL_MS;
    this.awayUntilMs = found === 'found' ? 0 : nowMs + AWAY_MS;
  }
}

function ignore(): void {
  // What came late changes nothing.
}
