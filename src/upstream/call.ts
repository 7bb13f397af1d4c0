// One call to a provider, from its request to the end of its reply, over one connection at a time. Where a kept
// connection turns out dead before a byte of the reply, the call sends its request once more by itself, on a new one.
//
// Sending the same bytes again is safe. The socket of the dead connection is destroyed by then. Each connection holds
// the buffer that it sends from (the body's pooled buffer, or the one of a copy) until its own write has called back,
// and the relay holds the body's buffer as long as the call can be repeated. Nobody changes the bytes in between.

import type { Buffer } from 'node:buffer';
import type { KeyRefusalWording } from '../domain/models/provider.ts';
import type { Clock } from '../platform/clock.ts';
import { type CallConnection, type ExchangeListener, isTimeout, type UpstreamFault } from './call-connection.ts';
import type { UpstreamTimeouts } from './connection-limits.ts';
import { ExamineComplaint, type ExaminedCall, mayRefuseKey } from './examine-complaint.ts';
import type { ReplyHead } from './http1/reply-head.ts';
import { requestHead, type UpstreamRequest } from './http1/request-head.ts';
import type { Complaint } from './key-complaint.ts';
import type { ReplyHandler } from './reply-handler.ts';

/**
 * Counts the results of calls to one provider. It is notified before the handler, and also of each connection that
 * failed.
 */
export interface CallObserver {
  /**
   * How this provider words the refusal of a key, in addition to the wordings that count for every provider. null: a
   * reply that refuses the key is a reply like any other.
   */
  readonly wordings: readonly KeyRefusalWording[] | null;
  /** The key is an organization's own. */
  readonly isOwnKey?: boolean;
  onFault(fault: UpstreamFault): void;
  onKeyRefused(status: number): void;
  /** A reply has begun, `afterMs` after the request was given to a connection. */
  onReply?(status: number, afterMs: number): void;
}

const UNOBSERVED: CallObserver = { wordings: [], onFault: () => undefined, onKeyRefused: () => undefined };

/** The part of an origin that a call uses. */
export interface CallOrigin {
  /** The value of the `host` header. */
  readonly host: string;
  readonly clock: Clock;
  /** The number of calls whose reply has not ended: each call counts itself. */
  openCalls: number;
  connect(nowMs: number, onNewConnection: boolean): CallConnection;
}

/** The connections to one address: of our own client (origin.ts), or of undici. */
export interface ProviderOrigin extends CallOrigin {
  readonly timeouts: UpstreamTimeouts;
  /**
   * Ends calls and idle connections that have run out of time. The process's coarse clock must call this: without it
   * there are no timeouts.
   */
  trim(): void;
  /** Closes idle connections now, and each other connection when its call has ended. */
  close(): Promise<void>;
}

/** Starts a call. The handler hears of its end exactly once, unless the call is aborted first. */
export function startCall(
  origin: CallOrigin,
  request: UpstreamRequest,
  handler: ReplyHandler,
  observer?: CallObserver,
): UpstreamCall {
  const call = new UpstreamCall(origin, request, handler, observer);
  try {
    call.send(false);
  } catch (fault) {
    // Otherwise the connection that got the request would keep its body.
    call.abort();
    throw fault;
  }
  return call;
}

/** How much of a discarded reply is read, and for how long, so that its connection can be kept. */
const DISCARDED_BYTES_MAX = 65_536;
const DISCARDING_MS = 2_000;

export class UpstreamCall implements ExchangeListener, ExaminedCall {
  /** False once the call was aborted or discarded: its handler is not called any more. */
  isHeard = true;
  /** Monotonic: when its request was last given to a connection; 0 before. */
  beganAtMs = 0;
  private connection: CallConnection | null = null;
  private readonly origin: CallOrigin;
  private readonly observer: CallObserver;
  private handler: ReplyHandler;
  /** null: the reply has begun, so the request cannot be needed again. */
  private request: UpstreamRequest | null;
  private mayResend = true;
  /** A byte of the reply's body has come. */
  private hasBody = false;
  private done = false;
  private discardedBytes = 0;

