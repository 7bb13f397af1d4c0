// What the store's last refusal says about requests to come: while it holds they are refused from memory, and the
// database is not asked only to say no again. It holds until room can come from where this process would not hear of
// it, and no longer than the pauses here: docs/money-and-limits.md says what that makes of a refusal.

import { isRate, type LeaseAnswer, type Quota, type QuotaKind } from '../../../domain/quotas/lease.ts';

/** Why a request cannot be served. */
export interface Shortage {
  readonly quota: Quota;
  /** `short`: less is left of the quota than the request needs. `unavailable`: nobody knows whether there is enough. */
  readonly reason: 'short' | 'frozen' | 'unavailable';
  /** The largest need that the store could still serve. A larger one is refused without asking. */
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
/**
 * The others could not be asked in time, so nobody knows. It is over as soon as they were; until then the store is
 * asked about three times a second, for what comes into it from elsewhere.
 */
const UNAVAILABLE_MS = 300;
/**
 * More than there is in all: that grows only by a deposit or a higher limit, which every process is told of. Asked
 * again after this, should the word be lost.
 */
const MORE_THAN_ALL_MS = 1_000;
/** A rate has room with a new second, and processes return within one what they have not used of the one before. */
const SECOND_MS = 1_000;
/** After so many refusals with nothing of it elsewhere, a rate has no room before the moment that the store names. */
const REFUSALS_UNTIL_CERTAIN = 3;

/** What an answer of the store means for those that it does not suffice for. */
export interface Verdict {
  readonly reason: Shortage['reason'];
  /** How much there is in all, wherever it is, where only those are refused that need more; else null. */
  readonly most: bigint | null;
}

export interface RefusedLease extends Verdict {
  readonly answer: LeaseAnswer;
  readonly leastRefused: bigint;
  /** How often in a row the store has refused. */
  readonly refusals: number;
  readonly nowMs: number;
}

export class RememberedRefusal {
  /** Those that come later than the ones that were refused and must ask the store wait until then. */
  readonly askNotBeforeMs: number;
  private readonly quota: Quota;
  private readonly refused: RefusedLease;
  /** For those that need as much as was refused, or more; and for those that need less. */
  private readonly untilMs: number;
  private readonly lessUntilMs: number;

  constructor(quota: Quota, refused: RefusedLease) {
    this.quota = quota;
    this.refused = refused;
    const pause = pauseAfter(quota.kind, refused);
    this.untilMs = refused.nowMs + pause.refusedMs;
    this.lessUntilMs = refused.nowMs + pause.lessRefusedMs;
    this.askNotBeforeMs = refused.nowMs + pause.waitedMs;
  }

  /** Why a request with this need is refused; null: the store must be asked. `available` here, without the store. */
  shortage(need: bigint, available: bigint, nowMs: number): Shortage | null {
    const { answer, most, leastRefused } = this.refused;
    const isLess = most === null ? need < leastRefused : need <= most;
    if (nowMs >= (isLess ? this.lessUntilMs : this.untilMs)) return null;
    const shortage = shortageOf(this.quota, answer, this.refused, { need, available });
    if (shortage === null || shortage.retryAfterMs === null) return shortage;
    const elapsedMs = nowMs - this.refused.nowMs;
    return { ...shortage, retryAfterMs: Math.max(0, shortage.retryAfterMs - elapsedMs) };
  }

  isOfLimitBelow(ceiling: bigint): boolean {
    const { answer } = this.refused;
    return answer.ceiling !== null && answer.ceiling < ceiling;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.untilMs;
  }
}

/** Why the store's answer does not suffice for a need, of which so much is available here; null: it may suffice. */
export function shortageOf(
  quota: Quota,
  { available, ceiling, retryAfterMs }: LeaseAnswer,
  { reason, most }: Verdict,
  here: { readonly need: bigint; readonly available: bigint },
): Shortage | null {
  const within = most ?? here.available + available;
  if (reason !== 'frozen' && here.need <= within) return null;
  return { quota, reason, within, ceiling, retryAfterMs };
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
  const { answer } = refused;
  const refusedMs = isRate(kind)
    ? untilNextSecondMs(answer)
    : Math.min(MORE_THAN_ALL_MS, answer.retryAfterMs ?? MORE_THAN_ALL_MS);
  return { refusedMs, lessRefusedMs: 0, waitedMs: 0 };
}

/** It is frozen, or nobody else has anything of it: room comes only with a change that every process is told of. */
export function isCertainRefusal(reason: Shortage['reason'], { leasedElsewhere }: LeaseAnswer): boolean {
  return reason === 'frozen' || leasedElsewhere === 0n;
}

/** Of a wallet, a budget, or places; of a budget until its period ends at most. */
function pauseOf({ answer, reason, refusals }: RefusedLease): Pause {
  const isCertain = isCertainRefusal(reason, answer);
  const { firstMs, times, maxMs } = isCertain ? CERTAIN_PAUSE : PAUSE;
  const pauseMs = Math.min(maxMs, firstMs * times ** (refusals - 1), answer.retryAfterMs ?? maxMs);
  const refusedMs = isCertain || refusals > REFUSALS_WAITED ? pauseMs : 0;
  return { refusedMs, lessRefusedMs: refusedMs, waitedMs: isCertain ? 0 : Math.min(pauseMs, WAITED_MS_MAX) };
}

function pauseOfRate(kind: QuotaKind, { answer, refusals }: RefusedLease): Pause {
  const lessRefusedMs = untilNextSecondMs(answer);
  // Tokens that a request turns out not to need come back at any time.
  const isCertain =
    kind === 'requests_per_minute' && answer.leasedElsewhere === 0n && refusals > REFUSALS_UNTIL_CERTAIN;
  return { refusedMs: isCertain ? (answer.retryAfterMs ?? SECOND_MS) : lessRefusedMs, lessRefusedMs, waitedMs: 0 };
}

/** A rate has room again with a new second. */
function untilNextSecondMs({ retryAfterMs }: LeaseAnswer): number {
  return (retryAfterMs ?? SECOND_MS) % SECOND_MS || SECOND_MS;
}
