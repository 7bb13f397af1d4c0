// This process's lease of one wallet or limit: available, held by open requests, pending return to the store. This file
// keeps the state only: lease-calls.ts makes the calls to the store, quota-leases.ts makes the holds.
//
//                      hold                       release, unused part
//   store ──grant──► available ──► held by a request ─────────────► available again
//     ▲                  │                │ release, used part: leaves with the record, or ages out of the minute
//     │                  │ idle, expired, or revoked because another process is short
//     └──── returned ◄── pending return
//
// The amount of a call whose answer was lost is neither used nor returned until the store has said what became of it.
// A frozen wallet or a lowered limit withdraws earlier grants: what requests release of them is returned.

import {
  isRate,
  type LeaseAnswer,
  type LeaseRequest,
  type Quota,
  type RecoveredCall,
} from '../../../domain/quotas/lease.ts';
import { assert } from '../../../platform/assert.ts';
import { LeaseRefusals } from './lease-refusals.ts';
import { biggest, LeaseSize } from './lease-size.ts';
import type { LostCall } from './lease-store.ts';
import type { RefusedLease, Shortage } from './remembered-refusal.ts';
import type { Revocation } from './store-circuit.ts';
import { smallestNeed, sumOfNeeds, type Waiter } from './waiter.ts';

/** What the store granted under one id. */
export interface Grant {
  /** null: nothing is granted yet, or the answer with the new id of a rate's grant was lost. */
  id: string | null;
  available: bigint;
  readonly expiresAtMs: number;
  /** The lease's `withdrawals` when the store granted this. A lower count than the lease's marks a withdrawn grant. */
  readonly withdrawals: number;
}

/** What one request holds of one lease, until its end. */
export interface Hold {
  readonly lease: QuotaLease;
  /** null: the request needs nothing of the quota, or the limit is gone. */
  readonly grant: Grant | null;
  readonly amount: bigint;
}

/** A lease is refilled when its size divided by this is left: three or four seconds of use (SECONDS_OF_USE). */
const LOW_WATER_PARTS = { lease: 4n, rate: 2n } as const;
/**
 * A grant in use is renewed when a quarter of its validity is left, within these bounds, so that the next request finds
 * a valid grant.
 */
const RENEWAL_PART = 4;
const RENEWAL_MS_MIN = 300;
const RENEWAL_MS_MAX = 3_000;
/** For this long after a revocation, released amounts are returned at once and no refill is requested. */
const REVOKED_MS = 2_000;
/** For this long after a process was short of money, only the next need or a second of use is leased ahead. */
export const CONTENDED_MS = 60_000;
/** A lease that no request has used for this long is returned. */
const IDLE_MS = 15_000;
/** The store is asked again about a deleted limit after this. By then the principals that name it are reloaded. */
const GONE_MS = 5_000;

export class QuotaLease {
  readonly quota: Quota;
  readonly size: LeaseSize;
  readonly refusals: LeaseRefusals;
  readonly waiters: Waiter[] = [];
  /** Amounts to return to the store, by grant id. */
  readonly pendingReturns = new Map<string, bigint>();
  /** A call whose answer was lost. No other is made until the store has said what became of this one. */
  lostCall: LostCall | null = null;
  held = 0n;
  /**
   * How much of the available amount is kept for requests that wait at another lease: a revocation or withdrawal does
   * not return it until they are served or refused. Other requests of this process may still hold it.
   */
  reserved = 0n;
  lastUsedMs: number;
  requestsSent = 0;
  /** The loop that makes the calls of this lease, one after the other (lease-calls.ts); null: nothing runs. */
  work: Promise<void> | null = null;
  /** The next lease request is not sent before this: the last answers were too small, or the quota was locked. */
  notBeforeMs = 0;
  wantsRefill = false;
  /** The lease is to be leased anew (`renew`), by the next request or when the return queue reaches it. */
  isRenewalDue = false;
  refillNotBeforeMs = 0;
  /** When this process last heard that there may be room again. Answers to earlier lease requests do not count. */
  roomExpectedAtMs = Number.NEGATIVE_INFINITY;
  /** When this lease was last revoked, by whichever process, or withdrawn (`withdraw`). */
  private revokedAtMs = Number.NEGATIVE_INFINITY;
  /** When a process that was short, this one or another, last asked all others to return what they have available. */
  shortAtMs = Number.NEGATIVE_INFINITY;
  /** Since when the others return all that they do not hold, without a break and without a lock in their way. */
  othersReturnSinceMs = Number.NEGATIVE_INFINITY;
  /** This process's own revocation while it is not sent yet; null: none. */
  revocation: Revocation | null = null;
  private withdrawals = 0;
  /** `withdrawals` when the current lease request was sent: its answer may be older than the last withdrawal. */
  private withdrawalsWhenSent = 0;
  private grant: Grant = { id: null, available: 0n, expiresAtMs: 0, withdrawals: 0 };
  /** `moving`: the current lease request moves the available part of the present grant to the next grant. */
  private requesting: 'no' | 'yes' | 'moving' = 'no';
  private lastNeed = 1n;
  /** With less available than this, the lease is refilled. */
  private lowWater = 0n;
  private renewAtMs = Number.POSITIVE_INFINITY;
  private goneUntilMs = 0;

