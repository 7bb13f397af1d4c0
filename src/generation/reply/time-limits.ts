// When an open reply has taken too long: one rule for generation and pass-through, asked by the coarse clock.

import type { UpstreamTimeouts } from '../../upstream/connection-limits.ts';

/** How long a reply is read on for its usage after the client left, where the provider's setting says so. */
export const DRAIN_TIMEOUT_MS = 120_000;

export interface ReplyTimes {
  readonly startedAtMs: number;
  /** Since when the client has taken nothing of what waits for it; 0: nothing waits. */
  readonly blockedSinceMs: number;
  /** Until when the reply is read on without a client; 0: it has one. */
  readonly drainUntilMs: number;
}

/**
 * What has run out; null: nothing. `client`: it takes nothing, and must not hold its provider, its money and this
 * process for ever, so it counts as gone. `total`: the call itself.
 */
export function overdue(
  { startedAtMs, blockedSinceMs, drainUntilMs }: ReplyTimes,
  { idleMs, totalMs }: UpstreamTimeouts,
  nowMs: number,
): 'client' | 'drain' | 'total' | null {
  const isOld = nowMs - startedAtMs > totalMs;
  if (blockedSinceMs !== 0 && (isOld || nowMs - blockedSinceMs > idleMs)) return 'client';
  if (drainUntilMs !== 0 && nowMs > drainUntilMs) return 'drain';
  return isOld ? 'total' : null;
}
