// Learns from each call to a provider, whichever request makes it: whether the request goes on to the next deployment,
// whether a cooldown or a pause of an own key begins, and what the client is told when no key is accepted.

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

/** Statuses after which another provider may well serve the request. 529: overloaded, in the Messages dialect. */
export const FAILOVER_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504, 529]);
/** The statuses that begin a cooldown. Retry-After alone does not: a real provider sends it with a 200, too. */
const COOLDOWN_STATUSES: ReadonlySet<number> = new Set([429, 503, 529]);

/** Which organization made a call, and to which deployment. */
export interface Called {
  readonly deployment: Deployment;
  readonly organizationId: string;
}

/** Where the gateway keeps what it learns from calls. */
export interface LearntFromCalls {
  readonly cooldowns: Cooldowns;
  readonly clock: Clock;
  readonly keyPauses: KeyPauses;
  /** Tells the store of an own key that its provider does not accept, so that the provider is asked about the key. */
  readonly onOwnKeyRefused: (key: OwnKeyUse) => void;
  /** Tells the store of an own key that pauses for `restsMs`, since its account has no credit or quota left. */
  readonly onOwnKeySpent: (key: OwnKeyUse, restsMs: number) => void;
}

/**
 * Learns from the head of a reply. Returns what it means for an own key that could not serve; null: the key could
 * serve, or it is not an own key.
 */
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

/** Learns that a provider cannot be connected to. */
export function learnFromUnreached(
  { deployment, organizationId }: Called,
  learnt: LearntFromCalls,
): OwnReplyMeaning | null {
  learnt.cooldowns.called(deployment, organizationId, null);
  return learnOfOwnKey(deployment, { status: null, complaint: null, retryAfter: null }, learnt);
}

/** Learns that a provider does not accept the key. */
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
  // A secret that is being replaced is expected to be refused, so its refusal pauses nothing.
  if (ownKey.isPrevious) return meaning;
  const retryAfterMs = retryAfter === null ? null : readRetryAfter(retryAfter, clock.nowMs());
  const restsMs = keyPauses.begin({ ...ownKey, providerModel }, meaning, retryAfterMs, clock.monotonicMs());
  if (meaning === 'key') onOwnKeyRefused(ownKey);
  if (meaning === 'quota') onOwnKeySpent(ownKey, restsMs);
  return meaning;
}

/** The client's refusal when the last attempt's key is not accepted, or an own key's provider cannot be reached. */
export function keyRefusal({ own }: Provider): Refusal {
  return { kind: own === undefined ? 'provider_unavailable' : 'byok_key_unavailable' };
}
