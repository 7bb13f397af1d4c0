// Decides when an open reply has taken too long: one rule for generation and pass-through, applied by the coarse clock.

import type { UpstreamTimeouts } from '../../upstream/connection-limits.ts';

/** How long a reply is read on for its usage after its client has left, when the provider's setting says so. */
export const DRAIN_TIMEOUT_MS = 120_000;

export interface ReplyTimes {
  readonly startedAtMs: number;
  /** Since when the client has taken none of the waiting bytes; 0: none wait. */
  readonly blockedSinceMs: number;
  /** Until when the reply is read on without a client; 0: the client is there. */
  readonly drainUntilMs: number;
}

/**
 * Which limit is exceeded; null: none. `client`: the client takes nothing. It must not occupy its provider, its money
 * and this process for ever, so it counts as gone. `total`: the call itself takes too long.
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
