// Everything this process has borrowed, credit of wallets and room under limits alike: requests draw from memory, and
// the store is asked only where that does not suffice (DESIGN 4). A request draws all that it needs at one instant or
// nothing at all, so nothing is held by one that waits.
//
//   draw all ──► drawn                       one borrowing at a time for each wallet or limit:
//      ▲   └──► wait at the first that          take ──► enough: those that wait draw again
//      │        is short ──────────────────►      ▲ └──► short: call the others' back and take again, or refuse
//      └────────────────────────────────────────────┘

import { Allowance, type Draw, type Shortage, type Waiter } from './allowance.ts';
import type { AllowanceKind, AllowanceStore, LeaseTime, LendingAnswer, Pool } from './allowance-store.ts';
import { StoreCircuit } from './store-circuit.ts';

export interface Wish {
  readonly pool: Pool;
  readonly amount: bigint;
}

/**
 * Recalls of one wallet or limit are at least this far apart, whoever makes them: for longer than this all processes
 * hand back at once what comes free.
 */
const RECALL_INTERVAL_MS = 1_000;
/** How long the others are given to answer a recall, and when we look first; then after twice as long each time. */
const RECALL_WINDOW_MS = 400;
const RECALL_POLL_MS = 30;
/** What is less than this part of a rate is not worth a recall: it comes back by itself within seconds. */
const RATE_PART_RECALLED = 20n;
/**
 * Borrowings that come back short are so far apart, doubled each time: requests that are refused must not load the
 * database.
 */
const SHORT_PAUSE_MS = 5;
const SHORT_PAUSE_MAX_MS = 160;
/** So long nothing is borrowed ahead after that came back short. */
const AHEAD_PAUSE_MS = 500;
/**
 * Somebody else has the wallet or limit locked. Postgres ends a transaction that stands still after two seconds
 * (pool.ts), so who waits longer than this waits for something else.
 */
const LOCKED_WAIT_MS_MAX = 5_000;
const LOCKED_PAUSE_MS = 50;
const IDLE_MS = 15_000;
/**
 * A request that found what it needed so often, and each time lost some of it to others before it had all, is given up.
 */
const ATTEMPTS_MAX = 64;

/** Nothing is ever added to it. */
const NO_DRAWS: Draw[] = [];

type Answered = (result: readonly Draw[] | Shortage) => void;

export class AllowanceLeases {
  private readonly circuit: StoreCircuit;
  private readonly time: LeaseTime;
  private readonly onFault: (fault: unknown) => void;
  private readonly allowances = new Map<string, Allowance>();
  /** What is being done for an allowance, calls to the store one after the other. */
  private readonly works = new Map<Allowance, Promise<void>>();
  /** Recalls of what this process had nothing of, by key: when they were heard. */
  private readonly recallsHeard = new Map<string, number>();

  constructor(store: AllowanceStore, time: LeaseTime, onFault: (fault: unknown) => void) {
    this.circuit = new StoreCircuit(store, time);
    this.time = time;
    this.onFault = onFault;
  }

  /** Draws all that is wished for, in this order, or nothing; synchronous where everything is warm. */
  drawAll(wishes: readonly Wish[]): readonly Draw[] | Promise<readonly Draw[] | Shortage> {
    const drawn = this.tryAll(wishes);
    return typeof drawn === 'number' ? new Promise((resolve) => this.waitAt(drawn, wishes, resolve, 1)) : drawn;
  }

  /** The draws, or the index of the first wish that cannot be had from memory; then nothing is drawn. */
  private tryAll(wishes: readonly Wish[]): readonly Draw[] | number {
    const nowMs = this.time.monotonicMs();
    let draws: Draw[] = NO_DRAWS;
    for (let index = 0; index < wishes.length; index += 1) {
      const { pool, amount } = wishes[index] as Wish;
      const draw = this.allowanceOf(pool, nowMs).draw(amount, nowMs);
      if (draw === null) {
        for (const taken of draws) taken.allowance.release(taken, 0n, nowMs);
        return index;
      }
      // Most have one: an array that grows has room for seventeen.
      if (index === 0) draws = [draw];
      else draws.push(draw);
    }
    for (const { allowance, grant } of draws) if (grant !== null && allowance.isLow(nowMs)) this.borrowAhead(allowance);
    return draws;
  }

