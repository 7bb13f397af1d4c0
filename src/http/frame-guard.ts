// Refuses requests whose framing is ambiguous or whose target is malformed, before a handler sees them.
//
// The framing may be ambiguous: the pinned uWebSockets.js takes every Transfer-Encoding for chunks, and uses the first
// of two Content-Lengths. So a client or a careless proxy could turn one request into two. Even in plain chunks it
// reads an extension as part of the size, and skips bytes after the last chunk unchecked; a request in chunks is
// therefore the last of its connection (exchange.ts).

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from './exchange.ts';

/** The refusal of such a request, or null. Where the framing is ambiguous, the connection must close after it. */
export function guardFrame(exchange: Exchange): Refusal | null {
  if (exchange.isFramingTrusted) return exchange.isTargetPlain ? null : { kind: 'invalid_target' };
  if (exchange.repeatedHeader !== null) return { kind: 'repeated_header', name: exchange.repeatedHeader };
  return { kind: 'transfer_encoding_refused' };
}
