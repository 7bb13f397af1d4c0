// Makes the calls to the store that a lease needs, one at a time: it recovers a lost call, then sends returns, then
// a lease request, and serves or refuses the requests that wait.

import type { LeaseAnswer, Quota } from '../../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime, LostCall } from './lease-store.ts';
import type { QuotaLease } from './quota-lease.ts';
import { REFUSALS_WAITED, type Shortage, shortageOf, type Verdict } from './remembered-refusal.ts';
import { ReturnTurns } from './return-turns.ts';
import {
  CALL_DEADLINE_MS,
  type CallFailure,
  type Revocation,
  StoreCircuit,
  type StoreEvents,
} from './store-circuit.ts';
import { firstCameAtMs, leastOf, type Waiter } from './waiter.ts';

/**
 * Revocations of one wallet or limit are at least this far apart, whichever process makes them: each makes all
 * processes return at once what is released, for longer than this.
 */
const REVOCATION_INTERVAL_MS = 1_000;
/** How long the other processes are given to return what is free, from when they were asked, or what they release. */
const REVOCATION_WINDOW_MS = 400;
/** The first pause before the store is asked again; each further one is as long as all since the revocation. */
const REVOCATION_POLL_MS = 30;
/** The pause before the next refill, after one that brought too little or could not be made. */
const REFILL_PAUSE_MS = 500;
/**
 * Another transaction has the wallet or limit locked. Postgres ends a transaction that stands still after two seconds
 * (pool.ts), so a request that has waited longer than this is waiting for something else.
 */
const LOCKED_WAIT_MS_MAX = 5_000;
const LOCKED_PAUSE_MS = 50;

/** A lease request with its answer. */
interface AnsweredRequest {
  readonly answer: LeaseAnswer;
  /** It brought what was needed at the least. */
  readonly isEnough: boolean;
  readonly sentAtMs: number;
  /** How many of this lease had been sent with it. */
  readonly requestsSent: number;
}

export class LeaseCalls {
  /** Leases with something to return: a few return at a time, and one that met a locked row tries again. */
  readonly turns: ReturnTurns;
  private readonly circuit: StoreCircuit;
  private readonly time: LeaseTime;
  private readonly onFault: (fault: unknown) => void;
  /** The number of the last call about any lease (lease-store.ts). */
  private lastCall = 0;

  /** `onFault`: a bug. */
  constructor(store: LeaseStore, time: LeaseTime, onFault: (fault: unknown) => void, on: StoreEvents) {
    this.circuit = new StoreCircuit(store, time, on);
    this.turns = new ReturnTurns((lease) => this.work(lease), time);
    this.time = time;
    this.onFault = onFault;
  }

  isStoreAway(): boolean {
    return this.circuit.isAway();
  }

  /** `StoreEvents.found` comes once it answers. */
  lookForStore(): void {
    void this.circuit.lookFor();
  }

  /** Nothing is held of it before. While the store is away, what is there serves. */
  mustRenew(lease: QuotaLease): boolean {
    return lease.isRenewalDue && !this.circuit.isAway();
  }

  /** Makes the calls that the lease needs, unless they are being made. */
  work(lease: QuotaLease): void {
    if (lease.work !== null) return;
    // Set before it begins: what it does at once may ask for it again.
    lease.work = Promise.resolve();
    const work = this.workOn(lease).catch((fault: unknown) => {
      lease.work = null;
      this.giveUpWaiters(lease, 'lost');
      this.onFault(fault);
    });
    if (lease.work !== null) lease.work = work;
  }

  private async workOn(lease: QuotaLease): Promise<void> {
    let failure: CallFailure | null = null;
    for (;;) {
      if (lease.lostCall !== null && !(await this.recover(lease, lease.lostCall))) {
        lease.refillNotBeforeMs = this.time.monotonicMs() + REFILL_PAUSE_MS;
        if (lease.waiters.length === 0) break;
        await this.time.wait(LOCKED_PAUSE_MS);
        continue;
      }
      // One after the other: a store that goes away meanwhile would leave all empty.
      if (this.mustRenew(lease)) lease.renew(this.time.monotonicMs());
      lease.returnExpired(this.time.monotonicMs());
      failure = lease.pendingReturns.size > 0 ? await this.sendReturns(lease) : null;
      if (lease.lostCall !== null) continue;
      if (lease.waiters.length > 0 || lease.wantsRefill) {
        const isSent = await this.sendRequest(lease);
        if (!isSent && lease.waiters.length === 0) break;
      } else if (lease.pendingReturns.size === 0 || failure !== null) break;
    }
    // In the same tick as the decision to stop: what is asked for from here on begins a new round.
    lease.work = null;
    // After a revocation another process may be waiting for this, and the next tick is up to a second away.
    if (failure === 'busy' && lease.isRevoked(this.time.monotonicMs()))
      void this.time.wait(LOCKED_PAUSE_MS).then(() => this.turns.add(lease));
  }

