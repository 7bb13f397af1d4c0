// Which provider-models asked for a pause, and until when (DESIGN 3). Known to this process only: each process learns it from its own first refusal.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Offer } from '../catalog/serving-catalog.ts';

/** A provider that asks for longer is asked again all the same after this: it may have been a mistake, and one request finds out. */
const COOLDOWN_MAX_MS = 600_000;
const COOLDOWNS_MAX = 10_000;

export class Cooldowns {
  private readonly untilMs = new Map<string, number>();

  /** Begins or prolongs the cooldown of an offer. `retryAfter` is the provider's header, seconds or an HTTP date; without a readable one there is no cooldown. */
  begin(offer: Offer, retryAfter: string | null, nowMs: number, wallClockMs: number): void {
    const waitMs = retryAfter === null ? null : readRetryAfter(retryAfter, wallClockMs);
    if (waitMs === null || waitMs <= 0) return;
    if (this.untilMs.size >= COOLDOWNS_MAX) this.forgetEnded(nowMs);
    const until = nowMs + Math.min(waitMs, COOLDOWN_MAX_MS);
    const key = keyOf(offer);
    if ((this.untilMs.get(key) ?? 0) < until) this.untilMs.set(key, until);
  }

  /** The offers that may be called now, in their order; a refusal with the shortest wait when there is none. */
  filter(offers: readonly Offer[], nowMs: number): readonly Offer[] | Refusal {
    if (this.untilMs.size === 0) return offers;
    let shortestMs = Number.POSITIVE_INFINITY;
    const open = offers.filter((offer) => {
      const leftMs = (this.untilMs.get(keyOf(offer)) ?? 0) - nowMs;
      if (leftMs <= 0) return true;
      shortestMs = Math.min(shortestMs, leftMs);
      return false;
    });
    return open.length > 0 ? open : { kind: 'upstream_cooldown', retryAfterMs: shortestMs };
  }

  /** Called from the coarse clock. */
  forgetEnded(nowMs: number): void {
    for (const [key, until] of this.untilMs) if (until <= nowMs) this.untilMs.delete(key);
  }

  get size(): number {
    return this.untilMs.size;
  }
}

/** Ids may not contain a NUL, so the pair cannot be taken for another. */
function keyOf(offer: Offer): string {
  return `${offer.provider.id}\0${offer.providerModel}`;
}

/** RFC 9110, 10.2.3: delay-seconds or an HTTP date. In milliseconds from now; null when it is neither. */
function readRetryAfter(value: string, wallClockMs: number): number | null {
  const text = value.trim();
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date - wallClockMs;
}
