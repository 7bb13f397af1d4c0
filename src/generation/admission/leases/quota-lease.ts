// This process's lease of one wallet or limit: available, held by open requests, pending return to the store. State
// alone: lease-calls.ts makes the calls, quota-leases.ts the holds.
//
//                      hold                       release, unused part
//   store ──grant──► available ──► held by a request ─────────────► available again
//     ▲                  │                │ release, used part: leaves with the record, or ages out of the minute
//     │                  │ idle, expired, or revoked because another process is short
//     └──── returned ◄── pending return
//
// The amount of a call whose answer was lost is neither used nor returned until the store has said what became of it.
// What was lent before the wallet was frozen or the limit lowered is withdrawn: what is released of it is returned.

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
import { leastOf, sumOf, type Waiter } from './waiter.ts';

/** What the store granted under one id. */
export interface Grant {
  /** null: nothing is granted yet; or, of a rate, the answer that named the new id was lost. */
  id: string | null;
  available: bigint;
  readonly expiresAtMs: number;
  /** How often what was lent had been withdrawn when this was granted (`withdraw`). */
  readonly withdrawals: number;
}

/** What one request holds of one lease, until its end. */
export interface Hold {
  readonly lease: QuotaLease;
  /** null: nothing is held, since nothing was needed or the limit is gone. */
  readonly grant: Grant | null;
  readonly amount: bigint;
}

/** A lease is refilled when this part of its size is left: three or four seconds of use (SECONDS_OF_USE). */
const LOW_WATER_PARTS = { lease: 4n, rate: 2n } as const;
/**
 * A grant that is in use is renewed when this part of its time is left, within these bounds, so that the next request
 * finds one that is valid.
 */
const RENEWAL_PART = 4;
const RENEWAL_MS_MIN = 300;
const RENEWAL_MS_MAX = 3_000;
/** After a revocation, what is released is returned at once and no refill is asked for, for this long. */
const REVOKED_MS = 2_000;
/** For this long after some process was short no more is leased ahead than is used in a second. */
export const CONTENDED_MS = 60_000;
/** What nobody has asked for so long goes back. */
const IDLE_MS = 15_000;
/** A limit that is gone is asked for again after this; by then the principals that name it have been read anew. */
const GONE_MS = 5_000;

