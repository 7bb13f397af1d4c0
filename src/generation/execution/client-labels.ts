// Reads the caller's own labels on a request: correlation id, tags and trace context (spec 1.7, 8). They are recorded,
// never forwarded, and have no effect on anything else.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../../records/field-types.ts';

export const TAG = /^[a-z0-9][a-z0-9._:/@-]{0,63}$/;
export const TAGS_MAX = 16;
const NO_TAGS: readonly string[] = [];

/**
 * `X-Client-Request-Id` as sent; null when absent or empty. One that is too long to be recorded is refused, since no
 * request could be found by it.
 */
export function readClientRequestId(exchange: Exchange): string | null | Refusal {
  const value = exchange.header('x-client-request-id');
  if (value !== null && value.length > CLIENT_REQUEST_ID_LENGTH_MAX)
    return { kind: 'invalid_field', field: 'X-Client-Request-Id', reason: TOO_LONG };
  return value === '' ? null : value;
}

const TOO_LONG = `it has more than ${CLIENT_REQUEST_ID_LENGTH_MAX} characters, so no request could be found by it`;

/**
 * The tags in a header that may repeat or contain several, separated by commas: lower-cased, malformed ones dropped, at
 * most 16 kept.
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

/** The length of a W3C Trace Context of version 00. Its content is read by the exporter of traces. */
const TRACEPARENT_LENGTH = 55;

/** The client's trace context; null: it sent none. */
export function readTraceparent(exchange: Exchange): string | null {
  const value = exchange.header('traceparent');
  return value?.length === TRACEPARENT_LENGTH ? value : null;
}
