// The interface between a call to a provider (call.ts) and what carries it: a connection of our own HTTP/1.1 client
// (http1/) or an exchange of undici (undici/).

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
   * One of the provider's timeouts has passed: for the head of the reply, between two pieces of it, or for the whole
   * call. A connection reports it at any point of the reply; after a byte of the body, the call turns it into `cut`.
   */
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  /** The reply began and was cut, or ran out of time after a byte of its body. */
  | 'cut';

const TIMEOUTS: readonly UpstreamFault[] = ['first_byte_timeout', 'idle_timeout', 'total_timeout'];

export function isTimeout(fault: UpstreamFault): boolean {
  return TIMEOUTS.includes(fault);
}

/** Is notified of the exchange that a connection carries. After `onEnd` or `onFault` nothing more is called. */
export interface ExchangeListener {
  onHead(head: Pick<ReplyHead, 'status' | 'headers'>): void;
  /** `bytes` is a view of memory that the next read overwrites. */
  onBody(bytes: Buffer): void;
  /** Everything from one read of the socket was passed on, and the reply continues. */
  onPause(): void;
  onEnd(): void;
  /** `error`: the error of the socket or of undici; absent where a time limit ended the exchange. */
  onFault(fault: UpstreamFault, error?: Error): void;
}

export interface CallConnection {
  /** The present request has begun to go out. */
  readonly sent: boolean;
  /** Begins an exchange; its listener is not called before this returns. `head`: the request's head as it is sent. */
  begin(request: UpstreamRequest, head: string, listener: ExchangeListener, nowMs: number): void;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  /** The reply that goes to `listener` is no longer wanted: it is cut unless it ends within this time. */
  endWithin(listener: ExchangeListener, withinMs: number): void;
  /** Gives up the exchange; its listener is not called any more. */
  abort(): void;
}
