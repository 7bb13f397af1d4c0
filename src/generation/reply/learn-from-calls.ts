// What is learnt from each call to a provider, whoever makes it: whether the request goes on to the next deployment,
// whether a cooldown or a pause of an own key begins, and what the client is told where no key is accepted.

import type { Provider } from '../../domain/models/provider.ts';
import { meaningOf, type OwnReplyMeaning } from '../../domain/own-keys/own-reply.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { Complaint } from '../../upstream/key-complaint.ts';
import type { Deployment, OwnKeyUse } from '../catalog/serving-catalog.ts';
import type { KeyPauses } from '../own-keys/key-pauses.ts';
import { type Cooldowns, readRetryAfter } from '../pauses/cooldowns.ts';
import { isFailure } from './failed-call.ts';

/** Another provider may well serve what this one could not. 529: overloaded, in the Messages dialect. */
export const FAILOVER_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504, 529]);
/** A real provider sends Retry-After with a 200 too: only these begin a cooldown. */
const COOLDOWN_STATUSES: ReadonlySet<number> = new Set([429, 503, 529]);

/** Whose call it was, and of which deployment. */
export interface Called {
  readonly deployment: Deployment;
  readonly organizationId: string;
}

/** Where what calls have told is kept. */
export interface LearntFromCalls {
  readonly cooldowns: Cooldowns;
  readonly clock: Clock;
  readonly keyPauses: KeyPauses;
  /** The store is told of an own key that its provider does not accept, so that it is asked about it. */
  readonly onOwnKeyRefused: (key: OwnKeyUse) => void;
  /** The store is told of one that rests for so long, since its account has no credit or quota left. */
  readonly onOwnKeySpent: (key: OwnKeyUse, restsMs: number) => void;
}

/** Of the head of a reply. What it means for an own key that could not serve; null: nothing, or it is no own key. */
export function learnFromHead(
  status: number,
  headers: ReplyHeaders,
  { deployment, organizationId }: Called,
  learnt: LearntFromCalls,
): OwnReplyMeaning | null {
  learnt.cooldowns.called(deployment, organizationId, status);
  const { ownKey, providerModel } = deployment;
  if (ownKey === undefined) {
    if (COOLDOWN_STATUSES.has(status)) beginCooldown(headers, { deployment, organizationId }, learnt);
    return null;
  }
  if (isFailure(status))
    return learnOfOwnKey(deployment, { status, complaint: null, retryAfter: retryAfterIn(headers) }, learnt);
  if (status < 300 && !ownKey.isPrevious) learnt.keyPauses.served({ ...ownKey, providerModel });
  return null;
}

function beginCooldown(
  headers: ReplyHeaders,
  { deployment, organizationId }: Called,
  { cooldowns, clock }: LearntFromCalls,
): void {
  const now = { monotonicMs: clock.monotonicMs(), wallClockMs: clock.nowMs() };
  cooldowns.begin(deployment, organizationId, retryAfterIn(headers), now);
}

function retryAfterIn(headers: ReplyHeaders): string | null {
  return replyHeader(headers, 'retry-after') ?? null;
}

/** Of a provider that cannot be connected to. */
export function learnFromUnreached(
  { deployment, organizationId }: Called,
  learnt: LearntFromCalls,
): OwnReplyMeaning | null {
  learnt.cooldowns.called(deployment, organizationId, null);
  return learnOfOwnKey(deployment, { status: null, complaint: null, retryAfter: null }, learnt);
}

/** Of a provider that does not accept the key. */
export function learnFromRefusedKey(
  status: number,
  complaint: Complaint,
  { deployment }: Pick<Called, 'deployment'>,
  learnt: LearntFromCalls,
): OwnReplyMeaning | null {
  return learnOfOwnKey(deployment, { status, complaint, retryAfter: null }, learnt);
}

interface OwnAnswer {
  readonly status: number | null;
  readonly complaint: Complaint | null;
  readonly retryAfter: string | null;
}

function learnOfOwnKey(
  { ownKey, providerModel }: Deployment,
  { status, complaint, retryAfter }: OwnAnswer,
  { keyPauses, clock, onOwnKeyRefused, onOwnKeySpent }: LearntFromCalls,
): OwnReplyMeaning | null {
  if (ownKey === undefined) return null;
  const meaning = meaningOf(status, complaint);
  // A secret that is being replaced is expected to be refused, and pauses nothing.
  if (ownKey.isPrevious) return meaning;
  const retryAfterMs = retryAfter === null ? null : readRetryAfter(retryAfter, clock.nowMs());
  const restsMs = keyPauses.begin({ ...ownKey, providerModel }, meaning, retryAfterMs, clock.monotonicMs());
  if (meaning === 'key') onOwnKeyRefused(ownKey);
  if (meaning === 'quota') onOwnKeySpent(ownKey, restsMs);
  return meaning;
}

/** What is told where the key of the last attempt is not accepted, or an own key's provider cannot be reached. */
export function keyRefusal({ own }: Provider): Refusal {
  return { kind: own === undefined ? 'provider_unavailable' : 'byok_key_unavailable' };
}
