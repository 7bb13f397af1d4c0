// The table of what each reply to a call with an own key means for the request and for the key, and how long it pauses
// what.

import { MINUTE_MS, SECOND_MS } from '../../platform/durations.ts';

/** What the provider refuses the key for, as recognized in its words (src/upstream/key-complaint.ts). */
export type RefusedFor = 'key' | 'billing' | 'scope';

/** `relayed`: the reply says nothing about the key and is relayed to the client. */
export type OwnReplyMeaning = 'key' | 'quota' | 'scope' | 'rate' | 'provider' | 'relayed';

interface Row {
  /** What is paused: the key, the key for this model, or the provider's address with any key. */
  readonly pauses: 'key' | 'key_and_model' | 'address' | 'nothing';
  /** The first pause; it doubles with each such reply in a row, up to `maxMs`. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** The provider's Retry-After, if there is one, counts instead. */
  readonly takesRetryAfter: boolean;
  /** The client never sees it: the next deployment is tried, or the request is refused with `byok_key_unavailable`. */
  readonly isHidden: boolean;
  /** The name in records and in `byok/explain`. */
  readonly reason: string;
}

export const OWN_REPLIES: Readonly<Record<OwnReplyMeaning, Row>> = {
  key: {
    pauses: 'key',
    firstMs: 30 * SECOND_MS,
    maxMs: 30 * SECOND_MS,
    takesRetryAfter: false,
    isHidden: true,
    reason: 'key_refused',
  },
  quota: {
    pauses: 'key',
    firstMs: 5 * MINUTE_MS,
    maxMs: 60 * MINUTE_MS,
    takesRetryAfter: false,
    isHidden: true,
    reason: 'quota_exhausted',
  },
  scope: {
    pauses: 'key_and_model',
    firstMs: 10 * MINUTE_MS,
    maxMs: 10 * MINUTE_MS,
    takesRetryAfter: false,
    isHidden: true,
    reason: 'model_not_permitted',
  },
  rate: {
    pauses: 'key_and_model',
    firstMs: 5 * SECOND_MS,
    maxMs: 60 * SECOND_MS,
    takesRetryAfter: true,
    isHidden: false,
    reason: 'rate_limited',
  },
  provider: {
    pauses: 'address',
    firstMs: 2 * SECOND_MS,
    maxMs: 30 * SECOND_MS,
    takesRetryAfter: false,
    isHidden: false,
    reason: 'provider_failed',
  },
  relayed: {
    pauses: 'nothing',
    firstMs: 0,
    maxMs: 0,
    takesRetryAfter: false,
    isHidden: false,
    reason: 'relayed',
  },
};

/** A longer Retry-After is cut to this: it may be a mistake, and a single request will find out. */
const RETRY_AFTER_MAX_MS = 10 * MINUTE_MS;

/** `status` null: there was no reply. `says`: what its body refuses the key for, in known words; null: it does not. */
export function meaningOf(status: number | null, says: RefusedFor | null): OwnReplyMeaning {
  if (status === null || status >= 500) return 'provider';
  // OpenAI answers 401 to a key that is restricted.
  if (status === 401) return says === 'scope' ? 'scope' : 'key';
  if (status === 402) return 'quota';
  if (status === 429) return says === 'billing' ? 'quota' : 'rate';
  if (status === 400 || status === 403 || status === 404) return says === 'billing' ? 'quota' : (says ?? 'relayed');
  return 'relayed';
}

/**
 * `inARow`: the number of such replies in a row, this one included. `retryAfterMs`: the provider's Retry-After; null:
 * none.
 */
export function pauseMs(meaning: OwnReplyMeaning, inARow: number, retryAfterMs: number | null): number {
  const { firstMs, maxMs, takesRetryAfter } = OWN_REPLIES[meaning];
  if (takesRetryAfter && retryAfterMs !== null && retryAfterMs > 0) return Math.min(retryAfterMs, RETRY_AFTER_MAX_MS);
  return Math.min(maxMs, firstMs * 2 ** Math.min(inARow - 1, 30));
}
