// The headers that tell clients whether and when to retry. They follow the measured behaviour of the SDKs: most retry
// every 429 and 5xx unless told not to, and sleep through any Retry-After, however long.

import { type RefusalDescription, retryAfterSeconds } from './description.ts';

export type Header = readonly [name: string, value: string];

/** A client that waits longer than this on its own looks frozen (several SDKs sleep for an hour when told to). */
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
