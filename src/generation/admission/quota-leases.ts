// All leases of this process, of wallets and limits alike: requests hold what they need in memory, and the store is
// asked only where that does not suffice. A request holds all that it needs at one instant or nothing at
// all, so a request that waits holds nothing.
//
//   try to hold all ──► admitted            for each wallet or limit one call to the store at a time:
//      ▲   └──► wait at the first lease        lease request ──► enough: those that wait try again
//      │        that is short ─────────────►      ▲        └───► short: revoke, wait a moment and ask again, or refuse
//      └──────────────────────────────────────────┘

import type { LeaseAnswer, Quota, QuotaKind } from '../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime } from './lease-store.ts';
import { CONTENDED_MS, type Hold, leastOf, QuotaLease, type Waiter } from './quota-lease.ts';
import { REFUSALS_WAITED, type Shortage } from './remembered-refusal.ts';
import { ReturnTurns } from './return-turns.ts';
import { StoreCircuit } from './store-circuit.ts';

/** What a request needs of one wallet or limit. */
export interface HoldRequest {
  readonly quota: Quota;
  readonly amount: bigint;
}

/**
 * Revocations of one wallet or limit are at least this far apart, whichever process makes them: each makes all
 * processes return at once what is released, for longer than this.
 */
const REVOCATION_INTERVAL_MS = 1_000;
/** How long the other processes are given to answer a revocation. */
const REVOCATION_WINDOW_MS = 400;
/** When the store is first asked again after a revocation; each pause after that is twice as long. */
const REVOCATION_POLL_MS = 30;
/** The pause after a refill that brought too little. */
const REFILL_PAUSE_MS = 500;
/**
 * Another transaction has the wallet or limit locked. Postgres ends a transaction that stands still after two seconds
 * (pool.ts), so a request that has waited longer than this is waiting for something else.
 */
const LOCKED_WAIT_MS_MAX = 5_000;
const LOCKED_PAUSE_MS = 50;
const IDLE_MS = 15_000;
/** A request is given up after it has lost so often to others what it had found. */
const ATTEMPTS_MAX = 64;
/** Nothing is ever added to it. */
const NO_HOLDS: Hold[] = [];

type Answered = (result: readonly Hold[] | Shortage) => void;

export class QuotaLeases {
  private readonly circuit: StoreCircuit;
  private readonly time: LeaseTime;
  private readonly onFault: (fault: unknown) => void;
  private readonly leases = new Map<string, QuotaLease>();
  /** When revocations came for quotas that this process has no lease of, by key: a later lease obeys them too. */
  private readonly earlyRevocations = new Map<string, number>();
  private readonly turns: ReturnTurns;

  /** `onFault`: a bug. `onStoreFault`: why the store could not be asked. */
  constructor(
    store: LeaseStore,
    time: LeaseTime,
    onFault: (fault: unknown) => void,
    onStoreFault: (fault: unknown) => void = () => undefined,
  ) {
    this.circuit = new StoreCircuit(store, time, onStoreFault);
    this.time = time;
    this.turns = new ReturnTurns((lease) => this.work(lease), time);
    this.onFault = onFault;
  }

  /** Holds all that is requested, in this order, or nothing; synchronous where everything is warm. */
  holdAll(requests: readonly HoldRequest[]): readonly Hold[] | Promise<readonly Hold[] | Shortage> {
    const held = this.tryAll(requests);
    return typeof held === 'number' ? this.holdLater(held, requests) : held;
  }

  private holdLater(index: number, requests: readonly HoldRequest[]): Promise<readonly Hold[] | Shortage> {
    return new Promise((resolve) => this.waitAt(index, requests, resolve, 1));
  }

  /** The holds, or the index of the first request that memory cannot serve; then nothing is held. */
  private tryAll(requests: readonly HoldRequest[]): readonly Hold[] | number {
    const nowMs = this.time.monotonicMs();
    let holds: Hold[] = NO_HOLDS;
    for (let index = 0; index < requests.length; index += 1) {
      const { quota, amount } = requests[index] as HoldRequest;
      const hold = this.leaseOf(quota, nowMs).hold(amount, nowMs);
      if (hold === null) {
        for (const earlier of holds) earlier.lease.release(earlier, 0n, nowMs);
        return index;
      }
      // Most requests have one hold, and an array that grows reserves room for seventeen.
      if (index === 0) holds = [hold];
      else holds.push(hold);
    }
    for (const { lease, grant } of holds) {
      if (grant === null || !lease.needsRefill(nowMs)) continue;
      lease.wantsRefill = true;
      this.work(lease);
    }
    return holds;
  }

