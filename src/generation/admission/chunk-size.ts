// How much to borrow at a time: enough that most requests find a warm lease, and less the emptier the pool, so that its
// last part is not stranded in one process.

import type { AllowanceKind } from './allowance-store.ts';

/**
 * A lease of money aims to cover this many requests like the present one: each borrowing is a round trip to the
 * database. A judgement, not measured.
 */
const HOLDS_PER_CHUNK = 1_024n;
/** What a pool has is not known before the first borrowing: that one is small. */
const HOLDS_OF_FIRST_CHUNK = 8n;
/** No process borrows more than this part of what is left. */
const PART_OF_AVAILABLE = 8n;
/**
 * A lease covers so many seconds of what is used up, and is renewed when some are left (LOW_WATER_PARTS in
 * allowance.ts): the store may stand still for three seconds in which nobody waits. What is lent of a rate is kept from
 * the other processes of the same minute, so it is less.
 */
const SECONDS_OF_USE = { money: 16n, rate: 6n } as const;
/** Slots of concurrency beside those in use. */
const SLOTS_AHEAD = 4n;
/** A rate with little use: as many requests as may come in a burst. Beyond it a lease follows the observed use. */
const HOLDS_OF_SLOW_RATE = 4n;
const USE_WINDOW_MS = 1_000;

export class ChunkSize {
  private readonly kind: AllowanceKind;
  /** Borrow no more than this ahead; 0: nothing is known yet. */
  private ceiling = 0n;
  private windowStartMs = 0;
  private usedInWindow = 0n;
  private usedPerSecond = 0n;

  constructor(kind: AllowanceKind) {
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

  private useOfASecond(): bigint {
    return biggest(this.usedPerSecond, this.usedInWindow);
  }

  /** How much to borrow for requests like one of `need`. */
  next(need: bigint, held: bigint): bigint {
    switch (this.kind) {
      case 'credit':
      case 'budget':
        return this.bounded(
          biggest(need * HOLDS_PER_CHUNK, this.useOfASecond() * SECONDS_OF_USE.money),
          need * HOLDS_OF_FIRST_CHUNK,
        );
      case 'concurrent_requests':
        return this.bounded(biggest(SLOTS_AHEAD, held / PART_OF_AVAILABLE), need);
      case 'requests_per_minute':
      case 'tokens_per_minute':
        return this.bounded(biggest(this.useOfASecond() * SECONDS_OF_USE.rate, need * HOLDS_OF_SLOW_RATE), need);
    }
  }

  /** Learns what is left from the store's last answer. */
  learn(available: bigint): void {
    this.ceiling = biggest(1n, available / PART_OF_AVAILABLE);
  }

  private bounded(aim: bigint, first: bigint): bigint {
    const ceiling = this.ceiling === 0n ? first : this.ceiling;
    return aim < ceiling ? aim : ceiling;
  }
}

export function biggest(first: bigint, second: bigint): bigint {
  return first > second ? first : second;
}