  private borrowAhead(allowance: Allowance): void {
    allowance.wantsAhead = true;
    this.work(allowance);
  }

  private waitAt(index: number, wishes: readonly Wish[], answered: Answered, attempts: number): void {
    const { pool, amount } = wishes[index] as Wish;
    if (this.circuit.isAway() || attempts > ATTEMPTS_MAX) {
      answered({ pool, reason: 'unavailable', within: 0n, ceiling: null, retryAfterMs: null });
      return;
    }
    const nowMs = this.time.monotonicMs();
    const allowance = this.allowanceOf(pool, nowMs);
    const found = this.reserve(wishes.slice(0, index));
    const resume = (shortage: Shortage | null): void => {
      for (const { allowance: earlier, amount: reserved } of found) earlier.reserved -= reserved;
      if (shortage !== null) {
        for (const { allowance: earlier } of found) this.giveBackCalled(earlier);
        answered(shortage);
        return;
      }
      const drawn = this.tryAll(wishes);
      if (typeof drawn === 'number') this.waitAt(drawn, wishes, answered, attempts + 1);
      else answered(drawn);
    };
    allowance.waiters.push({ need: amount, cameAtTake: allowance.takes, cameAtMs: nowMs, resume });
    this.work(allowance);
  }

  /**
   * What a request has found on its way to where it waits stays here: of two things that are both called back, the one
   * would else be gone whenever the other has come. Processes do not so block each other, since all look for things in
   * the same order.
   */
  private reserve(wishes: readonly Wish[]): { readonly allowance: Allowance; readonly amount: bigint }[] {
    const nowMs = this.time.monotonicMs();
    return wishes.map(({ pool, amount }) => {
      const allowance = this.allowanceOf(pool, nowMs);
      allowance.reserved += amount;
      return { allowance, amount };
    });
  }

  private allowanceOf(pool: Pool, nowMs: number): Allowance {
    let allowance = this.allowances.get(pool.key);
    if (allowance === undefined) {
      allowance = new Allowance(pool, nowMs);
      this.allowances.set(pool.key, allowance);
      const heardAtMs = this.recallsHeard.get(pool.key);
      if (heardAtMs !== undefined) allowance.callBack(heardAtMs);
      this.recallsHeard.delete(pool.key);
    }
    return allowance;
  }

  /** Ends a draw, of which `used` is gone for good. */
  release(draw: Draw, used: bigint): void {
    const { allowance } = draw;
    allowance.release(draw, used, this.time.monotonicMs());
    if (allowance.waiters.length > 0) this.serve(allowance);
    this.giveBackCalled(allowance);
  }

  private giveBackCalled(allowance: Allowance): void {
    if (!allowance.isCalledBack(this.time.monotonicMs())) return;
    allowance.oweUnreserved();
    this.work(allowance);
  }

  /** Another process is short of this: what is free goes back, and for a while all that comes free. */
  callBack(key: string): void {
    const nowMs = this.time.monotonicMs();
    const allowance = this.allowances.get(key);
    if (allowance === undefined) this.recallsHeard.set(key, nowMs);
    else this.callBackOne(allowance, nowMs);
  }

  /** Recalls may have been missed. */
  callBackAll(): void {
    const nowMs = this.time.monotonicMs();
    for (const allowance of this.allowances.values()) this.callBackOne(allowance, nowMs);
  }

  private callBackOne(allowance: Allowance, nowMs: number): void {
    allowance.callBack(nowMs);
    allowance.oweUnreserved();
    this.work(allowance);
  }

  /** Called from the coarse clock: what has expired or lies idle goes back, and what is empty is forgotten. */
  tick(): void {
    const nowMs = this.time.monotonicMs();
    for (const [key, heardAtMs] of this.recallsHeard)
      if (nowMs - heardAtMs > 2 * RECALL_INTERVAL_MS) this.recallsHeard.delete(key);
    for (const [key, allowance] of this.allowances) {
      allowance.oweExpired(nowMs);
      if (nowMs - allowance.lastUsedMs > IDLE_MS) allowance.oweFree();
      if (allowance.owed.size > 0) this.work(allowance);
      else if (!this.works.has(allowance) && allowance.isEmpty(nowMs)) this.allowances.delete(key);
    }
  }

