// What this process has of one wallet or limit: free, held by requests, and owed back to the store. State alone, no
// calls: allowance-leases.ts drives it.
//
//   store --take--> free --draw--> held --release--> used (leaves with the record, or ages out) + rest back to free
//         <--give back-- owed <--- expired, idle, or recalled by another process

import { assert } from '../../platform/assert.ts';
import type { LendingAnswer, LendingWish, Pool } from './allowance-store.ts';
import { biggest, ChunkSize } from './chunk-size.ts';

/** One lending of the store, or several that it keeps under one id. */
export interface Grant {
  /**
   * null: the store's answer was lost, so nobody knows under which id its amounts lie; nothing of it is used or given
   * back any more.
   */
  id: string | null;
  free: bigint;
  readonly expiresAtMs: number;
}

/** What one request has taken. */
export interface Draw {
  readonly allowance: Allowance;
  /** null: it took nothing, since it needed nothing or the limit is gone. */
  readonly grant: Grant | null;
  readonly amount: bigint;
}

/** A request that waits for the store. */
export interface Waiter {
  readonly need: bigint;
  /** How many borrowings had been sent when it came: only a later one speaks for it. */
  readonly cameAtTake: number;
  readonly cameAtMs: number;
  /** Called with null when it may draw again, else with why it cannot. */
  resume(shortage: Shortage | null): void;
}

/** Why a request cannot be served. */
export interface Shortage {
  readonly pool: Pool;
  /** `short`: the pool has less than is needed. */
  readonly reason: 'short' | 'frozen' | 'unavailable';
  /** Up to this much could be drawn at once. */
  readonly within: bigint;
  readonly ceiling: bigint | null;
  readonly retryAfterMs: number | null;
}

/** Of a lease: three or four seconds of use (SECONDS_OF_USE in chunk-size.ts). */
const LOW_WATER_PARTS = { lease: 4n, rate: 2n } as const;
/**
 * A grant that is in use is renewed when this part of its time is left, within these bounds, so that the next request
 * finds a warm one.
 */
const RENEWAL_PART = 4;
const RENEWAL_MS_MIN = 300;
const RENEWAL_MS_MAX = 3_000;
/** For so long after a recall whatever comes free goes back at once, and nothing is borrowed ahead. */
const CALLED_BACK_MS = 2_000;
/** A limit that is gone is asked for again after this; by then the principals that name it have been read anew. */
const GONE_MS = 5_000;
/** The store abandons a statement within this time, so afterwards its figures are certain. */
const DOUBT_MS = 60_000;

export class Allowance {
  readonly pool: Pool;
  readonly chunk: ChunkSize;
  readonly waiters: Waiter[] = [];
  /** By grant. */
  readonly owed = new Map<string, bigint>();
  held = 0n;
  /**
   * Of what is free: found here by requests that wait for something further on. It is theirs until they are served or
   * refused, also when it is called back.
   */
  reserved = 0n;
  lastUsedMs: number;
  /** Borrowings sent. */
  takes = 0;
  /** The next borrowing waits until then: those before it came back short. */
  notBeforeMs = 0;
  shortTakes = 0;
  /** Since it was last refused. */
  hasLookedAgain = false;
  aheadNotBeforeMs = 0;
  wantsAhead = false;
  /** When all that hold some were last asked for it, by whichever process. */
  recalledAtMs = Number.NEGATIVE_INFINITY;
  private grant: Grant = { id: null, free: 0n, expiresAtMs: 0 };
  /** A borrowing is under way; `moving`: the present grant is part of it. */
  private taking = false;
  private moving = false;
  private lastNeed = 1n;
  /** Less free than this: borrow ahead. */
  private lowWater = 0n;
  private renewAtMs = Number.POSITIVE_INFINITY;
  private calledBackUntilMs = 0;
  private goneUntilMs = 0;
  private doubtUntilMs = 0;

  constructor(pool: Pool, nowMs: number) {
    this.pool = pool;
    this.chunk = new ChunkSize(pool.kind);
    this.lastUsedMs = nowMs;
  }

