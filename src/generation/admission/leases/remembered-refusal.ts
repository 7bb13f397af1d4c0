// What the store's last refusal says about later requests. While a refusal is valid, requests are refused from memory,
// and the database is not asked only to say no again. A refusal is valid until room can come without this process
// hearing of it, at most for the pauses in this file. docs/money-and-limits.md says what clients see of it.

import { isRate, type LeaseAnswer, type Quota, type QuotaKind } from '../../../domain/quotas/lease.ts';

/** Why a request cannot be served. */
export interface Shortage {
  readonly quota: Quota;
  /** `short`: less is left of the quota than the request needs. `unavailable`: nobody knows whether there is enough. */
  readonly reason: 'short' | 'frozen' | 'unavailable';
  /** The largest need that could still be served. A larger one is refused without asking. */
  readonly servableMax: bigint;
  readonly ceiling: bigint | null;
  readonly retryAfterMs: number | null;
}

/**
 * The pause while other processes have some of the quota, which they may return at any time. It doubles with each
 * refusal in a row. Requests wait during short pauses and are refused during long ones.
 */
const PAUSE = { firstMs: 5, times: 2, maxMs: 1_000 } as const;
const WAITED_MS_MAX = 160;
/** After up to this many refusals in a row requests wait during the pause; after more, they are refused. */
export const REFUSALS_WAITED = 1 + Math.log2(WAITED_MS_MAX / PAUSE.firstMs);
/**
 * The pause while no other process has any of the quota, or the wallet is frozen. Room then comes only with a change of
 * the wallet or limit, of which every process is notified. The store is asked again in case a notification was lost.
 */
const CERTAIN_PAUSE = { firstMs: 40, times: 4, maxMs: 30_000 } as const;
/**
 * The pause when the other processes could not be asked in time. It ends as soon as they have been asked. Until then
 * the store is asked about three times a second, since room may come from elsewhere.
 */
const UNAVAILABLE_MS = 300;
/**
 * The pause for a need above the quota's total. The total grows only by a deposit or a higher limit, of which every
 * process is notified. The store is asked again in case a notification was lost.
 */
const ABOVE_TOTAL_MS = 1_000;
/**
 * A rate gets room with each new second, and within a second processes return what they did not use of the one before.
 */
const SECOND_MS = 1_000;
/**
 * After more refusals than this while no other process has any of it, a rate has no room before the time that the store
 * names.
 */
const REFUSALS_UNTIL_CERTAIN = 3;

/** What an answer of the store means for the requests that it does not suffice for. */
export interface Verdict {
  readonly reason: Shortage['reason'];
  /** The quota's total, when only requests that need more than it are refused; else null. */
  readonly total: bigint | null;
}

export interface RefusedLease extends Verdict {
  readonly answer: LeaseAnswer;
  readonly leastRefused: bigint;
  /** How often in a row the store has refused. */
  readonly refusals: number;
  readonly nowMs: number;
}

export class RememberedRefusal {
  /** A later request that must ask the store waits until then. */
  readonly askNotBeforeMs: number;
  private readonly quota: Quota;
  private readonly refused: RefusedLease;
  /** Until when requests are refused that need at least the least refused amount; `lessUntilMs`: that need less. */
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

  /** Why a request with this need is refused; null: the store must be asked. `available`: in this process. */
  shortage(need: bigint, available: bigint, nowMs: number): Shortage | null {
    const { answer, total, leastRefused } = this.refused;
    const isLess = total === null ? need < leastRefused : need <= total;
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

/** Why the store's answer does not suffice for a need, with what this process has available; null: it may suffice. */
export function shortageOf(
  quota: Quota,
  { available, ceiling, retryAfterMs }: LeaseAnswer,
  { reason, total }: Verdict,
  here: { readonly need: bigint; readonly available: bigint },
): Shortage | null {
  const servableMax = total ?? here.available + available;
  if (reason !== 'frozen' && here.need <= servableMax) return null;
  return { quota, reason, servableMax, ceiling, retryAfterMs };
}

interface Pause {
  /** How long requests are refused, and how long those that need less than was refused. */
  readonly refusedMs: number;
  readonly lessRefusedMs: number;
  /** How long a request that must ask the store waits before it does. */
  readonly waitedMs: number;
}

function pauseAfter(kind: QuotaKind, refused: RefusedLease): Pause {
  if (refused.reason === 'unavailable')
    return { refusedMs: UNAVAILABLE_MS, lessRefusedMs: UNAVAILABLE_MS, waitedMs: 0 };
  if (refused.total === null) return isRate(kind) ? pauseOfRate(kind, refused) : pauseOf(refused);
  // Needs up to the total were not refused, so no pause applies to them.
  const { answer } = refused;
  const refusedMs = isRate(kind)
    ? untilNextSecondMs(answer)
    : Math.min(ABOVE_TOTAL_MS, answer.retryAfterMs ?? ABOVE_TOTAL_MS);
  return { refusedMs, lessRefusedMs: 0, waitedMs: 0 };
}

/**
 * The wallet is frozen, or no other process has any of the quota: room comes only with a change that every process is
 * notified of.
 */
export function isCertainRefusal(reason: Shortage['reason'], { leasedElsewhere }: LeaseAnswer): boolean {
  return reason === 'frozen' || leasedElsewhere === 0n;
}

/** The pause for a wallet, a budget or concurrent requests. For a budget it lasts at most until the period ends. */
function pauseOf({ answer, reason, refusals }: RefusedLease): Pause {
  const isCertain = isCertainRefusal(reason, answer);
  const { firstMs, times, maxMs } = isCertain ? CERTAIN_PAUSE : PAUSE;
  const pauseMs = Math.min(maxMs, firstMs * times ** (refusals - 1), answer.retryAfterMs ?? maxMs);
  const refusedMs = isCertain || refusals > REFUSALS_WAITED ? pauseMs : 0;
  return { refusedMs, lessRefusedMs: refusedMs, waitedMs: isCertain ? 0 : Math.min(pauseMs, WAITED_MS_MAX) };
}

function pauseOfRate(kind: QuotaKind, { answer, refusals }: RefusedLease): Pause {
  const lessRefusedMs = untilNextSecondMs(answer);
  // Only a rate of requests can be certain: tokens that a request held and did not use come back at any time.
  const isCertain =
    kind === 'requests_per_minute' && answer.leasedElsewhere === 0n && refusals > REFUSALS_UNTIL_CERTAIN;
  return { refusedMs: isCertain ? (answer.retryAfterMs ?? SECOND_MS) : lessRefusedMs, lessRefusedMs, waitedMs: 0 };
}

/** A rate has room again with a new second. */
function untilNextSecondMs({ retryAfterMs }: LeaseAnswer): number {
  return (retryAfterMs ?? SECOND_MS) % SECOND_MS || SECOND_MS;
}
