// How much to lease at a time: enough that most requests find it available in memory, and less as the quota runs out,
// so that its last part is not stranded in one process.

import type { QuotaKind } from '../../../domain/quotas/lease.ts';

/**
 * A lease of money aims to cover this many requests like the present one: each lease request is a round trip to the
 * database. A judgement, not measured.
 */
const HOLDS_PER_LEASE = 1_024n;
/** What is left of a quota is not known before the first answer, so the first lease is small. */
const HOLDS_OF_FIRST_LEASE = 8n;
/** No process asks for more than this part of what is left. */
const PART_OF_AVAILABLE = 8n;
/**
 * A lease covers this many seconds of use, and is refilled when some of them are left (LOW_WATER_PARTS in
 * quota-lease.ts): the store may stand still for three seconds before a request waits. A lease of a rate covers less,
 * since what one process has leased is missing to the others in the same minute.
 */
const SECONDS_OF_USE = { money: 16n, rate: 6n } as const;
/** Slots of concurrency leased ahead, beside those in use. */
const SLOTS_AHEAD = 4n;
/**
 * A rate with little use is leased for this many requests, as many as may come in a burst. Otherwise a lease follows
 * the observed use.
 */
const HOLDS_OF_SLOW_RATE = 4n;
const SHORT_GRANT_MS = 2_000;
const USE_WINDOW_MS = 1_000;

export class LeaseSize {
  private readonly kind: QuotaKind;
  /** No more than this is leased ahead; 0: no answer has said yet what is left. */
  private sizeMax = 0n;
  /**
   * Grants of this rate expire within SHORT_GRANT_MS, and what this process does not use by then was missing to the
   * others.
   */
  private isShort = false;
  private windowStartMs = 0;
  private usedInWindow = 0n;
  private usedPerSecond = 0n;

  constructor(kind: QuotaKind) {
    this.kind = kind;
  }

  noteUse(amount: bigint, nowMs: number): void {
    if (nowMs - this.windowStartMs >= USE_WINDOW_MS) {
      const isNext = nowMs - this.windowStartMs < 2 * USE_WINDOW_MS;
      this.usedPerSecond = isNext ? this.usedInWindow : 0n;
      this.usedInWindow = 0n;
      this.windowStartMs = nowMs;
    }
    this.usedInWindow += amount;
  }

  private perSecond(): bigint {
    return biggest(this.usedPerSecond, this.usedInWindow);
  }

  /**
   * How much to lease for requests like one of `need`. `contended`: a process was short of the quota within
   * CONTENDED_MS.
   */
  next(need: bigint, held: bigint, contended: boolean): bigint {
    switch (this.kind) {
      case 'credit':
      case 'budget':
        if (contended) return this.bounded(biggest(need, this.perSecond()), need);
        return this.bounded(
          biggest(need * HOLDS_PER_LEASE, this.perSecond() * SECONDS_OF_USE.money),
          need * HOLDS_OF_FIRST_LEASE,
        );
      case 'concurrent_requests':
        return this.bounded(biggest(SLOTS_AHEAD, held / PART_OF_AVAILABLE), need);
      case 'requests_per_minute':
      case 'tokens_per_minute':
        return this.bounded(
          this.isShort
            ? biggest(this.perSecond(), need)
            : biggest(this.perSecond() * SECONDS_OF_USE.rate, need * HOLDS_OF_SLOW_RATE),
          need,
        );
    }
  }

  /** Learns from the store's last answer how much is left, and how long its grant is valid (null: without end). */
  learn(available: bigint, validForMs: number | null): void {
    if (validForMs !== null) this.isShort = validForMs <= SHORT_GRANT_MS;
    this.sizeMax = biggest(1n, available / PART_OF_AVAILABLE);
  }

  private bounded(aim: bigint, first: bigint): bigint {
    const sizeMax = this.sizeMax === 0n ? first : this.sizeMax;
    return aim < sizeMax ? aim : sizeMax;
  }
}

export function biggest(first: bigint, second: bigint): bigint {
  return first > second ? first : second;
}
