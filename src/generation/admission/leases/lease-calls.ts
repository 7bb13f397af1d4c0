// Makes the calls to the store that a lease needs, one at a time: it recovers a lost call, then sends returns, then
// a lease request, and serves or refuses the requests that wait.

import type { LeaseAnswer, Quota } from '../../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime, LostCall } from './lease-store.ts';
import type { QuotaLease } from './quota-lease.ts';
import { REFUSALS_WAITED, type Shortage, shortageOf, type Verdict } from './remembered-refusal.ts';
import { ReturnQueue } from './return-queue.ts';
import {
  CALL_DEADLINE_MS,
  type CallFailure,
  type Revocation,
  StoreCircuit,
  type StoreEvents,
} from './store-circuit.ts';
import { firstCameAtMs, smallestNeed, type Waiter } from './waiter.ts';

/**
 * Revocations of one wallet or limit are at least this far apart, whichever process makes them. Each makes all
 * processes return what they release at once, for longer than this (REVOKED_MS).
 */
const REVOCATION_INTERVAL_MS = 1_000;
/** How long what other processes return may take: what they had when asked, or what their requests release later. */
const REVOCATION_WINDOW_MS = 400;
/** The shortest pause before the store is asked again. Until a revocation is sent, the pauses double. */
const REVOCATION_POLL_MS = 30;
/** The pause before the next refill, after a refill that granted too little or could not be requested. */
const REFILL_PAUSE_MS = 500;
/**
 * How long requests wait while another transaction has the wallet or limit locked. Postgres ends an idle transaction
 * after two seconds (pool.ts), so a request that has waited longer than this is waiting for something else.
 */
const LOCKED_WAIT_MS_MAX = 5_000;
const LOCKED_PAUSE_MS = 50;
/**
 * How long a request waits while all that comes goes to requests that need less. It is above LOCKED_WAIT_MS_MAX and the
 * time for a revocation, so that a request that waited for those has had its turn.
 */
const PASSED_OVER_MS_MAX = 10_000;

/** A lease request with its answer. */
interface AnsweredRequest {
  readonly answer: LeaseAnswer;
  /** The answer granted at least the request's minimum, or the limit is gone and needs no grant. */
  readonly isEnough: boolean;
  readonly sentAtMs: number;
  /** The lease's `requestsSent`, this one included. */
  readonly requestsSent: number;
}

export class LeaseCalls {
  /** Leases with something to return make their calls a few at a time. A lease whose quota was locked tries again. */
  readonly returnQueue: ReturnQueue;
  private readonly circuit: StoreCircuit;
  private readonly time: LeaseTime;
  private readonly onFault: (fault: unknown) => void;
  /** The number of the last call, over all leases (lease-store.ts). */
  private lastCall = 0;

  /** `onFault` is told of faults that only a bug can cause. */
  constructor(store: LeaseStore, time: LeaseTime, onFault: (fault: unknown) => void, on: StoreEvents) {
    this.circuit = new StoreCircuit(store, time, on);
    this.returnQueue = new ReturnQueue((lease) => this.work(lease), time);
    this.time = time;
    this.onFault = onFault;
  }

  isStoreAway(): boolean {
    return this.circuit.isAway();
  }

  /** Probes the store. `StoreEvents.found` is called once the store answers. */
  probeStore(): void {
    void this.circuit.probeOnce();
  }

  /** Whether the lease must be renewed before a request holds from it. While the store is away, the old one serves. */
  mustRenew(lease: QuotaLease): boolean {
    return lease.isRenewalDue && !this.circuit.isAway();
  }