  free(nowMs: number): bigint {
    return nowMs < this.grant.expiresAtMs ? this.grant.free : 0n;
  }

  /** The warm path. null when what is free does not suffice. */
  draw(amount: bigint, nowMs: number): Draw | null {
    this.lastUsedMs = nowMs;
    if (amount === 0n || nowMs < this.goneUntilMs) return { allowance: this, grant: null, amount: 0n };
    const { grant } = this;
    if (grant.free < amount || nowMs >= grant.expiresAtMs) return null;
    grant.free -= amount;
    this.held += amount;
    this.lastNeed = amount;
    // Of a rate all that is drawn is used up; of money, what its requests turn out to cost.
    if (this.isRate) this.chunk.noteUse(amount, nowMs);
    return { allowance: this, grant, amount };
  }

  canDraw(amount: bigint, nowMs: number): boolean {
    return this.free(nowMs) >= amount || nowMs < this.goneUntilMs;
  }

  /** Ends a draw of which `used` is gone for good. */
  release({ grant, amount }: Draw, used: bigint, nowMs: number): void {
    if (grant === null) return;
    assert(used >= 0n && used <= amount && amount <= this.held, 'a draw is released once, with at most what it took');
    this.held -= amount;
    if (used > 0n && !this.isRate) this.chunk.noteUse(used, nowMs);
    const rest = amount - used;
    if (grant.id === null || rest === 0n) return;
    // While the present grant moves, what was drawn of it before lies under its old id, and what is drawn of it since
    // under the new one.
    const isPresent = grant === this.grant || (!this.moving && grant.id === this.grant.id);
    if (isPresent) this.grant.free += rest;
    else this.owe(grant.id, rest);
  }

  /** It is time to borrow ahead. */
  isLow(nowMs: number): boolean {
    if (this.taking || nowMs < this.calledBackUntilMs || nowMs < this.aheadNotBeforeMs) return false;
    return this.grant.free < this.lowWater || nowMs > this.renewAtMs;
  }

  /**
   * The wish for the next borrowing, which is under way from here on: for those that wait, else ahead for those to
   * come.
   */
  beginTake(nowMs: number): LendingWish {
    this.taking = true;
    this.takes += 1;
    const free = this.free(nowMs);
    const least = this.leastNeed();
    // When to borrow ahead follows from it as soon as the answer is here, before anything is drawn.
    if (least !== null) this.lastNeed = least;
    const minimum = least === null ? this.lastNeed : biggest(1n, least - free);
    const ahead = this.isCalledBack(nowMs) ? 0n : this.chunk.next(least ?? this.lastNeed, this.held);
    const amount = biggest(biggest(minimum, this.sumOfNeeds() - free), ahead);
    const { id } = this.grant;
    if (!this.isRate || free === 0n || id === null) return { amount, minimum, present: null };
    this.moving = true;
    this.grant = { ...this.grant };
    return { amount, minimum, present: { grantId: id, free } };
  }

  /** Of those that wait; null when nobody does. */
  leastNeed(): bigint | null {
    let least: bigint | null = null;
    for (const { need } of this.waiters) if (least === null || need < least) least = need;
    return least;
  }

  private sumOfNeeds(): bigint {
    let sum = 0n;
    for (const { need } of this.waiters) sum += need;
    return sum;
  }

  /** Rates have a new grant with each borrowing; the others keep theirs, or have one for each period. */
  get isRate(): boolean {
    return this.pool.kind === 'requests_per_minute' || this.pool.kind === 'tokens_per_minute';
  }

  endTake(answer: LendingAnswer, sentAtMs: number): void {
    this.taking = false;
    this.moving = false;
    const { granted, grantId, validForMs } = answer;
    const expiresAtMs = validForMs === null ? Number.POSITIVE_INFINITY : sentAtMs + validForMs;
    if (granted > 0n || answer.presentMoved)
      this.renewAtMs = validForMs === null ? expiresAtMs : expiresAtMs - renewalMs(validForMs);
    if (answer.gone) this.goneUntilMs = sentAtMs + GONE_MS;
    this.chunk.learn(answer.available);
    this.lowWater =
      this.chunk.next(this.lastNeed, this.held) / (this.isRate ? LOW_WATER_PARTS.rate : LOW_WATER_PARTS.lease);
    if (answer.presentMoved) this.moveGrant(grantId, granted, expiresAtMs);
    else if (granted > 0n) this.addGrant(grantId, granted, expiresAtMs);
    this.settleDoubt(answer, sentAtMs);
  }

