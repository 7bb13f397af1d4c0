// What a lease remembers of the store's refusals: the last refusal, how many there were in a row, and the last refusal
// of a need above the quota's total.

import type { Quota } from '../../../domain/quotas/lease.ts';
import {
  isCertainRefusal,
  REFUSALS_WAITED,
  type RefusedLease,
  RememberedRefusal,
  type Shortage,
} from './remembered-refusal.ts';

/**
 * A row of refusals ends after this long, provided that other processes have some of the quota, which they may return.
 */
const ROW_MS = 2_000;

export class LeaseRefusals {
  /** Refusals in a row that concern every request: `unavailable` and needs above the total do not count. */
  inRow = 0;
  private readonly quota: Quota;
  /** Every refusal of the row was certain (`isCertainRefusal`). */
  private isRowCertain = false;
  private rowEndsMs = Number.NEGATIVE_INFINITY;
  /** null: the store has granted since, or there may be room again. */
  private last: RememberedRefusal | null = null;
  /** The last refusal of a need above the total, which grants and returns do not change. */
  private aboveTotal: RememberedRefusal | null = null;

  constructor(quota: Quota) {
    this.quota = quota;
  }

  /** Remembers a refusal for later requests. Returns the time before which the store is not asked again. */
  add(refused: Omit<RefusedLease, 'refusals'>): number {
    if (refused.total !== null) {
      this.aboveTotal = new RememberedRefusal(this.quota, { ...refused, refusals: 0 });
      return this.aboveTotal.askNotBeforeMs;
    }
    if (refused.reason !== 'unavailable') {
      this.isRowCertain = (this.inRow === 0 || this.isRowCertain) && isCertainRefusal(refused.reason, refused.answer);
      this.inRow += 1;
      this.rowEndsMs = refused.nowMs + ROW_MS;
    }
    this.last = new RememberedRefusal(this.quota, { ...refused, refusals: this.inRow });
    return this.last.askNotBeforeMs;
  }

  /** Why a request is refused without asking the store; null: the store must be asked. */
  shortage(need: bigint, available: bigint, nowMs: number): Shortage | null {
    return this.aboveTotal?.shortage(need, available, nowMs) ?? this.last?.shortage(need, available, nowMs) ?? null;
  }

  isUnderLess(ceiling: bigint): boolean {
    return [this.last, this.aboveTotal].some((refusal) => refusal?.isOfLimitBelow(ceiling) === true);
  }

  isOver(nowMs: number): boolean {
    return [this.last, this.aboveTotal].every((refusal) => refusal?.isOver(nowMs) !== false);
  }

  /** An answer of the store granted what was needed. */
  noteEnough(): void {
    this.inRow = 0;
    this.last = null;
  }

  /** A release in this process has served a waiting request, so later requests wait for a release, too. */
  noteServedHere(): void {
    this.inRow = Math.min(this.inRow, REFUSALS_WAITED - 1);
    this.last = null;
  }

  /** Other processes have some of the quota, so a row does not count that has ended or in which they had none. */
  noteLeasedElsewhere(nowMs: number): void {
    if (this.isRowCertain || nowMs >= this.rowEndsMs) this.inRow = 0;
  }

  /** A return may suffice for the next request, so that request asks the store. */
  forgetLast(): void {
    this.last = null;
  }

  /** The quota's total may have grown. */
  forget(): void {
    this.last = null;
    this.aboveTotal = null;
  }
}