  /** False where it is still unknown what became of the call: those that wait are given up, at once or later. */
  private async recover(lease: QuotaLease, { call }: LostCall): Promise<boolean> {
    const recovered = await this.circuit.recover(lease.quota, call);
    if (recovered === 'busy' || recovered === 'unsent' || recovered === 'lost') {
      this.giveUpWaiters(lease, recovered);
      return false;
    }
    lease.applyRecovered(recovered === 'refused' ? null : recovered);
    return true;
  }

  /**
   * Why the rest must wait: the quota is locked, the store away, or an answer lost; else null. What the store refuses
   * to take back stays leased until the epoch is closed.
   */
  private async sendReturns(lease: QuotaLease): Promise<'busy' | 'unsent' | 'lost' | null> {
    // Those of now: after a revocation others are added all the time, and requests wait behind these.
    const grantIds = [...lease.pendingReturns.keys()];
    for (const grantId of grantIds) {
      const amount = lease.pendingReturns.get(grantId) ?? 0n;
      lease.pendingReturns.delete(grantId);
      const call = this.nextCall();
      const result = await this.circuit.giveBack(lease.quota, grantId, amount, call);
      if (result === 'busy' || result === 'unsent') {
        lease.addPendingReturn(grantId, amount);
        return result;
      }
      if (result === 'done') lease.refusals.forgetLast();
      else if (result === 'lost') lease.loseCall({ call, returned: { grantId, amount } });
      if (lease.lostCall !== null) return 'lost';
    }
    return null;
  }

  /** One lease request, for those that wait or as a refill, which stays wanted where the store does not answer. */
  private async sendRequest(lease: QuotaLease): Promise<boolean> {
    const pauseMs = lease.notBeforeMs - this.time.monotonicMs();
    if (pauseMs > 0 && !this.circuit.isAway()) await this.time.wait(pauseMs);
    // Something may have been released meanwhile.
    this.serve(lease);
    const { wantsRefill } = lease;
    lease.wantsRefill = false;
    if (lease.waiters.length === 0 && !wantsRefill) return true;

    const sentAtMs = this.time.monotonicMs();
    const request = lease.beginRequest(sentAtMs);
    const call = this.nextCall();
    const answer = await this.circuit.take(lease.quota, request, call);
    if (typeof answer === 'string') {
      const nowMs = this.time.monotonicMs();
      lease.failRequest(answer === 'lost');
      if (answer === 'lost') lease.loseCall({ call, returned: null });
      this.giveUpWaiters(lease, answer);
      if (answer === 'unsent' || answer === 'lost') {
        lease.wantsRefill ||= wantsRefill;
        return answer === 'lost';
      }
      lease.notBeforeMs = nowMs + LOCKED_PAUSE_MS;
      lease.refillNotBeforeMs = nowMs + REFILL_PAUSE_MS;
      return true;
    }
    lease.applyAnswer(answer, sentAtMs);
    const isEnough = answer.granted >= request.minimum || answer.gone;
    await this.serveFrom(lease, { answer, isEnough, sentAtMs, requestsSent: lease.requestsSent });
    return true;
  }

  private async serveFrom(lease: QuotaLease, answered: AnsweredRequest): Promise<void> {
    const { answer, isEnough } = answered;
    if (!isEnough && isOutdated(lease, answered)) return;
    if (answer.frozen) {
      lease.withdraw(this.time.monotonicMs());
      lease.returnAvailable();
      this.refuseWaiters(lease, answered, { reason: 'frozen', most: null });
      return;
    }
    this.serve(lease);
    lease.returnIfTakenBack(this.time.monotonicMs());
    if (isEnough) lease.refusals.noteEnough();
    // What is about to be returned may be what is missing.
    else if (lease.pendingReturns.size > 0) return;
    else if (lease.waiters.length === 0) lease.refillNotBeforeMs = this.time.monotonicMs() + REFILL_PAUSE_MS;
    else await this.revokeOrRefuse(lease, answered);
  }

  private async revokeOrRefuse(lease: QuotaLease, answered: AnsweredRequest): Promise<void> {
    const { answer } = answered;
    if (answer.leasedElsewhere === 0n) {
      this.refuseWaiters(lease, answered, { reason: 'short', most: null });
      return;
    }
    // For these whatever the others return would not suffice, so nobody is asked to return anything.
    const most = this.mostOf(lease, answer);
    this.refuseWaiters(lease, answered, { reason: 'short', most });
    // Nobody is left, or only some that came since and need as much.
    if (lease.waiters.every(({ need }) => need > most)) return;
    const found = await this.revokeElsewhere(lease);
    if (found === 'perhaps more' || isOutdated(lease, answered)) return;
    this.refuseWaiters(lease, answered, { reason: found === 'unsent' ? 'unavailable' : 'short', most: null });
  }