  private waitAt(index: number, requests: readonly HoldRequest[], answered: Answered, attempts: number): void {
    const { quota, amount } = requests[index] as HoldRequest;
    if (this.circuit.isAway() || attempts > ATTEMPTS_MAX) {
      answered(unavailable(quota));
      return;
    }
    const nowMs = this.time.monotonicMs();
    // Nothing is asked for the one where the other is refused anyway.
    for (const one of requests.slice(index)) {
      const shortage = this.leases.get(one.quota.key)?.refuse(one.amount, nowMs) ?? null;
      if (shortage !== null) {
        answered(shortage);
        return;
      }
    }
    const lease = this.leaseOf(quota, nowMs);
    // What a request has found on its way here stays for it: of two leases that are both revoked, the one would else be
    // gone whenever the other has come. Processes do not block each other so, since all have the same order.
    const found = requests.slice(0, index).map((one) => ({ lease: this.leaseOf(one.quota, nowMs), one }));
    for (const { lease: earlier, one } of found) earlier.reserved += one.amount;
    const resume = (shortage: Shortage | null): void => {
      for (const { lease: earlier, one } of found) earlier.reserved -= one.amount;
      if (shortage !== null) {
        for (const { lease: earlier } of found) this.returnIfRevoked(earlier, this.time.monotonicMs());
        answered(shortage);
        return;
      }
      const held = this.tryAll(requests);
      if (typeof held === 'number') this.waitAt(held, requests, answered, attempts + 1);
      else answered(held);
    };
    lease.waiters.push({ need: amount, requestsSentBefore: lease.requestsSent, cameAtMs: nowMs, resume });
    this.work(lease);
  }

  private leaseOf(quota: Quota, nowMs: number): QuotaLease {
    let lease = this.leases.get(quota.key);
    if (lease === undefined) {
      lease = new QuotaLease(quota, nowMs);
      this.leases.set(quota.key, lease);
      const revokedAtMs = this.earlyRevocations.get(quota.key);
      if (revokedAtMs !== undefined) lease.revoke(revokedAtMs);
      this.earlyRevocations.delete(quota.key);
    }
    return lease;
  }

  /** Ends a hold, of which `used` is gone for good. */
  release(hold: Hold, used: bigint): void {
    const { lease } = hold;
    const nowMs = this.time.monotonicMs();
    lease.release(hold, used, nowMs);
    if (lease.waiters.length > 0) this.serve(lease);
    if (hold.grant !== null && lease.isWithdrawn(hold.grant)) this.work(lease);
    this.returnIfRevoked(lease, nowMs);
  }

  private returnIfRevoked(lease: QuotaLease, nowMs: number): void {
    if (!lease.isRevoked(nowMs)) return;
    lease.returnUnreserved();
    this.work(lease);
  }

  /** Another process is short: what is available is returned, and for a while all that is released. */
  revoke(key: string): void {
    const nowMs = this.time.monotonicMs();
    const lease = this.leases.get(key);
    if (lease === undefined) {
      this.earlyRevocations.set(key, nowMs);
      return;
    }
    lease.revoke(nowMs);
    this.work(lease);
  }

  /** The wallet or limit is not what it was: all that was lent of it is returned, what is held when it is released. */
  withdraw(key: string): void {
    const lease = this.leases.get(key);
    lease?.withdraw(this.time.monotonicMs());
    this.hearRoom(key);
    if (lease !== undefined) this.work(lease);
  }

  /** There may be room where there was none: who comes asks the store again. */
  hearRoom(key: string): void {
    this.leases.get(key)?.hearRoom(this.time.monotonicMs());
  }

  /** Whatever is told of wallets and limits may have been missed. */
  withdrawAll(): void {
    const nowMs = this.time.monotonicMs();
    for (const lease of this.leases.values()) {
      lease.withdraw(nowMs);
      lease.hearRoom(nowMs);
      this.turns.add(lease);
    }
  }

  /** Called from the coarse clock: returns what has expired or is idle, and forgets what is empty. */
  tick(): void {
    const nowMs = this.time.monotonicMs();
    for (const [key, revokedAtMs] of this.earlyRevocations)
      if (nowMs - revokedAtMs > CONTENDED_MS) this.earlyRevocations.delete(key);
    for (const [key, lease] of this.leases) {
      lease.returnExpired(nowMs);
      if (nowMs - lease.lastUsedMs > IDLE_MS) lease.returnAvailable();
      if (lease.pendingReturns.size > 0) this.turns.add(lease);
      else if (lease.isEmpty(nowMs)) this.leases.delete(key);
    }
  }

