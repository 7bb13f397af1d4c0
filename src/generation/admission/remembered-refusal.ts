// What the store's last refusal says about requests to come: while it holds they are refused from memory, and the
// database is not asked only to say no again. It holds until room can come from where this process would not hear of
// it, and no longer than the pauses here: docs/money-and-limits.md says what that makes of a refusal.

import type { LeaseAnswer, Quota, QuotaKind } from '../../domain/quotas/lease.ts';

/** Why a request cannot be served. */
export interface Shortage {
  readonly quota: Quota;
  /** `short`: less is left of the quota than the request needs. `unavailable`: nobody knows whether there is enough. */
  readonly reason: 'short' | 'frozen' | 'unavailable';
  /** A request that needs no more than this could be served. */
  readonly within: bigint;
  readonly ceiling: bigint | null;
  readonly retryAfterMs: number | null;
}

/**
 * Others have some of it, and may have less at any time: the store is asked again after a pause that is doubled with
 * each refusal in a row. Requests wait for short ones, and are refused in long ones.
 */
const PAUSE = { firstMs: 5, times: 2, maxMs: 1_000 } as const;
const WAITED_MS_MAX = 160;
/** So many refusals in a row are followed by a pause that requests wait for. */
export const REFUSALS_WAITED = 1 + Math.log2(WAITED_MS_MAX / PAUSE.firstMs);
/**
 * Nobody else has anything of it, or it is frozen: room comes with a change of the wallet or limit, which every process
 * is told of. Asked again all the same, should that not have been heard.
 */
const CERTAIN_PAUSE = { firstMs: 40, times: 4, maxMs: 30_000 } as const;
/** Nobody knows: the others could not be asked in time. Once they are, this is over. */
const UNAVAILABLE_MS = 300;
/** More than there is in all, wherever it is: the sum grows by changes that every process is told of, or not heard. */
const MORE_THAN_ALL_MS = 1_000;
/** A rate has room with a new second, and processes return within one what they have not used of the one before. */
const SECOND_MS = 1_000;
/** After so many refusals with nothing of it elsewhere, a rate has no room before the moment that the store names. */
const REFUSALS_UNTIL_CERTAIN = 3;

export interface RefusedLease {
  readonly answer: LeaseAnswer;
  readonly reason: Shortage['reason'];
  /** The least that was refused. */
  readonly need: bigint;
  /** Only more than there is in all, wherever it is, was refused, and this is how much there is; else null. */
  readonly most: bigint | null;
  /** How often in a row the store has refused. */
  readonly refusals: number;
  readonly nowMs: number;
}

export class RememberedRefusal {
  /** Those that come later than the ones that were refused and must ask the store wait until then. */
  readonly askNotBeforeMs: number;
  private readonly quota: Quota;
  private readonly refused: RefusedLease;
  /** For as much as this or more, and for less. */
  private readonly need: bigint;
  private readonly untilMs: number;
  private readonly lessUntilMs: number;

  constructor(quota: Quota, refused: RefusedLease) {
    this.quota = quota;
    this.refused = refused;
    this.need = refused.most === null ? refused.need : refused.most + 1n;
    const pause = pauseAfter(quota.kind, refused);
    this.untilMs = refused.nowMs + pause.refusedMs;
    this.lessUntilMs = refused.nowMs + pause.lessRefusedMs;
    this.askNotBeforeMs = refused.nowMs + pause.waitedMs;
  }

  /** Why a request with this need is refused; null: the store must be asked. `available` here, without the store. */
  shortage(need: bigint, available: bigint, nowMs: number): Shortage | null {
    const { answer, reason, most } = this.refused;
    if (nowMs >= (need >= this.need ? this.untilMs : this.lessUntilMs)) return null;
    const within = most ?? available + answer.available;
    if (reason !== 'frozen' && need <= within) return null;
    const { ceiling, retryAfterMs } = answer;
    const elapsedMs = nowMs - this.refused.nowMs;
    return {
      quota: this.quota,
      reason,
      within,
      ceiling,
      retryAfterMs: retryAfterMs === null ? null : Math.max(0, retryAfterMs - elapsedMs),
    };
  }

  isOfLimitBelow(ceiling: bigint): boolean {
    const { answer } = this.refused;
    return answer.ceiling !== null && answer.ceiling < ceiling;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.untilMs;
  }
}

interface Pause {
  /** For so long requests are refused; less for those that need less than was refused. */
  readonly refusedMs: number;
  readonly lessRefusedMs: number;
  readonly waitedMs: number;
}

function pauseAfter(kind: QuotaKind, refused: RefusedLease): Pause {
  if (refused.reason === 'unavailable')
    return { refusedMs: UNAVAILABLE_MS, lessRefusedMs: UNAVAILABLE_MS, waitedMs: 0 };
  if (refused.most === null) return isRate(kind) ? pauseOfRate(kind, refused) : pauseOf(refused);
  // What is less was not refused, and no pause is made for it.
  const refusedMs = isRate(kind) ? pauseOfRate(kind, refused).lessRefusedMs : MORE_THAN_ALL_MS;
  return { refusedMs, lessRefusedMs: 0, waitedMs: 0 };
}

/** Of a wallet, a budget, or places; of a budget until its period ends at most. */
function pauseOf({ answer, reason, refusals }: RefusedLease): Pause {
  const isCertain = reason === 'frozen' || answer.leasedElsewhere === 0n;
  const { firstMs, times, maxMs } = isCertain ? CERTAIN_PAUSE : PAUSE;
  const pauseMs = Math.min(maxMs, firstMs * times ** (refusals - 1), answer.retryAfterMs ?? maxMs);
  const refusedMs = isCertain || refusals > REFUSALS_WAITED ? pauseMs : 0;
  return { refusedMs, lessRefusedMs: refusedMs, waitedMs: isCertain ? 0 : Math.min(pauseMs, WAITED_MS_MAX) };
}

function pauseOfRate(kind: QuotaKind, { answer, refusals }: RefusedLease): Pause {
  const retryAfterMs = answer.retryAfterMs ?? SECOND_MS;
  const lessRefusedMs = retryAfterMs % SECOND_MS || SECOND_MS;
  // Tokens that a request turns out not to need come back at any time.
  const isCertain =
    kind === 'requests_per_minute' && answer.leasedElsewhere === 0n && refusals > REFUSALS_UNTIL_CERTAIN;
  return { refusedMs: isCertain ? retryAfterMs : lessRefusedMs, lessRefusedMs, waitedMs: 0 };
}

function isRate(kind: QuotaKind): boolean {
  return kind === 'requests_per_minute' || kind === 'tokens_per_minute';
}
