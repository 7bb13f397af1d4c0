// One call to a provider, from its request to the end of its reply, over one connection at a time. Where a kept
// connection turns out dead before a byte of the reply, the call sends its request once more by itself, on a new one.
//
// To send the same bytes again is safe: the dead connection's socket is destroyed by then, and each connection holds
// the pooled buffer of the body for itself until its own write has called back. Nothing in it is changed in between.

import type { Buffer } from 'node:buffer';
import type { Connection, ExchangeListener, UpstreamFault } from './http1/connection.ts';
import type { ReplyHead } from './http1/reply-head.ts';
import { requestHead, type UpstreamRequest } from './http1/request-head.ts';
import { type ExaminedCall, KeyRefusal, mayRefuseKey } from './key-refusal.ts';
import type { UpstreamOrigin } from './origin.ts';
import type { ReplyHandler } from './reply-handler.ts';

/**
 * Whoever counts what calls to one provider meet. It is told before the handler, and of each connection that failed.
 */
export interface CallObserver {
  onFault(fault: UpstreamFault): void;
  onKeyRefused(status: number): void;
}

const UNOBSERVED: CallObserver = { onFault: () => undefined, onKeyRefused: () => undefined };

/** What is read of a reply that nobody hears, and for how long, so that its connection can be kept. */
const DISCARDED_BYTES_MAX = 65_536;
const DISCARDING_MS = 2_000;

export class UpstreamCall implements ExchangeListener, ExaminedCall {
  /** False once the call was aborted or discarded: its handler hears nothing more. */
  isHeard = true;
  private connection: Connection | null = null;
  private readonly origin: UpstreamOrigin;
  private readonly observer: CallObserver;
  private handler: ReplyHandler;
  /** null: the reply has begun, and the request cannot be needed again. */
  private request: UpstreamRequest | null;
  private mayResend = true;
  private done = false;
  private discardedBytes = 0;

  constructor(origin: UpstreamOrigin, request: UpstreamRequest, handler: ReplyHandler, observer = UNOBSERVED) {
    this.origin = origin;
    this.request = request;
    this.handler = handler;
    this.observer = observer;
    origin.openCalls += 1;
  }

  /** `onNewConnection`: a kept one may be as dead as the one before it. */
  send(onNewConnection: boolean): void {
    const { request, origin } = this;
    if (request === null) return;
    const head = requestHead(request, origin.host);
    if (head === null) {
      // A credential with a line break in it, say: the provider cannot be called with it.
      queueMicrotask(() => this.onFault('connect_failed'));
      return;
    }
    const nowMs = origin.clock.monotonicMs();
    this.connection = origin.connect(nowMs, onNewConnection);
    this.connection.begin(request, head, this, nowMs);
  }

  onHead({ status, headers }: ReplyHead): void {
    this.request = null;
    if (mayRefuseKey(status)) this.handler = new KeyRefusal(this.handler, this);
    this.handler.onReplyStart(status, headers);
  }

  onBody(bytes: Buffer): void {
    if (this.isHeard) {
      this.handler.onReplyData(bytes);
      return;
    }
    this.discardedBytes += bytes.length;
    if (this.discardedBytes > DISCARDED_BYTES_MAX) this.abort();
  }

  onPause(): void {
    if (this.isHeard) this.handler.onReplyPause();
  }

  onEnd(): void {
    if (this.settle() && this.isHeard) this.handler.onReplyEnd();
  }

  onFault(fault: UpstreamFault): void {
    if (fault === 'stale_connection' && this.mayResend && this.isHeard) {
      this.mayResend = false;
      this.observer.onFault(fault);
      this.resend();
    } else if (this.settle() && this.isHeard) {
      this.observer.onFault(fault);
      this.handler.onReplyFault(fault);
    }
  }

  /** Nobody hears of what is thrown here, but of the end of the call. */
  private resend(): void {
    try {
      this.send(true);
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.fail('no_reply');
    }
  }

  refuseKey(status: number): void {
    const handler = this.handler;
    this.observer.onKeyRefused(status);
    this.discard();
    handler.onKeyRefused(status);
  }

  fail(fault: UpstreamFault): void {
    if (!this.settle()) return;
    this.connection?.abort();
    if (!this.isHeard) return;
    this.observer.onFault(fault);
    this.handler.onReplyFault(fault);
  }

  /** The request has begun to go out. */
  get sent(): boolean {
    return this.connection?.sent ?? false;
  }

  /** Its reply has ended, or failed, or nobody wants it any more. */
  get isOver(): boolean {
    return this.done;
  }

  /** The client has left: a request that was not answered is not sent once more. */
  neverResend(): void {
    this.mayResend = false;
  }

  /** False when the call has ended before. */
  private settle(): boolean {
    if (this.done) return false;
    this.done = true;
    this.request = null;
    this.origin.openCalls -= 1;
    return true;
  }

  /** Stops reading the provider until `resume`. */
  pause(): void {
    if (!this.done) this.connection?.pause();
  }

  resume(): void {
    if (!this.done) this.connection?.resume();
  }

  /**
   * Lets the reply come to its end unheard, so that the connection can be kept; a long or a late one is cut, and one
   * whose request is not written.
   */
  discard(): void {
    if (!this.isHeard) return;
    this.isHeard = false;
    this.connection?.endWithin(this, DISCARDING_MS);
  }

  /** Cuts the call: the provider sees its connection close. The handler hears nothing more. */
  abort(): void {
    this.isHeard = false;
    if (this.settle()) this.connection?.abort();
  }
}