  /** Hands back everything free; at the end of a process. */
  async giveBackAll(): Promise<void> {
    await Promise.all(this.works.values());
    for (const allowance of this.allowances.values()) {
      allowance.oweFree();
      this.work(allowance);
    }
    await Promise.all(this.works.values());
  }

  /** Sums over all wallets and limits of a kind, for metrics. */
  totals(kind: AllowanceKind): { readonly free: bigint; readonly held: bigint } {
    const nowMs = this.time.monotonicMs();
    let free = 0n;
    let held = 0n;
    for (const allowance of this.allowances.values()) {
      if (allowance.pool.kind !== kind) continue;
      free += allowance.free(nowMs);
      held += allowance.held;
    }
    return { free, held };
  }

  /** Sees to it that what the allowance owes goes back and what is wanted of it is borrowed. */
  private work(allowance: Allowance): void {
    if (this.works.has(allowance)) return;
    // Set before it begins: what it does at once may ask for it again.
    this.works.set(allowance, Promise.resolve());
    const work = this.workOn(allowance).catch((fault: unknown) => {
      this.works.delete(allowance);
      this.fail(allowance, Number.POSITIVE_INFINITY);
      this.onFault(fault);
    });
    if (this.works.has(allowance)) this.works.set(allowance, work);
  }

  private async workOn(allowance: Allowance): Promise<void> {
    for (;;) {
      allowance.oweExpired(this.time.monotonicMs());
      const isLocked = allowance.owed.size > 0 && !(await this.payBack(allowance));
      if (allowance.waiters.length > 0 || allowance.wantsAhead) await this.borrow(allowance);
      else if (allowance.owed.size === 0 || isLocked || this.circuit.isAway()) break;
    }
    // In the same turn as the decision to stop: what is asked for from here on begins a new round.
    this.works.delete(allowance);
  }

  /** False where it is locked: what is owed stays owed, to be given back another time. */
  private async payBack(allowance: Allowance): Promise<boolean> {
    const owed = [...allowance.owed];
    allowance.owed.clear();
    let isLocked = false;
    for (const [grantId, amount] of owed) {
      const result = isLocked ? 'busy' : await this.circuit.giveBack(allowance.pool, grantId, amount);
      if (result === 'busy') isLocked = true;
      if (result === 'busy' || result === 'unsent') allowance.owe(grantId, amount);
      else if (result !== 'done') allowance.noteDoubt(this.time.monotonicMs());
    }
    return !isLocked;
  }

  /** One borrowing, for those that wait or ahead of those to come. */
  private async borrow(allowance: Allowance): Promise<void> {
    const pauseMs = allowance.notBeforeMs - this.time.monotonicMs();
    if (pauseMs > 0 && !this.circuit.isAway()) await this.time.wait(pauseMs);
    // Something may have come free meanwhile.
    this.serve(allowance);
    const { wantsAhead } = allowance;
    allowance.wantsAhead = false;
    if (allowance.waiters.length === 0 && !wantsAhead) return;

    const sentAtMs = this.time.monotonicMs();
    const wish = allowance.beginTake(sentAtMs);
    const answer = await this.circuit.take(allowance.pool, wish, (late) => this.oweLate(allowance.pool, late));
    if (typeof answer === 'string') {
      const nowMs = this.time.monotonicMs();
      allowance.loseTake(answer === 'lost', nowMs);
      this.fail(allowance, answer === 'busy' ? nowMs - LOCKED_WAIT_MS_MAX : Number.POSITIVE_INFINITY);
      if (answer === 'unsent' || answer === 'lost') return;
      allowance.notBeforeMs = nowMs + LOCKED_PAUSE_MS;
      allowance.aheadNotBeforeMs = nowMs + AHEAD_PAUSE_MS;
      return;
    }
    allowance.endTake(answer, sentAtMs);
    const take = allowance.takes;
    if (answer.frozen) {
      allowance.oweFree();
      this.refuse(allowance, take, answer, 'frozen');
      return;
    }
    this.serve(allowance);
    if (allowance.isCalledBack(this.time.monotonicMs())) allowance.oweUnreserved();
    if (answer.granted >= wish.minimum || answer.gone) allowance.noteEnough();
    // What goes back first may be what is missing.
    else if (allowance.owed.size > 0 && !this.circuit.isAway()) return;
    else if (allowance.waiters.length === 0) allowance.aheadNotBeforeMs = this.time.monotonicMs() + AHEAD_PAUSE_MS;
    else if (!(await this.callOthersBack(allowance, answer))) this.refuse(allowance, take, answer, 'short');
  }