export class QuotaLease {
  readonly quota: Quota;
  readonly size: LeaseSize;
  readonly refusals: LeaseRefusals;
  readonly waiters: Waiter[] = [];
  /** What is to be returned to the store, by grant id. */
  readonly pendingReturns = new Map<string, bigint>();
  /** No other call is made for this lease until the store has said what became of it. */
  lostCall: LostCall | null = null;
  held = 0n;
  /**
   * The part of what is available that waiting requests have found here while they wait for another lease. It stays
   * theirs until they are served or refused, also when this lease is revoked.
   */
  reserved = 0n;
  lastUsedMs: number;
  requestsSent = 0;
  /** The loop that makes the calls of this lease, one after the other (lease-calls.ts); null: nothing runs. */
  work: Promise<void> | null = null;
  /** The next lease request waits until then: the last ones were answered with too little, or met a lock. */
  notBeforeMs = 0;
  wantsRefill = false;
  /** All is to be leased anew (`renew`): by the next request, or when its turn comes. */
  isRenewalDue = false;
  refillNotBeforeMs = 0;
  /** When it was last heard that there may be room again: an answer to what was asked before says nothing. */
  roomHeardAtMs = Number.NEGATIVE_INFINITY;
  /** When all processes were last to return what they have available. */
  private revokedAtMs = Number.NEGATIVE_INFINITY;
  /** When a process that was short last asked all others: another one, or this. */
  shortAtMs = Number.NEGATIVE_INFINITY;
  /** What this process asks of the others, which is not sent yet. */
  revocation: Revocation | null = null;
  private withdrawals = 0;
  /** How many there were when the lease request under way was sent: its answer may be older than the last one. */
  private withdrawalsWhenSent = 0;
  private grant: Grant = { id: null, available: 0n, expiresAtMs: 0, withdrawals: 0 };
  /** `moving`: a lease request is under way that moves what is available of the present grant to the next one. */
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
    // All that is held of a rate counts as used; of money only what the request turns out to cost.
    if (this.isRate) this.size.noteUse(amount, nowMs);
    return { lease: this, grant, amount };
  }

  canHold(amount: bigint, nowMs: number): boolean {
    return this.available(nowMs) >= amount || nowMs < this.goneUntilMs;
  }

  /** Ends a hold, of which `used` is gone for good. */
  release({ grant, amount }: Hold, used: bigint, nowMs: number): void {
    if (grant === null) return;
    assert(used >= 0n && used <= amount && amount <= this.held, 'a hold is released once, and uses at most its amount');
    this.held -= amount;
    if (used > 0n && !this.isRate) this.size.noteUse(used, nowMs);
    const rest = amount - used;
    if (grant.id === null || rest === 0n) return;
    // While the present grant moves, holds from before the request belong to its old id, later ones to the new id.
    const isSame = grant === this.grant || (this.requesting !== 'moving' && grant.id === this.grant.id);
    const isPresent = isSame && !this.isWithdrawn(grant);
    if (isPresent) this.grant.available += rest;
    else this.addPendingReturn(grant.id, rest);
  }

  needsRefill(nowMs: number): boolean {
    if (this.requesting !== 'no' || this.isRevoked(nowMs) || nowMs < this.refillNotBeforeMs) return false;
    return this.grant.available < this.lowWater || nowMs > this.renewAtMs;
  }

  /** The next lease request, under way from here on: for those that wait, else a refill for those to come. */
  beginRequest(nowMs: number): LeaseRequest {
    this.requesting = 'yes';
    this.requestsSent += 1;
    this.withdrawalsWhenSent = this.withdrawals;
    const available = this.available(nowMs);
    const least = this.waiters.length === 0 ? null : leastOf(this.waiters);
    // The answer decides by this when to refill, before anything of it is held.
    if (least !== null) this.lastNeed = least;
    const minimum = least === null ? this.lastNeed : biggest(1n, least - available);
    const ahead = this.isRevoked(nowMs) ? 0n : this.size.next(this.lastNeed, this.held, this.isContended(nowMs));
    const amount = biggest(biggest(minimum, sumOf(this.waiters) - available), ahead);
    const { id } = this.grant;
    if (!this.isRate || available === 0n || id === null) return { amount, minimum, present: null };
    this.requesting = 'moving';
    // Holds from here on refer to a grant object of their own, which gets the new id with the answer.
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

  /** Holds made of the present grant while the request was under way belong to the new id as well. */
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

  /** The request brought nothing. `isLost`: the store may have acted on it. */
  failRequest(isLost: boolean): void {
    const wasMoving = this.requesting === 'moving';
    this.requesting = 'no';
    // Only the store knows under which id the available part is kept now.
    if (!isLost || !wasMoving) return;
    this.grant.id = null;
    this.grant.available = 0n;
  }

  /** A call was sent whose answer never came. What it leaves behind of a rate ages out with the minute. */
  loseCall(lost: LostCall): void {
    if (!this.isRate) this.lostCall = lost;
  }

  /**
   * What the lost call was granted is returned, and so is what it did not take back. null: the store refuses to say; it
   * stays leased until the epoch is closed.
   */
  applyRecovered(recovered: RecoveredCall | null): void {
    const returned = this.lostCall?.returned ?? null;
    this.lostCall = null;
    if (recovered === null) return;
    if (!recovered.isDone) {
      if (returned !== null) this.addPendingReturn(returned.grantId, returned.amount);
    } else if (recovered.granted > 0n) this.addPendingReturn(recovered.grantId, recovered.granted);
  }

  /** The store has refused: those that come are told the same for a while. */
  remember(refused: Omit<RefusedLease, 'refusals'>): void {
    this.notBeforeMs = Math.max(this.notBeforeMs, this.refusals.add(refused));
  }

  /** The refusal of a request without asking the store; null: it must be asked. */
  rememberedShortage(need: bigint, nowMs: number, ceiling: bigint | null = null): Shortage | null {
    // The principal was read anew before word came that the limit was raised.
    if (ceiling !== null && this.refusals.isUnderLess(ceiling)) this.hearRoom(nowMs);
    return this.refusals.shortage(need, this.available(nowMs), nowMs);
  }

  /** There may be room again. */
  hearRoom(nowMs: number): void {
    this.roomHeardAtMs = nowMs;
    this.refusals.forget();
    this.notBeforeMs = 0;
  }

  /** Another process is short: what is available is returned, but for what is about to be held. */
  revoke(nowMs: number): void {
    this.shortAtMs = nowMs;
    this.revokedAtMs = nowMs;
    this.returnUnreserved();
  }

  /** It holds for this process as well: of two that each have a part of what both need, one must get all. */
  beginRevocation(revocation: Revocation): void {
    this.revokedAtMs = revocation.beganAtMs;
    this.revocation = revocation;
    this.returnUnreserved();
  }

  /** Where it was sent, the others have their time to return what is theirs from now on, and who comes waits for it. */
  endRevocation(isSent: boolean, nowMs: number): void {
    this.revocation = null;
    if (!isSent) return;
    this.shortAtMs = nowMs;
    this.revokedAtMs = nowMs;
    this.refusals.forgetLast();
    this.returnUnreserved();
  }

  /**
   * The wallet is frozen, or the limit lower: what is available is returned, and what requests hold is for nobody else
   * when they end, however late. Grants of a rate end by themselves, in seconds.
   */
  withdraw(nowMs: number): void {
    this.revokedAtMs = nowMs;
    this.withdrawLent();
  }

  /** That may be so, and nobody has heard of it; or it is idle. */
  expectRenewal(nowMs: number): void {
    this.isRenewalDue = true;
    this.hearRoom(nowMs);
  }

  /**
   * What is ready for requests, and not idle, is leased anew at once: a store that goes away once more would else find
   * the lease used up.
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
    // Also while a lease request is under way, whose answer may never come.
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

  private isContended(nowMs: number): boolean {
    return nowMs - this.shortAtMs < CONTENDED_MS;
  }

  /** To be called after an answer: what it brought may have been lent before the last withdrawal. */
  returnIfTakenBack(nowMs: number): void {
    if (this.isRevoked(nowMs) || this.isWithdrawn(this.grant)) this.returnUnreserved();
  }

  returnUnreserved(): void {
    this.returnAvailable(this.reserved);
  }

  returnExpired(nowMs: number): void {
    if (nowMs >= this.grant.expiresAtMs) this.returnAvailable();
  }

  /** Not while a lease request is under way, whose answer may move the grant. */
  returnAvailable(kept = 0n): void {
    if (this.requesting === 'no') this.putBack(kept);
  }

  /** At the end of the process, which needs nothing more. */
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
    // Who comes asks the store after it has been returned.
    this.refusals.forgetLast();
  }

  /** Whoever comes, or does not. */
  hasCallsDue(): boolean {
    return this.pendingReturns.size > 0 || this.lostCall !== null || this.isRenewalDue || this.wantsRefill;
  }

  /** Nothing of it is left or expected, so that it can be forgotten. */
  isEmpty(nowMs: number): boolean {
    const isUnused = this.held === 0n && this.grant.available === 0n && !this.hasCallsDue();
    const isQuiet = this.waiters.length === 0 && this.requesting === 'no' && this.work === null;
    return isUnused && isQuiet && !this.isRemembered(nowMs) && nowMs >= this.goneUntilMs;
  }
}

function renewalMs(validForMs: number): number {
  return Math.min(RENEWAL_MS_MAX, Math.max(RENEWAL_MS_MIN, validForMs / RENEWAL_PART));
}