  constructor(quota: Quota, nowMs: number) {
    this.quota = quota;
    this.size = new LeaseSize(quota.kind);
    this.refusals = new LeaseRefusals(quota);
    this.lastUsedMs = nowMs;
  }

  available(nowMs: number): bigint {
    return nowMs < this.grant.expiresAtMs ? this.grant.available : 0n;
  }

  /** The warm path. null when too little is available. */
  hold(amount: bigint, nowMs: number): Hold | null {
    this.lastUsedMs = nowMs;
    if (amount === 0n || nowMs < this.goneUntilMs) return { lease: this, grant: null, amount: 0n };
    const { grant } = this;
    if (grant.available < amount || nowMs >= grant.expiresAtMs) return null;
    grant.available -= amount;
    this.held += amount;
    this.lastNeed = amount;
    // The whole hold of a rate counts as used; of money, only what the request costs counts (`release`).
    if (this.isRate) this.size.noteUse(amount, nowMs);
    return { lease: this, grant, amount };
  }

  canHold(amount: bigint, nowMs: number): boolean {
    return this.available(nowMs) >= amount || nowMs < this.goneUntilMs;
  }

  /** Ends a hold. `used` is spent; the rest is available again, or returned to the store. */
  release({ grant, amount }: Hold, used: bigint, nowMs: number): void {
    if (grant === null) return;
    assert(used >= 0n && used <= amount && amount <= this.held, 'a hold is released once, and uses at most its amount');
    this.held -= amount;
    if (used > 0n && !this.isRate) this.size.noteUse(used, nowMs);
    const rest = amount - used;
    if (grant.id === null || rest === 0n) return;
    // While the grant moves, holds made before the lease request belong to its old id, later ones to the new id.
    const isSame = grant === this.grant || (this.requesting !== 'moving' && grant.id === this.grant.id);
    const isPresent = isSame && !this.isWithdrawn(grant);
    if (isPresent) this.grant.available += rest;
    else this.addPendingReturn(grant.id, rest);
  }

  needsRefill(nowMs: number): boolean {
    if (this.requesting !== 'no' || this.isRevoked(nowMs) || nowMs < this.refillNotBeforeMs) return false;
    return this.grant.available < this.lowWater || nowMs > this.renewAtMs;
  }

  /** Begins the next lease request: for the waiting requests, or as a refill when none wait. */
  beginRequest(nowMs: number): LeaseRequest {
    this.requesting = 'yes';
    this.requestsSent += 1;
    this.withdrawalsWhenSent = this.withdrawals;
    const available = this.available(nowMs);
    const least = this.waiters.length === 0 ? null : smallestNeed(this.waiters);
    // The answer sets the low-water mark by `lastNeed`, before any of the waiting requests holds.
    if (least !== null) this.lastNeed = least;
    const minimum = least === null ? this.lastNeed : biggest(1n, least - available);
    const ahead = this.isRevoked(nowMs) ? 0n : this.size.next(this.lastNeed, this.held, this.isContended(nowMs));
    const amount = biggest(biggest(minimum, sumOfNeeds(this.waiters) - available), ahead);
    const { id } = this.grant;
    if (!this.isRate || available === 0n || id === null) return { amount, minimum, present: null };
    this.requesting = 'moving';
    // Holds made from here on refer to a new grant object, which gets the new id with the answer.
    this.grant = { ...this.grant };
    return { amount, minimum, present: { grantId: id, available } };
  }

  /** Each answer for a rate is a new grant; the other kinds keep one grant, or have one for each period. */
  get isRate(): boolean {
    return isRate(this.quota.kind);
  }

