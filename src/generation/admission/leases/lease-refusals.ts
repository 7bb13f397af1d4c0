// What a lease remembers of the store's refusals: the last one, how many there were in a row, and the last one of more
// than there is in all.

import type { Quota } from '../../../domain/quotas/lease.ts';
import {
  isCertainRefusal,
  REFUSALS_WAITED,
  type RefusedLease,
  RememberedRefusal,
  type Shortage,
} from './remembered-refusal.ts';

/** After so long without a refusal the next one is the first of its row: what others have may come back again. */
const ROW_MS = 2_000;

export class LeaseRefusals {
  /** Refusals that concern every request: not `unavailable`, and not that one needs more than the whole quota. */
  inRow = 0;
  private readonly quota: Quota;
  /** Nobody else had anything of it in any of the row. */
  private isRowCertain = false;
  private rowEndsMs = Number.NEGATIVE_INFINITY;
  /** null: the store has granted since, or there may be room again. */
  private last: RememberedRefusal | null = null;
  /** It stays true when something is granted or returned. */
  private moreThanAll: RememberedRefusal | null = null;

  constructor(quota: Quota) {
    this.quota = quota;
  }

  /** Those that come are told the same for a while. Returns until when who must ask the store waits. */
  add(refused: Omit<RefusedLease, 'refusals'>): number {
    if (refused.most !== null) {
      this.moreThanAll = new RememberedRefusal(this.quota, { ...refused, refusals: 0 });
      return this.moreThanAll.askNotBeforeMs;
    }
    if (refused.reason !== 'unavailable') {
      this.isRowCertain = (this.inRow === 0 || this.isRowCertain) && isCertainRefusal(refused.reason, refused.answer);
      this.inRow += 1;
      this.rowEndsMs = refused.nowMs + ROW_MS;
    }
    this.last = new RememberedRefusal(this.quota, { ...refused, refusals: this.inRow });
    return this.last.askNotBeforeMs;
  }

  /** The refusal of a request without asking the store; null: it must be asked. */
  shortage(need: bigint, available: bigint, nowMs: number): Shortage | null {
    return this.moreThanAll?.shortage(need, available, nowMs) ?? this.last?.shortage(need, available, nowMs) ?? null;
  }

  isUnderLess(ceiling: bigint): boolean {
    return [this.last, this.moreThanAll].some((refusal) => refusal?.isOfLimitBelow(ceiling) === true);
  }

  isOver(nowMs: number): boolean {
    return [this.last, this.moreThanAll].every((refusal) => refusal?.isOver(nowMs) !== false);
  }

  /** An answer brought what was needed. */
  noteEnough(): void {
    this.inRow = 0;
    this.last = null;
  }

  /** Without the store: what this process releases keeps those that come waiting for it. */
  noteServedHere(): void {
    this.inRow = Math.min(this.inRow, REFUSALS_WAITED - 1);
    this.last = null;
  }

  /** Others have some of it: that they did not return it long ago, or had none, says nothing. */
  noteLeasedElsewhere(nowMs: number): void {
    if (this.isRowCertain || nowMs >= this.rowEndsMs) this.inRow = 0;
  }

  /** What is returned may suffice: who comes asks the store after it. */
  forgetLast(): void {
    this.last = null;
  }

  /** There may be more than there was in all. */
  forget(): void {
    this.last = null;
    this.moreThanAll = null;
  }
}