  /**
   * Asks the other processes to return what they have available. `perhaps more`: another lease request may bring it.
   * `unsent`: they could not be asked in time, so nobody knows what there is.
   */
  private async revokeElsewhere(lease: QuotaLease): Promise<'perhaps more' | 'nothing more' | 'unsent'> {
    const nowMs = this.time.monotonicMs();
    lease.refusals.noteLeasedElsewhere(nowMs);
    if (nowMs - lease.shortAtMs >= REVOCATION_INTERVAL_MS) {
      const { beganAtMs, sent } = lease.revocation ?? this.revoke(lease, nowMs);
      // It is waited for as long as for another call.
      const leftMs = beganAtMs + CALL_DEADLINE_MS - nowMs;
      if (leftMs <= 0) return 'unsent';
      // Meanwhile the store is asked again and again: room may come from elsewhere, and be enough for some.
      const pauseMs = Math.min(leftMs, Math.max(REVOCATION_POLL_MS, nowMs - beganAtMs));
      const isSent = await Promise.race([sent, this.time.wait(pauseMs).then(() => null)]);
      if (isSent !== true) return isSent === null ? 'perhaps more' : 'unsent';
    }
    // After half a second of refusals nobody waits here any more: a request a second asks the store, and finds it.
    if (lease.refusals.inRow >= REFUSALS_WAITED) return 'nothing more';
    const askedMs = this.time.monotonicMs();
    const elapsedMs = askedMs - lease.shortAtMs;
    // Long after a revocation what is released is returned at once, but may be on its way: it has as long to come. In a
    // row of refusals, and of a rate, which has room with the next second anyway, one more look finds it.
    const isOneLook = lease.isRate || lease.refusals.inRow > 0;
    const isLongAgo = elapsedMs >= REVOCATION_WINDOW_MS;
    const waitedMs = askedMs - firstCameAtMs(lease.waiters);
    if (isLongAgo && waitedMs >= (isOneLook ? REVOCATION_POLL_MS : REVOCATION_WINDOW_MS)) return 'nothing more';
    await this.time.wait(Math.max(REVOCATION_POLL_MS, isLongAgo ? waitedMs : elapsedMs));
    return 'perhaps more';
  }

  /** How much there is in all, wherever it is, under the limit if there is one; while nothing is pending return. */
  private mostOf(lease: QuotaLease, { available, leasedElsewhere, ceiling }: LeaseAnswer): bigint {
    const all = available + leasedElsewhere + lease.available(this.time.monotonicMs()) + lease.held;
    return ceiling !== null && ceiling < all ? ceiling : all;
  }

  private revoke(lease: QuotaLease, nowMs: number): Revocation {
    const sent = this.circuit.revoke(lease.quota).then((isSent) => {
      lease.endRevocation(isSent, this.time.monotonicMs());
      this.work(lease);
      return isSent;
    });
    const revocation = { beganAtMs: nowMs, sent };
    lease.beginRevocation(revocation);
    return revocation;
  }

  /** Lets those try again whose need is available. */
  serve(lease: QuotaLease): void {
    if (this.mustRenew(lease)) return;
    const nowMs = this.time.monotonicMs();
    const waiting = lease.waiters.length;
    const left = lease.waiters.splice(0).filter((waiter) => {
      if (!lease.canHold(waiter.need, nowMs)) return true;
      waiter.resume(null);
      return false;
    });
    if (left.length < waiting) lease.refusals.noteServedHere();
    lease.waiters.unshift(...left);
  }

  /** Refuses those that waited when the request was sent; the answer says nothing about those that came later. */
  private refuseWaiters(lease: QuotaLease, { answer, requestsSent }: AnsweredRequest, verdict: Verdict): void {
    const nowMs = this.time.monotonicMs();
    const available = lease.available(nowMs);
    const refused: Waiter[] = [];
    const shortages: Shortage[] = [];
    for (const waiter of lease.waiters.splice(0)) {
      const { need, requestsSentBefore } = waiter;
      const isMeant = requestsSentBefore < requestsSent;
      const shortage = isMeant ? shortageOf(lease.quota, answer, verdict, { need, available }) : null;
      if (shortage === null) lease.waiters.push(waiter);
      else {
        refused.push(waiter);
        shortages.push(shortage);
      }
    }
    if (refused.length === 0) return;
    lease.remember({ answer, ...verdict, leastRefused: leastOf(refused), nowMs });
    for (const [index, waiter] of refused.entries()) waiter.resume(shortages[index] as Shortage);
  }

  /** The call brought nothing. While the quota is locked, those that came recently go on waiting. */
  private giveUpWaiters(lease: QuotaLease, failure: CallFailure): void {
    const cameBeforeMs = failure === 'busy' ? this.time.monotonicMs() - LOCKED_WAIT_MS_MAX : Number.POSITIVE_INFINITY;
    for (const waiter of lease.waiters.splice(0)) {
      if (waiter.cameAtMs >= cameBeforeMs) lease.waiters.push(waiter);
      else waiter.resume(unavailable(lease.quota));
    }
  }

  private nextCall(): number {
    this.lastCall += 1;
    return this.lastCall;
  }
}

/** The store may have answered before there was room. */
function isOutdated(lease: QuotaLease, { sentAtMs }: AnsweredRequest): boolean {
  return lease.roomHeardAtMs > sentAtMs && lease.waiters.length > 0;
}

/**
 * Nobody knows whether there is enough: the store is away or has refused to say, the quota stayed locked, the other
 * processes could not be asked, or others were quicker each time.
 */
export function unavailable(quota: Quota): Shortage {
  return { quota, reason: 'unavailable', within: 0n, ceiling: null, retryAfterMs: null };
}