  /**
   * What comes after it was given up goes back. It is owed meanwhile, so that nobody takes it for something that a lost
   * call has left in the store.
   */
  private oweLate(pool: Pool, { granted, grantId }: LendingAnswer): void {
    if (granted === 0n) return;
    const allowance = this.allowanceOf(pool, this.time.monotonicMs());
    allowance.owe(grantId, granted);
    this.work(allowance);
  }

  /** True when another borrowing may find more. */
  private async callOthersBack(allowance: Allowance, answer: LendingAnswer): Promise<boolean> {
    const { leasedElsewhere, ceiling } = answer;
    if (leasedElsewhere === 0n || (ceiling !== null && (allowance.leastNeed() ?? 0n) > ceiling)) return false;
    if (allowance.isRate && ceiling !== null && leasedElsewhere * RATE_PART_RECALLED < ceiling) return false;
    const nowMs = this.time.monotonicMs();
    if (nowMs - allowance.recalledAtMs >= RECALL_INTERVAL_MS) {
      // It holds for this process as well: of two that each have a part of what both need, one must get all.
      allowance.callBack(nowMs);
      allowance.oweUnreserved();
      await this.circuit.recall(allowance.pool);
    }
    const sinceMs = nowMs - allowance.recalledAtMs;
    const isLongAgo = sinceMs >= RECALL_WINDOW_MS;
    // Long after a recall all that comes free is on its way back already: one more look finds it.
    if (isLongAgo && allowance.hasLookedAgain) return false;
    allowance.hasLookedAgain = true;
    await this.time.wait(isLongAgo ? RECALL_POLL_MS : Math.max(RECALL_POLL_MS, sinceMs));
    return true;
  }

  /** Lets those draw whose need is there. */
  private serve(allowance: Allowance): void {
    const nowMs = this.time.monotonicMs();
    const waiting = allowance.waiters.splice(0);
    const left = waiting.filter((waiter) => {
      if (!allowance.canDraw(waiter.need, nowMs)) return true;
      waiter.resume(null);
      return false;
    });
    allowance.waiters.unshift(...left);
  }

  /** Refuses those that waited when the borrowing was sent: to who came later it does not speak. */
  private refuse(allowance: Allowance, take: number, answer: LendingAnswer, reason: 'short' | 'frozen'): void {
    const nowMs = this.time.monotonicMs();
    const pauseMs = Math.min(SHORT_PAUSE_MAX_MS, SHORT_PAUSE_MS * 2 ** allowance.shortTakes);
    allowance.shortTakes += 1;
    allowance.hasLookedAgain = false;
    allowance.notBeforeMs = nowMs + pauseMs;
    const within = allowance.free(nowMs) + answer.available;
    const refused: Waiter[] = [];
    const waiting = allowance.waiters.splice(0);
    for (const waiter of waiting) {
      const isRefused = waiter.cameAtTake < take && (reason === 'frozen' || waiter.need > within);
      (isRefused ? refused : allowance.waiters).push(waiter);
    }
    const { ceiling, retryAfterMs } = answer;
    for (const waiter of refused) waiter.resume({ pool: allowance.pool, reason, within, ceiling, retryAfterMs });
  }

  /** Gives up those that came before then. */
  private fail(allowance: Allowance, cameBeforeMs: number): void {
    for (const waiter of allowance.waiters.splice(0)) {
      if (waiter.cameAtMs >= cameBeforeMs) allowance.waiters.push(waiter);
      else
        waiter.resume({ pool: allowance.pool, reason: 'unavailable', within: 0n, ceiling: null, retryAfterMs: null });
    }
  }
}
