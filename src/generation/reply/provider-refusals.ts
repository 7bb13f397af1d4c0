// Which of a provider's refusals send a request on to the next deployment, which begin a cooldown or a pause of an own
// key, and what the client is told where no key is accepted.

import type { Provider } from '../../domain/models/provider.ts';
import { meaningOf, type OwnReplyMeaning } from '../../domain/own-keys/own-reply.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { Complaint } from '../../upstream/refused-key.ts';
import { type Cooldowns, readRetryAfter } from '../admission/cooldowns.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { KeyPauses } from '../own-keys/key-pauses.ts';

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
  if (!COOLDOWN_STATUSES.has(status) || deployment.ownKey !== undefined) return;
  const now = { monotonicMs: clock.monotonicMs(), wallClockMs: clock.nowMs() };
  cooldowns.begin(deployment, organizationId, replyHeader(headers, 'retry-after') ?? null, now);
}

/** What is told where the key of the last attempt is not accepted, or an own key's provider cannot be reached. */
export function keyRefusal({ own }: Provider): Refusal {
  return { kind: own === undefined ? 'provider_unavailable' : 'byok_key_unavailable' };
}

/** What an answer to an own key means for it, and how long it rests now; 0: it is used on. */
export function pauseOwnKey(
  { ownKey, providerModel }: Deployment,
  answer: { readonly status: number | null; readonly complaint: Complaint | null; readonly retryAfter: string | null },
  { keyPauses, clock }: { readonly keyPauses: KeyPauses; readonly clock: Clock },
): { readonly meaning: OwnReplyMeaning; readonly restsMs: number } {
  const meaning = meaningOf(answer.status, answer.complaint);
  const { retryAfter } = answer;
  const retryAfterMs = retryAfter === null ? null : readRetryAfter(retryAfter, clock.nowMs());
  // A secret that is being replaced is expected to be refused, and pauses nothing.
  if (ownKey === undefined || ownKey.isPrevious) return { meaning, restsMs: 0 };
  const restsMs = keyPauses.begin({ ...ownKey, providerModel }, meaning, retryAfterMs, clock.monotonicMs());
  return { meaning, restsMs };
}
