// Which of a provider's refusals send a request on to the next deployment, and which begin a cooldown.

import type { Clock } from '../../platform/clock.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { Cooldowns } from '../admission/cooldowns.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';

/** Another provider may well serve what this one could not. 529: overloaded, in the Messages dialect. */
export const FAILOVER_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504, 529]);
/** A real provider sends Retry-After with a 200 too: only these begin a cooldown. */
const COOLDOWN_STATUSES: ReadonlySet<number> = new Set([429, 503, 529]);

/** Begins a cooldown where the head of a reply asks for one. */
export function beginCooldown(
  status: number,
  headers: ReplyHeaders,
  { deployment, organizationId }: { readonly deployment: Deployment; readonly organizationId: string },
  { cooldowns, clock }: { readonly cooldowns: Cooldowns; readonly clock: Clock },
): void {
  if (!COOLDOWN_STATUSES.has(status)) return;
  const now = { monotonicMs: clock.monotonicMs(), wallClockMs: clock.nowMs() };
  cooldowns.begin(deployment, organizationId, replyHeader(headers, 'retry-after') ?? null, now);
}