  applyAnswer(answer: LeaseAnswer, sentAtMs: number): void {
    this.requesting = 'no';
    const { granted, grantId, validForMs } = answer;
    const expiresAtMs = validForMs === null ? Number.POSITIVE_INFINITY : sentAtMs + validForMs;
    if (granted > 0n || answer.presentMoved)
      this.renewAtMs = validForMs === null ? expiresAtMs : expiresAtMs - renewalMs(validForMs);
    if (answer.gone) this.goneUntilMs = sentAtMs + GONE_MS;
    this.size.learn(answer.available, granted > 0n ? validForMs : null);
    this.lowWater =
      this.size.next(this.lastNeed, this.held, this.isContended(sentAtMs)) /
      (this.isRate ? LOW_WATER_PARTS.rate : LOW_WATER_PARTS.lease);
    if (answer.presentMoved) this.moveGrant(grantId, granted, expiresAtMs);
    else if (granted > 0n) this.addGrant(grantId, granted, expiresAtMs);
  }

  /** Holds made while the lease request was under way belong to the new id as well, so `moved` gets it too. */
  private moveGrant(grantId: string, granted: bigint, expiresAtMs: number): void {
    const moved = this.grant;
    moved.id = grantId;
    this.grant = { ...moved, id: grantId, available: moved.available + granted, expiresAtMs };
    moved.available = 0n;
  }

  private addGrant(grantId: string, granted: bigint, expiresAtMs: number): void {
    const isSame = this.grant.id === grantId;
    if (!isSame) this.returnAvailable();
    const available = (isSame ? this.grant.available : 0n) + granted;
    this.grant = { id: grantId, available, expiresAtMs, withdrawals: this.withdrawalsWhenSent };
  }

  /** The lease request failed. `isLost`: the store may have acted on it. */
  failRequest(isLost: boolean): void {
    const wasMoving = this.requesting === 'moving';
    this.requesting = 'no';
    // Only the store knows under which id the available part is kept now.
    if (!isLost || !wasMoving) return;
    this.grant.id = null;
    this.grant.available = 0n;
  }

  /** Notes a call whose answer never came. For a rate nothing is noted: what the call changed ages out in a minute. */
  loseCall(lost: LostCall): void {
    if (!this.isRate) this.lostCall = lost;
  }

  /**
   * Ends a lost call: what it was granted is returned, and a return that was not done is repeated. null: the store
   * refuses to say what became of the call, and the amount stays leased until the epoch is closed.
   */
  applyRecovered(recovered: RecoveredCall | null): void {
    const returned = this.lostCall?.returned ?? null;
    this.lostCall = null;
    if (recovered === null) return;
    if (!recovered.isDone) {
      if (returned !== null) this.addPendingReturn(returned.grantId, returned.amount);
    } else if (recovered.granted > 0n) this.addPendingReturn(recovered.grantId, recovered.granted);
  }

  /** Remembers a refusal of the store: for a while, later requests are refused from memory. */
  remember(refused: Omit<RefusedLease, 'refusals'>): void {
    this.notBeforeMs = Math.max(this.notBeforeMs, this.refusals.add(refused));
  }

  /**
   * Why a request is refused without asking the store; null: it must be asked. `ceiling`: the limit as the request
   * knows it.
   */
  rememberedShortage(need: bigint, nowMs: number, ceiling: bigint | null = null): Shortage | null {
    // A remembered refusal under a lower ceiling is outdated: the principal was reloaded before the notification that
    // its limit was raised.
    if (ceiling !== null && this.refusals.isUnderLess(ceiling)) this.expectRoom(nowMs);
    return this.refusals.shortage(need, this.available(nowMs), nowMs);
  }

  /** The quota may have room again, so its refusals are forgotten. */
  expectRoom(nowMs: number): void {
    this.roomExpectedAtMs = nowMs;
    this.refusals.forget();
    this.notBeforeMs = 0;
  }

  /** A process was short and has told all: the available amount is returned, except the reserved part. */
  revoke(nowMs: number): void {
    if (nowMs - this.shortAtMs >= REVOKED_MS) this.othersReturnSinceMs = nowMs;
    this.shortAtMs = nowMs;
    this.revokedAtMs = nowMs;
    this.returnUnreserved();
  }

  /** Applies to this process, too: when two processes each have a part of what both need, one of them must get all. */
  beginRevocation(revocation: Revocation): void {
    this.revokedAtMs = revocation.beganAtMs;
    this.revocation = revocation;
    this.returnUnreserved();
  }

