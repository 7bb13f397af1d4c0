// The caller's own labels on a request: correlation id and tags (spec 1.7, 8). Recorded, never forwarded, without
// effect on anything else.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../../records/field-types.ts';

export const TAG = /^[a-z0-9][a-z0-9._:/@-]{0,63}$/;
export const TAGS_MAX = 16;
const NO_TAGS: readonly string[] = [];

/** `X-Client-Request-Id`, as sent; null when absent or empty. A longer one than is kept could not be found again. */
export function readClientRequestId(exchange: Exchange): string | null | Refusal {
  const value = exchange.header('x-client-request-id');
  if (value !== null && value.length > CLIENT_REQUEST_ID_LENGTH_MAX)
    return { kind: 'invalid_field', field: 'X-Client-Request-Id', reason: TOO_LONG };
  return value === '' ? null : value;
}

const TOO_LONG = `it has more than ${CLIENT_REQUEST_ID_LENGTH_MAX} characters, so no request could be found by it`;

/**
 * Tags of a header that may repeat or hold several, separated by commas: lower-cased, malformed ones dropped, at most
 * 16 kept.
 */
export function readTags(exchange: Exchange, headerName: string): readonly string[] {
  if (exchange.header(headerName) === null) return NO_TAGS;
  const tags = new Set<string>();
  for (const value of exchange.headerValues(headerName)) {
    for (const part of value.split(',')) {
      const tag = part.trim().toLowerCase();
      if (tags.size < TAGS_MAX && TAG.test(tag)) tags.add(tag);
    }
  }
  return [...tags];
}

/** W3C Trace Context of version 00, which has this length; what it says is read by who exports traces. */
const TRACEPARENT_LENGTH = 55;

/** null: the client sent none. */
export function readTraceparent(exchange: Exchange): string | null {
  const value = exchange.header('traceparent');
  return value?.length === TRACEPARENT_LENGTH ? value : null;
}