  constructor(origin: CallOrigin, request: UpstreamRequest, handler: ReplyHandler, observer = UNOBSERVED) {
    this.origin = origin;
    this.request = request;
    this.handler = handler;
    this.observer = observer;
    origin.openCalls += 1;
  }

  /** `onNewConnection`: uses no kept connection, since it may be as dead as the one before. */
  send(onNewConnection: boolean): void {
    const { request, origin } = this;
    if (request === null) return;
    const nowMs = origin.clock.monotonicMs();
    this.beganAtMs = nowMs;
    const head = requestHead(request, origin.host);
    if (head === null) {
      this.failSoon();
      return;
    }
    this.connection = origin.connect(nowMs, onNewConnection);
    this.connection.begin(request, head, this, nowMs);
  }

  /** The request cannot be written, for example because its credential contains a line break. */
  private failSoon(): void {
    queueMicrotask(() => this.onFault('connect_failed'));
  }

  onHead({ status, headers }: Pick<ReplyHead, 'status' | 'headers'>): void {
    this.request = null;
    const { wordings, isOwnKey = false } = this.observer;
    this.observer.onReply?.(status, this.origin.clock.monotonicMs() - this.beganAtMs);
    if (wordings !== null && mayRefuseKey(status, isOwnKey))
      this.handler = new ExamineComplaint(this.handler, this, { wordings, isOwnKey });
    this.handler.onReplyStart(status, headers);
  }

  onBody(bytes: Buffer): void {
    this.hasBody = true;
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
    if (this.endOnce() && this.isHeard) this.handler.onReplyEnd();
  }

  onFault(fault: UpstreamFault, error?: Error): void {
    if (fault === 'stale_connection' && this.mayResend && this.isHeard) {
      this.mayResend = false;
      this.observer.onFault(fault);
      this.resend();
    } else if (this.endOnce()) {
      this.tellFault(fault, error);
    }
  }

  /** The connection that calls this could not handle an error, so the call itself fails. */
  private resend(): void {
    try {
      this.send(true);
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.fail('no_reply');
    }
  }

  refuseKey(status: number, complaint: Complaint): void {
    const handler = this.handler;
    this.observer.onKeyRefused(status);
    this.discard();
    handler.onKeyRefused(status, complaint);
  }

  fail(fault: UpstreamFault): void {
    if (!this.endOnce()) return;
    this.connection?.abort();
    this.tellFault(fault);
  }

  /**
   * A connection reports which timeout has passed. Only the call knows whether a byte of the body has come, after which
   * the handler is told `cut`.
   */
  private tellFault(fault: UpstreamFault, error?: Error): void {
    if (!this.isHeard) return;
    const told = this.hasBody && isTimeout(fault) ? 'cut' : fault;
    this.observer.onFault(told);
    this.handler.onReplyFault(told, error);
  }

  /** Whether the request has begun to be sent. */
  get sent(): boolean {
    return this.connection?.sent ?? false;
  }

  /**
   * Whether the reply has ended or failed, or the call was aborted. A discarded call is over when the rest of its reply
   * was read or cut.
   */
  get isOver(): boolean {
    return this.done;
  }

  /** To be called when the client has disconnected: the request is then not sent again on another connection. */
  neverResend(): void {
    this.mayResend = false;
  }

  /** False when the call had ended before. */
  private endOnce(): boolean {
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
   * Reads the reply to its end without passing it on, so that the connection can be kept. A long or late reply is cut,
   * and so is a reply whose request is not completely written.
   */
  discard(): void {
    if (!this.isHeard) return;
    this.isHeard = false;
    this.connection?.endWithin(this, DISCARDING_MS);
  }

  /** Cuts the call: the provider sees its connection close. The handler is not called any more. */
  abort(): void {
    this.isHeard = false;
    if (this.endOnce()) this.connection?.abort();
  }
}
