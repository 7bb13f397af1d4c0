// The interface of what one call to a provider goes over: a connection of our own HTTP/1.1 client (http1/), or an
// exchange of undici (undici/). A call itself (call.ts) is the same over both.

import type { Buffer } from 'node:buffer';
import type { ReplyHead } from './http1/reply-head.ts';
import type { UpstreamRequest } from './http1/request-head.ts';

/** How a call to a provider failed. */
export type UpstreamFault =
  /** No connection: not a byte was sent. */
  | 'connect_failed'
  /** A kept connection turned out dead before any reply byte: the provider had closed it. */
  | 'stale_connection'
  /** The bytes may have been sent; no reply came that could be read. */
  | 'no_reply'
  /**
   * Each of the provider's timeouts: for the head, between two pieces, for all of the call. A connection says it of
   * every reply that is out of time; behind a byte of the body the call makes it `cut`.
   */
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  /** The reply began and was cut, or ran out of time behind a byte of its body. */
  | 'cut';

const TIMEOUTS: readonly UpstreamFault[] = ['first_byte_timeout', 'idle_timeout', 'total_timeout'];

export function isTimeout(fault: UpstreamFault): boolean {
  return TIMEOUTS.includes(fault);
}

/** Hears what happens to the exchange that a connection carries. Nothing is told after `onEnd` or `onFault`. */
export interface ExchangeListener {
  onHead(head: Pick<ReplyHead, 'status' | 'headers'>): void;
  /** A view on memory that the next read uses again. */
  onBody(bytes: Buffer): void;
  /** All that one read brought has been told, and the reply goes on. */
  onPause(): void;
  onEnd(): void;
  /** `error`: what the system or the other side said; absent where a time limit ended it. */
  onFault(fault: UpstreamFault, error?: Error): void;
}

export interface CallConnection {
  /** The present request has begun to go out. */
  readonly sent: boolean;
  /** Begins an exchange; its listener is not called before this returns. `head` is the request's, written out. */
  begin(request: UpstreamRequest, head: string, listener: ExchangeListener, nowMs: number): void;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  /** The reply that `listener` hears is no longer wanted, and must end within this time. */
  endWithin(listener: ExchangeListener, withinMs: number): void;
  /** Gives up the exchange; its listener hears nothing more. */
  abort(): void;
}