  /** Returns everything that is available; at the end of a process. */
  async returnAll(): Promise<void> {
    await this.untilIdle();
    for (const lease of this.leases.values()) {
      lease.returnAvailable();
      this.turns.add(lease);
    }
    await this.turns.sendAll();
    await this.untilIdle();
  }

  private async untilIdle(): Promise<void> {
    for (const { work } of this.leases.values()) await work;
  }

  /** Sums over all wallets and limits of a kind, for metrics. */
  totals(kind: QuotaKind): { readonly available: bigint; readonly held: bigint } {
    const nowMs = this.time.monotonicMs();
    let available = 0n;
    let held = 0n;
    for (const lease of this.leases.values()) {
      if (lease.quota.kind !== kind) continue;
      available += lease.available(nowMs);
      held += lease.held;
    }
    return { available, held };
  }

  /** Makes the calls to the store that the lease needs: returns first, then a lease request. */
  private work(lease: QuotaLease): void {
    if (lease.work !== null) return;
    // Set before it begins: what it does at once may ask for it again.
    lease.work = Promise.resolve();
    const work = this.workOn(lease).catch((fault: unknown) => {
      lease.work = null;
      this.giveUpWaiters(lease, Number.POSITIVE_INFINITY);
      this.onFault(fault);
    });
    if (lease.work !== null) lease.work = work;
  }

  private async workOn(lease: QuotaLease): Promise<void> {
    for (;;) {
      lease.returnExpired(this.time.monotonicMs());
      const isLocked = lease.pendingReturns.size > 0 && !(await this.sendReturns(lease));
      if (lease.waiters.length > 0 || lease.wantsRefill) await this.sendRequest(lease);
      else if (lease.pendingReturns.size === 0 || isLocked || this.circuit.isAway()) break;
    }
    // In the same tick as the decision to stop: what is asked for from here on begins a new round.
    lease.work = null;
  }

  /** False where the quota is locked: the rest stays pending and is returned another time. */
  private async sendReturns(lease: QuotaLease): Promise<boolean> {
    const pending = [...lease.pendingReturns];
    lease.pendingReturns.clear();
    let isLocked = false;
    for (const [grantId, amount] of pending) {
      const result = isLocked ? 'busy' : await this.circuit.giveBack(lease.quota, grantId, amount);
      if (result === 'busy') isLocked = true;
      if (result === 'busy' || result === 'unsent') lease.addPendingReturn(grantId, amount);
      else if (result === 'done') lease.forgetRefusal();
      else lease.markUncertain(this.time.monotonicMs());
    }
    return !isLocked;
  }

  /** One lease request, for those that wait or as a refill. */
  private async sendRequest(lease: QuotaLease): Promise<void> {
    const pauseMs = lease.notBeforeMs - this.time.monotonicMs();
    if (pauseMs > 0 && !this.circuit.isAway()) await this.time.wait(pauseMs);
    // Something may have been released meanwhile.
    this.serve(lease);
    const { wantsRefill } = lease;
    lease.wantsRefill = false;
    if (lease.waiters.length === 0 && !wantsRefill) return;

    const sentAtMs = this.time.monotonicMs();
    const request = lease.beginRequest(sentAtMs);
    const answer = await this.circuit.take(lease.quota, request, (late) => this.returnLate(lease.quota, late));
    if (typeof answer === 'string') {
      const nowMs = this.time.monotonicMs();
      lease.failRequest(answer === 'lost', nowMs);
      this.giveUpWaiters(lease, answer === 'busy' ? nowMs - LOCKED_WAIT_MS_MAX : Number.POSITIVE_INFINITY);
      if (answer === 'unsent' || answer === 'lost') return;
      lease.notBeforeMs = nowMs + LOCKED_PAUSE_MS;
      lease.refillNotBeforeMs = nowMs + REFILL_PAUSE_MS;
      return;
    }
    lease.applyAnswer(answer, sentAtMs);
    await this.serveFrom(lease, answer, sentAtMs, answer.granted >= request.minimum || answer.gone);
  }

