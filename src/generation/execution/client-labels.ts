// The caller's own labels on a request: correlation id and tags (spec 1.7, 8). Recorded, never forwarded, without
// effect on anything else.

import type { Exchange } from '../../http/exchange.ts';

export const TAG = /^[a-z0-9][a-z0-9._:/@-]{0,63}$/;
export const TAGS_MAX = 16;
export const CLIENT_REQUEST_ID_LENGTH_MAX = 255;
const NO_TAGS: readonly string[] = [];

/** `X-Client-Request-Id`, as sent; null when absent, empty or longer than 255 characters. */
export function readClientRequestId(exchange: Exchange): string | null {
  const value = exchange.header('x-client-request-id');
  return value === null || value === '' || value.length > CLIENT_REQUEST_ID_LENGTH_MAX ? null : value;
}

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