  /** Once it is sent, the other processes' time to return begins, and new requests wait for what they return. */
  endRevocation(isSent: boolean, nowMs: number): void {
    this.revocation = null;
    if (!isSent) return;
    this.refusals.forgetLast();
    this.revoke(nowMs);
  }

  /**
   * The wallet was frozen or the limit lowered: the available amount is returned now, and held amounts when their
   * requests end, however late. Grants of a rate expire by themselves within seconds.
   */
  withdraw(nowMs: number): void {
    this.revokedAtMs = nowMs;
    this.withdrawLent();
  }

  /** The lease must be renewed: it is idle, or this process may have missed a freeze or a lowered limit. */
  expectRenewal(nowMs: number): void {
    this.isRenewalDue = true;
    this.expectRoom(nowMs);
  }

  /**
   * Withdraws the lease, and refills it at once unless it was empty or idle. Without the refill, a store that goes away
   * again would leave this process with an empty lease.
   */
  renew(nowMs: number): void {
    this.isRenewalDue = false;
    this.wantsRefill ||= this.available(nowMs) > 0n && !this.isIdle(nowMs);
    this.withdrawLent();
  }

  isIdle(nowMs: number): boolean {
    return nowMs - this.lastUsedMs > IDLE_MS && this.available(nowMs) > 0n;
  }

  private withdrawLent(): void {
    this.returnUnreserved();
    if (this.isRate) return;
    this.withdrawals += 1;
    this.grant = { ...this.grant, withdrawals: this.withdrawals };
    // This also returns while a lease request is under way, since its answer may never come.
    this.putBack(this.reserved);
  }

  isWithdrawn({ withdrawals }: Grant): boolean {
    return withdrawals !== this.withdrawals;
  }

  isRevoked(nowMs: number): boolean {
    return nowMs - this.revokedAtMs < REVOKED_MS;
  }

  /** The lease knows of a revocation or a refusal that a new lease of the same quota would not, so it is kept. */
  private isRemembered(nowMs: number): boolean {
    if (this.revocation !== null) return true;
    return this.isRevoked(nowMs) || this.isContended(nowMs) || !this.refusals.isOver(nowMs);
  }

  isContended(nowMs: number): boolean {
    return nowMs - this.shortAtMs < CONTENDED_MS;
  }

  /** To be called after each answer: what it granted may be older than the last revocation or withdrawal. */
  returnIfRevokedOrWithdrawn(nowMs: number): void {
    if (this.isRevoked(nowMs) || this.isWithdrawn(this.grant)) this.returnUnreserved();
  }

  returnUnreserved(): void {
    this.returnAvailable(this.reserved);
  }

  returnExpired(nowMs: number): void {
    if (nowMs >= this.grant.expiresAtMs) this.returnAvailable();
  }

  /** Returns all but `kept`. A lease request under way prevents the return, since its answer may move the grant. */
  returnAvailable(kept = 0n): void {
    if (this.requesting === 'no') this.putBack(kept);
  }

  /** At the end of the process: returns what is available and requests nothing more. */
  returnForGood(): void {
    this.wantsRefill = false;
    this.isRenewalDue = false;
    this.returnAvailable();
  }

  private putBack(kept: bigint): void {
    const { id, available } = this.grant;
    if (available <= kept) return;
    this.grant.available = kept;
    if (id !== null) this.addPendingReturn(id, available - kept);
  }

  addPendingReturn(grantId: string, amount: bigint): void {
    this.pendingReturns.set(grantId, (this.pendingReturns.get(grantId) ?? 0n) + amount);
    // The store will have more after this return, so the next request asks it.
    this.refusals.forgetLast();
  }

  /** Whether calls must be made even if no further request comes. */
  hasCallsDue(): boolean {
    return this.pendingReturns.size > 0 || this.lostCall !== null || this.isRenewalDue || this.wantsRefill;
  }

  /** The lease has nothing and expects nothing, so it can be deleted. */
  isEmpty(nowMs: number): boolean {
    const isUnused = this.held === 0n && this.grant.available === 0n && !this.hasCallsDue();
    const isQuiet = this.waiters.length === 0 && this.requesting === 'no' && this.work === null;
    return isUnused && isQuiet && !this.isRemembered(nowMs) && nowMs >= this.goneUntilMs;
  }
}

function renewalMs(validForMs: number): number {
  return Math.min(RENEWAL_MS_MAX, Math.max(RENEWAL_MS_MIN, validForMs / RENEWAL_PART));
}
