// What a refusal tells clients about trying again. The SDKs' own behaviour, measured, is the reason for each line:
// most of them retry every 429 and 5xx unless told not to, and sleep through any Retry-After, however long.

import { type RefusalDescription, retryAfterSeconds } from './description.ts';

export type Header = readonly [name: string, value: string];

/**
 * Beyond this a client that waits on its own only looks frozen (an hour's Retry-After freezes several SDKs for the
 * hour).
 */
const RETRY_WORTH_WAITING_MS = 60_000;

const STOP: readonly Header[] = [['x-should-retry', 'false']];

export function retryHeaders(refusal: RefusalDescription): readonly Header[] {
  if (refusal.retryAfterMs === null) return STOP;
  const waitMs = Math.max(1, Math.ceil(refusal.retryAfterMs));
  const worthWaiting = refusal.retryable && waitMs <= RETRY_WORTH_WAITING_MS;
  return [
    ['retry-after', String(retryAfterSeconds(waitMs))],
    ['retry-after-ms', String(waitMs)],
    ['x-should-retry', worthWaiting ? 'true' : 'false'],
  ];
}