  private async serveFrom(lease: QuotaLease, answer: LeaseAnswer, sentAtMs: number, isEnough: boolean): Promise<void> {
    // Later ones are not refused with this answer, also when it is refused after a pause.
    const { requestsSent } = lease;
    // The store may have answered before there was room.
    const isOutdated = (): boolean => lease.roomHeardAtMs > sentAtMs && lease.waiters.length > 0;
    if (!isEnough && isOutdated()) return;
    if (answer.frozen) {
      lease.withdraw(this.time.monotonicMs());
      lease.returnAvailable();
      this.refuse(lease, requestsSent, answer, 'frozen');
      return;
    }
    this.serve(lease);
    lease.returnContested(this.time.monotonicMs());
    if (isEnough) lease.noteEnough();
    // What is about to be returned may be what is missing.
    else if (lease.pendingReturns.size > 0 && !this.circuit.isAway()) return;
    else if (lease.waiters.length === 0) lease.refillNotBeforeMs = this.time.monotonicMs() + REFILL_PAUSE_MS;
    else if (!(await this.revokeElsewhere(lease, answer)) && !isOutdated())
      this.refuse(lease, requestsSent, answer, 'short');
  }

  /**
   * An answer that came after the call was given up: the grant is returned. Meanwhile it is a pending return of the
   * lease, which therefore does not count it among what a lost call has left in the store.
   */
  private returnLate(quota: Quota, { granted, grantId }: LeaseAnswer): void {
    if (granted === 0n) return;
    const lease = this.leaseOf(quota, this.time.monotonicMs());
    lease.addPendingReturn(grantId, granted);
    this.work(lease);
  }

  /** Asks the other processes to return what they have available. True when another lease request may bring more. */
  private async revokeElsewhere(lease: QuotaLease, { leasedElsewhere, ceiling }: LeaseAnswer): Promise<boolean> {
    if (leasedElsewhere === 0n || (ceiling !== null && (lease.leastNeed() ?? 0n) > ceiling)) return false;
    const nowMs = this.time.monotonicMs();
    lease.noteLeasedElsewhere(nowMs);
    if (nowMs - lease.shortAtMs >= REVOCATION_INTERVAL_MS) {
      // It holds for this process as well: of two that each have a part of what both need, one must get all.
      lease.revoke(nowMs);
      await this.circuit.revoke(lease.quota);
    }
    // What comes back is found when the store is asked anyway, within a second.
    if (lease.shortAnswers >= REFUSALS_WAITED) return false;
    const sinceMs = nowMs - lease.shortAtMs;
    const isLongAgo = sinceMs >= REVOCATION_WINDOW_MS;
    // Long after a revocation all that is released has been returned already: one more look finds it.
    if (isLongAgo && lease.hasLookedAgain) return false;
    lease.hasLookedAgain = true;
    await this.time.wait(isLongAgo ? REVOCATION_POLL_MS : Math.max(REVOCATION_POLL_MS, sinceMs));
    return true;
  }

  /** Lets those try again whose need is available. */
  private serve(lease: QuotaLease): void {
    const nowMs = this.time.monotonicMs();
    const waiting = lease.waiters.length;
    const left = lease.waiters.splice(0).filter((waiter) => {
      if (!lease.canHold(waiter.need, nowMs)) return true;
      waiter.resume(null);
      return false;
    });
    if (left.length < waiting) lease.noteServedHere();
    lease.waiters.unshift(...left);
  }

  /** Refuses those that waited when the request was sent; the answer says nothing about those that came later. */
  private refuse(lease: QuotaLease, requestsSent: number, answer: LeaseAnswer, reason: 'short' | 'frozen'): void {
    const nowMs = this.time.monotonicMs();
    const within = lease.available(nowMs) + answer.available;
    const refused: Waiter[] = [];
    for (const waiter of lease.waiters.splice(0)) {
      const isRefused = waiter.requestsSentBefore < requestsSent && (reason === 'frozen' || waiter.need > within);
      (isRefused ? refused : lease.waiters).push(waiter);
    }
    if (refused.length === 0) return;
    lease.remember({ answer, reason, need: leastOf(refused), nowMs });
    const { ceiling, retryAfterMs } = answer;
    for (const waiter of refused) waiter.resume({ quota: lease.quota, reason, within, ceiling, retryAfterMs });
  }

  /** Gives up those that came before then. */
  private giveUpWaiters(lease: QuotaLease, cameBeforeMs: number): void {
    for (const waiter of lease.waiters.splice(0)) {
      if (waiter.cameAtMs >= cameBeforeMs) lease.waiters.push(waiter);
      else waiter.resume(unavailable(lease.quota));
    }
  }
}

function unavailable(quota: Quota): Shortage {
  return { quota, reason: 'unavailable', within: 0n, ceiling: null, retryAfterMs: null };
}