  /** Makes the calls that the lease needs, unless they are being made. */
  work(lease: QuotaLease): void {
    if (lease.work !== null) return;
    // Set before `workOn` begins, since its synchronous part may call `work` again.
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
      // Leases are renewed one after the other. If all were returned first and the store went away, all would be empty.
      if (this.mustRenew(lease)) lease.renew(this.time.monotonicMs());
      lease.returnExpired(this.time.monotonicMs());
      failure = lease.pendingReturns.size > 0 ? await this.sendReturns(lease) : null;
      if (lease.lostCall !== null) continue;
      if (lease.waiters.length > 0 || lease.wantsRefill) {
        const isSent = await this.sendRequest(lease);
        if (!isSent && lease.waiters.length === 0) break;
      } else if (lease.pendingReturns.size === 0 || failure !== null) break;
    }
    // Cleared in the same tick as the decision to stop, so that a later call of `work` begins a new loop.
    lease.work = null;
    // Another process may wait for this return as long as the lock lasts, and the next `tick` of the coarse clock is up
    // to a second away.
    if (failure === 'busy' && lease.isContended(this.time.monotonicMs()))
      void this.time.wait(LOCKED_PAUSE_MS).then(() => this.returnQueue.add(lease));
  }

  /**
   * False: the store has not said what became of the call. Waiting requests are given up, at once or, while the quota
   * is locked, after LOCKED_WAIT_MS_MAX.
   */
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
   * Sends the pending returns. The result says why the remaining ones must wait: the quota is locked, the store is
   * away, or an answer was lost; null: all are sent. What the store refuses to take back stays leased until the epoch
   * is closed.
   */
  private async sendReturns(lease: QuotaLease): Promise<'busy' | 'unsent' | 'lost' | null> {
    // Only the returns that are pending now: after a revocation more are added all the time, and waiting requests come
    // after this loop.
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

  /**
   * Sends one lease request, for the waiting requests or as a refill. A refill stays wanted when the store does not
   * answer. False: the store is away and was not asked.
   */
  private async sendRequest(lease: QuotaLease): Promise<boolean> {
    const pauseMs = lease.notBeforeMs - this.time.monotonicMs();
    if (pauseMs > 0 && !this.circuit.isAway()) await this.time.wait(pauseMs);
    // Requests may have released something during the pause.
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
      if (answer === 'busy') lease.othersReturnSinceMs = nowMs;
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
      this.refuseWaiters(lease, answered, { reason: 'frozen', total: null });
      return;
    }
    this.serve(lease);
    lease.returnIfRevokedOrWithdrawn(this.time.monotonicMs());
    // An answer that is enough for the least need says nothing about the others, as often as it comes.
    this.refuseWaiters(lease, answered, { reason: 'short', total: null }, answered.sentAtMs - PASSED_OVER_MS_MAX);
    if (isEnough) lease.refusals.noteEnough();
    // This lease's pending returns may be just what the store lacks.
    else if (lease.pendingReturns.size > 0) return;
    else if (lease.waiters.length === 0) lease.refillNotBeforeMs = this.time.monotonicMs() + REFILL_PAUSE_MS;
    else await this.revokeOrRefuse(lease, answered);
  }

  private async revokeOrRefuse(lease: QuotaLease, answered: AnsweredRequest): Promise<void> {
    const { answer } = answered;
    if (answer.leasedElsewhere === 0n) {
      this.refuseWaiters(lease, answered, { reason: 'short', total: null });
      return;
    }
    // Requests that need more than the total are refused first. Nothing that other processes return would suffice for
    // them.
    const total = this.totalOf(lease, answer);
    this.refuseWaiters(lease, answered, { reason: 'short', total });
    // No request is left to wait for, or only later ones that need more than the total, too.
    if (lease.waiters.every(({ need }) => need > total)) return;
    const found = await this.revokeElsewhere(lease, answered.sentAtMs);
    if (found === 'perhaps more' || isOutdated(lease, answered)) return;
    this.refuseWaiters(lease, answered, { reason: found === 'unsent' ? 'unavailable' : 'short', total: null });
  }

  /**
   * Asks the other processes to return what they have available. `perhaps more`: another lease request may bring it.
   * `unsent`: the others could not be asked in time, so nobody knows what they have. `askedMs`: when the store was
   * asked, which has answered that it has too little.
   */
  private async revokeElsewhere(
    lease: QuotaLease,
    askedMs: number,
  ): Promise<'perhaps more' | 'nothing more' | 'unsent'> {
    const nowMs = this.time.monotonicMs();
    lease.refusals.noteLeasedElsewhere(nowMs);
    const cameAtMs = firstCameAtMs(lease.waiters);
    // Requests that came before the last revocation need no further one, however long the store takes to answer them,
    // unless they have met a lock since: it may have outlasted the revocation.
    const needSinceMs = Math.max(cameAtMs, lease.othersReturnSinceMs);
    if (nowMs - lease.shortAtMs >= REVOCATION_INTERVAL_MS && needSinceMs > lease.shortAtMs) {
      const { beganAtMs, sent } = lease.revocation ?? this.revoke(lease, nowMs);
      // The revocation may take as long as any other call.
      const leftMs = beganAtMs + CALL_DEADLINE_MS - nowMs;
      if (leftMs <= 0) return 'unsent';
      // Until the revocation is sent, the store is asked again and again: room from elsewhere may suffice for some
      // requests.
      const pauseMs = Math.min(leftMs, Math.max(REVOCATION_POLL_MS, nowMs - beganAtMs));
      const isSent = await Promise.race([sent, this.time.wait(pauseMs).then(() => null)]);
      if (isSent !== true) return isSent === null ? 'perhaps more' : 'unsent';
    }
    // After so many refusals in a row requests no longer wait for other processes. One request a second still asks the
    // store, and finds what has been returned.
    if (lease.refusals.inRow >= REFUSALS_WAITED) return 'nothing more';
    // A request waits until the others have had a window to return what they had, and a window of its own for what
    // requests release meanwhile, which is returned at once. A rate has room with the next second anyway, so there a
    // request waits for one short pause. What the store has answered is no newer than the question: on a slow machine
    // returns arrive while the answer is on its way.
    const seenMs = lease.isRate ? this.time.monotonicMs() : askedMs;
    const waitedMs = lease.isRate ? REVOCATION_POLL_MS : REVOCATION_WINDOW_MS;
    const untilMs = Math.max(lease.othersReturnSinceMs + REVOCATION_WINDOW_MS, cameAtMs + waitedMs);
    if (seenMs >= untilMs) return 'nothing more';
    // Soon after a revocation the store has what lay idle; what was released comes at any time. Each look between the
    // first and the last would be a call in vain for most requests.
    const isJustRevoked = this.time.monotonicMs() - lease.shortAtMs < REVOCATION_POLL_MS;
    // An answer may be late by seconds, as after the process stood still, and then the time may be over already.
    const pauseMs = isJustRevoked ? REVOCATION_POLL_MS : untilMs - this.time.monotonicMs();
    await this.time.wait(Math.min(REVOCATION_WINDOW_MS, Math.max(REVOCATION_POLL_MS, pauseMs)));
    return 'perhaps more';
  }

  /** The quota's total, wherever it is, and at most the ceiling. True only while nothing is pending return. */
  private totalOf(lease: QuotaLease, { available, leasedElsewhere, ceiling }: LeaseAnswer): bigint {
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

  /** Resumes the waiting requests whose need is available now. */
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

  /**
   * Refuses the requests that waited when the lease request was sent, of those that came before `cameBeforeMs`. The
   * answer says nothing about later ones.
   */
  private refuseWaiters(
    lease: QuotaLease,
    { answer, requestsSent }: AnsweredRequest,
    verdict: Verdict,
    cameBeforeMs = Number.POSITIVE_INFINITY,
  ): void {
    const nowMs = this.time.monotonicMs();
    const available = lease.available(nowMs);
    const refused: Waiter[] = [];
    const shortages: Shortage[] = [];
    for (const waiter of lease.waiters.splice(0)) {
      const { need, requestsSentBefore, cameAtMs } = waiter;
      const isMeant = requestsSentBefore < requestsSent && cameAtMs < cameBeforeMs;
      const shortage = isMeant ? shortageOf(lease.quota, answer, verdict, { need, available }) : null;
      if (shortage === null) lease.waiters.push(waiter);
      else {
        refused.push(waiter);
        shortages.push(shortage);
      }
    }
    if (refused.length === 0) return;
    lease.remember({ answer, ...verdict, leastRefused: smallestNeed(refused), nowMs });
    for (const [index, waiter] of refused.entries()) waiter.resume(shortages[index] as Shortage);
  }

  /** Refuses the waiting requests after a failed call. While the quota is locked, recent ones go on waiting. */
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

/** Room was reported after the lease request was sent: its answer may be outdated, and requests wait for another. */
function isOutdated(lease: QuotaLease, { sentAtMs }: AnsweredRequest): boolean {
  return lease.roomExpectedAtMs > sentAtMs && lease.waiters.length > 0;
}

/**
 * Nobody knows whether enough is left: the store is away or has refused to say, the quota stayed locked, the other
 * processes could not be asked, or others were quicker each time.
 */
export function unavailable(quota: Quota): Shortage {
  return { quota, reason: 'unavailable', servableMax: 0n, ceiling: null, retryAfterMs: null };
}
