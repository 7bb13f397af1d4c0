// Refuses requests whose framing is ambiguous, before a handler sees them. The pinned uWebSockets.js reads a chunk
// extension as part of the size, skips unchecked bytes after the last chunk, and uses the first of two Content-Lengths.
// So a client or a careless proxy could turn one request into two.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from './exchange.ts';

/** The refusal for a request whose framing is ambiguous, or null. The connection must close after it. */
export function guardFrame(exchange: Exchange): Refusal | null {
  if (exchange.transferEncoded) return { kind: 'transfer_encoding_refused' };
  if (exchange.repeatedHeader !== null) return { kind: 'repeated_header', name: exchange.repeatedHeader };
  return null;
}