  /** The draws that were made of the present grant while its answer was under way lie under the new id as well. */
  private moveGrant(grantId: string, granted: bigint, expiresAtMs: number): void {
    const moved = this.grant;
    moved.id = grantId;
    this.grant = { id: grantId, free: moved.free + granted, expiresAtMs };
    moved.free = 0n;
  }

  private addGrant(grantId: string, granted: bigint, expiresAtMs: number): void {
    const isSame = this.grant.id === grantId;
    if (!isSame) this.oweFree();
    this.grant = { id: grantId, free: (isSame ? this.grant.free : 0n) + granted, expiresAtMs };
  }

  /**
   * What a lost give-back has left behind in the store is known once the store says how much it believes to be here.
   * For concurrency alone: of the others an unknown part is used and not posted yet.
   */
  private settleDoubt({ ceiling, available, leasedElsewhere, grantId }: LendingAnswer, nowMs: number): void {
    if (this.pool.kind !== 'concurrent_requests' || ceiling === null || nowMs < this.doubtUntilMs) return;
    const lent = ceiling - available - leasedElsewhere;
    const known = this.held + this.grant.free + this.totalOwed();
    if (lent > known) this.owe(grantId, lent - known);
  }

  /** The answer did not come. `wasSent`: the store may have acted on the wish. */
  loseTake(wasSent: boolean, nowMs: number): void {
    const hadPresent = this.moving;
    this.taking = false;
    this.moving = false;
    if (!wasSent) return;
    this.noteDoubt(nowMs);
    // Under which grant its free part lies now, only the store knows.
    if (hadPresent) {
      this.grant.id = null;
      this.grant.free = 0n;
    }
  }

  noteDoubt(nowMs: number): void {
    this.doubtUntilMs = nowMs + DOUBT_MS;
  }

  /** A borrowing brought what was needed. */
  noteEnough(): void {
    this.shortTakes = 0;
    this.hasLookedAgain = false;
  }

  /** Some process is short of it. */
  callBack(nowMs: number): void {
    this.recalledAtMs = nowMs;
    this.calledBackUntilMs = nowMs + CALLED_BACK_MS;
  }

  isCalledBack(nowMs: number): boolean {
    return nowMs < this.calledBackUntilMs;
  }

  /** Moves what is free to what is owed; not while a borrowing is under way, which may take it over. */
  oweFree(but = 0n): void {
    const { id, free } = this.grant;
    if (this.taking || free <= but) return;
    this.grant.free = but;
    if (id !== null) this.owe(id, free - but);
  }

  /** What was called back and comes free goes back, but for what is about to be drawn. */
  oweUnreserved(): void {
    this.oweFree(this.reserved);
  }

  oweExpired(nowMs: number): void {
    if (nowMs >= this.grant.expiresAtMs) this.oweFree();
  }

  owe(grantId: string, amount: bigint): void {
    this.owed.set(grantId, (this.owed.get(grantId) ?? 0n) + amount);
  }

  isEmpty(nowMs: number): boolean {
    const isQuiet =
      this.waiters.length === 0 && !this.taking && nowMs >= this.calledBackUntilMs && nowMs >= this.goneUntilMs;
    // Forgotten while in doubt, it would take a lost borrowing whose answer is late, and goes back then, for something
    // left behind.
    return isQuiet && nowMs >= this.doubtUntilMs && this.held === 0n && this.owed.size === 0 && this.grant.free === 0n;
  }

  private totalOwed(): bigint {
    let total = 0n;
    for (const amount of this.owed.values()) total += amount;
    return total;
  }
}

function renewalMs(validForMs: number): number {
  return Math.min(RENEWAL_MS_MAX, Math.max(RENEWAL_MS_MIN, validForMs / RENEWAL_PART));
}
