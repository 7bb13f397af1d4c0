// One exchange with a provider over undici. undici owns sockets, framing and parsing. The time limits are ours, and the
// origin's coarse clock checks them: undici's own limits are for connections, not for calls.

import { Buffer } from 'node:buffer';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../platform/clock.ts';
import type { CallConnection, ExchangeListener, UpstreamFault } from '../call-connection.ts';
import type { UpstreamTimeouts } from '../connection-limits.ts';
import { replyHeader, replyHeaderValue } from '../http1/reply-head.ts';
import { HeaderLines, type UpstreamRequest } from '../http1/request-head.ts';
import { isReset } from '../is-reset.ts';

/** `whole`: the reply is complete, so the connection can carry another exchange. `lost`: the connection was dead. */
export type ExchangeEnd = 'whole' | 'given_up' | 'out_of_time' | 'lost';

/** The origin that an exchange belongs to. */
export interface ExchangeOwner {
  readonly origin: string;
  readonly clock: Clock;
  readonly timeouts: UpstreamTimeouts;
  /** The request has begun to go out. */
  onSent(exchange: UndiciExchange): void;
  /** Called once. */
  onOver(exchange: UndiciExchange, how: ExchangeEnd): void;
}

/** The connection that carries an exchange, as far as the exchange needs to know it; the owner chooses it. */
export interface Carrier {
  readonly dispatcher: Dispatcher;
  /** Many exchanges share it at a time (HTTP/2). */
  readonly isShared: boolean;
  /** How many exchanges its present socket has carried to their end. */
  readonly exchanges: number;
}

const FIRST_FINAL_STATUS = 200;

/**
 * Takes the socket of the exchange whose request undici is about to write, between `onRequestStart` and the writing.
 */
let takeSocket: ((socket: Socket) => void) | null = null;

/** Only on this channel undici names the socket of a request, in the same step in which it calls `onRequestStart`. */
subscribe('undici:client:sendHeaders', (message) => {
  takeSocket?.((message as { readonly socket: Socket }).socket);
  takeSocket = null;
});

export class UndiciExchange implements CallConnection, Dispatcher.DispatchHandler {
  sent = false;
  private readonly owner: ExchangeOwner;
  private readonly carrier: Carrier;
  /**
   * The socket that the request was written to, and how many bytes it had read before. null: undici has not named it.
   */
  private writtenTo: { readonly socket: Socket; readonly isKept: boolean; readonly bytesRead: number } | null = null;
  private listener: ExchangeListener | null = null;
  private controller: Dispatcher.DispatchController | null = null;
  private hasHead = false;
  private isPaused = false;
  private isOver = false;
  private isBeginning = false;
  private isPauseDue = false;
  private waitingSinceMs = 0;
  private endByMs = Number.POSITIVE_INFINITY;

  constructor(owner: ExchangeOwner, carrier: Carrier) {
    this.owner = owner;
    this.carrier = carrier;
  }

  begin(request: UpstreamRequest, _head: string, listener: ExchangeListener, nowMs: number): void {
    const { owner, carrier } = this;
    this.listener = listener;
    this.waitingSinceMs = nowMs;
    this.endByMs = nowMs + owner.timeouts.totalMs;
    this.isBeginning = true;
    carrier.dispatcher.dispatch(
      {
        origin: owner.origin,
        path: request.path,
        method: request.method,
        headers: [...(request.providerHeaders?.headers ?? []), ...namesAndValues(request.headers)],
        body: copyOf(request.body),
      },
      this,
    );
    this.isBeginning = false;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isOver) {
      giveUp(controller);
      return;
    }
    this.sent = true;
    takeSocket = this.onWriting;
    this.owner.onSent(this);
    this.waitingSinceMs = this.owner.clock.monotonicMs();
  }

  private readonly onWriting = (socket: Socket): void => {
    this.writtenTo = { socket, isKept: this.carrier.exchanges > 0, bytesRead: socket.bytesRead };
  };

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.waitingSinceMs = this.owner.clock.monotonicMs();
    if (this.isOver || status < FIRST_FINAL_STATUS) return;
    const headers = headersOf(controller.rawHeaders);
    // Requests offer no other coding (RFC 9112 7.4), and content in one could not be relayed.
    if ((replyHeader(headers, 'transfer-encoding') ?? 'chunked').toLowerCase() !== 'chunked')
      return this.fail('no_reply');
    this.hasHead = true;
    this.tell((listener) => listener.onHead({ status, headers }));
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.waitingSinceMs = this.owner.clock.monotonicMs();
    this.tell((listener) => listener.onBody(chunk));
    if (this.isPauseDue) return;
    // undici does not say whether more of the same read follows, nor whether the reply ends with it.
    this.isPauseDue = true;
    setImmediate(this.pauseHere);
  }

  private readonly pauseHere = (): void => {
    this.isPauseDue = false;
    this.tell((listener) => listener.onPause());
  };

  onResponseEnd(): void {
    const { carrier, writtenTo, listener } = this;
    if (writtenTo !== null && !carrier.isShared && isCut(writtenTo.socket)) {
      this.fail('cut', writtenTo.socket.errored ?? undefined);
      return;
    }
    if (!this.endOnce('whole')) return;
    listener?.onEnd();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const fault = this.faultOf(error);
    if (this.isBeginning) queueMicrotask(() => this.fail(fault, error));
    else this.fail(fault, error);
  }

  private faultOf(error: Error): UpstreamFault {
    if (this.hasHead) return 'cut';
    if (!this.sent) return 'connect_failed';
    const { writtenTo } = this;
    // Where undici has not named the socket, nobody knows whether a byte of the reply has come.
    const isUnanswered = writtenTo?.isKept === true && writtenTo.socket.bytesRead === writtenTo.bytesRead;
    return isUnanswered && isLoss(error) ? 'stale_connection' : 'no_reply';
  }

  /** A fault of ours in a listener ends the one call, not the connections of others. */
  private tell(what: (listener: ExchangeListener) => void): void {
    const { listener } = this;
    if (listener === null) return;
    try {
      what(listener);
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.fail(this.hasHead ? 'cut' : 'no_reply');
    }
  }

  pause(): void {
    if (this.isPaused) return;
    this.isPaused = true;
    this.controller?.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.waitingSinceMs = this.owner.clock.monotonicMs();
    queueMicrotask(this.resumeLater);
  }

  /**
   * undici passes on what it has from within `resume`. The client's socket calls this while it reports that it has room
   * again: a write to the socket from within that report would lose its next one.
   */
  private readonly resumeLater = (): void => {
    if (!this.isPaused) this.controller?.resume();
  };

  endWithin(listener: ExchangeListener, withinMs: number): void {
    if (this.listener === listener) this.endByMs = Math.min(this.endByMs, this.owner.clock.monotonicMs() + withinMs);
  }

  /** Fails the exchange if it is out of time. */
  checkTime(nowMs: number): void {
    const { connectMs, firstByteMs, idleMs } = this.owner.timeouts;
    const waitedMs = nowMs - this.waitingSinceMs;
    const isOverdue = nowMs > this.endByMs;
    if (!this.sent) {
      if (isOverdue || waitedMs > connectMs) this.fail('connect_failed', undefined, 'out_of_time');
    } else if (isOverdue) {
      this.fail('total_timeout', undefined, 'out_of_time');
    } else if (!this.hasHead) {
      if (waitedMs > firstByteMs) this.fail('first_byte_timeout', undefined, 'out_of_time');
    } else if (!this.isPaused && waitedMs > idleMs) {
      this.fail('idle_timeout', undefined, 'out_of_time');
    }
  }

  abort(): void {
    this.listener = null;
    if (this.endOnce('given_up')) giveUp(this.controller);
  }

  private fail(fault: UpstreamFault, error?: Error, how: ExchangeEnd = 'given_up'): void {
    const { listener } = this;
    if (!this.endOnce(fault === 'stale_connection' ? 'lost' : how)) return;
    giveUp(this.controller);
    listener?.onFault(fault, error);
  }

  /** False when it was over before. */
  private endOnce(how: ExchangeEnd): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.listener = null;
    this.owner.onOver(this, how);
    return true;
  }
}

export const GIVEN_UP = new Error('the call was given up');

/**
 * Aborts in the next tick of the event loop: over HTTP/2, resetting a stream in the tick in which it was opened makes
 * Node's HTTP/2 write without end (undici 8.12.4 on Node 22; test/integration/upstream-transports.test.ts).
 */
function giveUp(controller: Dispatcher.DispatchController | null): void {
  if (controller !== null) setImmediate(() => controller.abort(GIVEN_UP));
}

function namesAndValues(headers: UpstreamRequest['headers']): readonly string[] {
  return headers instanceof HeaderLines ? headers.headers : headers;
}

/** undici may read the body long after this exchange is over, so it gets a copy of what lies in a pooled buffer. */
function copyOf(body: UpstreamRequest['body']): Buffer | null {
  if (body === null) return null;
  return body instanceof Uint8Array ? body : Buffer.concat(body.pieces);
}

type RawHeaders = Dispatcher.DispatchController['rawHeaders'];

/**
 * Names in lower case and values, alternating. undici has those of HTTP/2 as an object. In both forms one character is
 * one byte.
 */
function headersOf(raw: RawHeaders): string[] {
  if (raw === null || raw === undefined) return [];
  if (!Array.isArray(raw))
    return Object.entries(raw).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).flatMap((one) => [name.toLowerCase(), replyHeaderValue(String(one))]),
    );
  return raw.map((part, index) => {
    const text = typeof part === 'string' ? part : Buffer.from(part).toString('latin1');
    return index % 2 === 0 ? text.toLowerCase() : replyHeaderValue(text);
  });
}

/** Where only the end of the connection ends a reply, undici takes a reset for that end. */
function isCut(socket: Socket): boolean {
  return (socket.readableEnded || socket.errored !== null) && isReset(socket);
}

const LOSSES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** Whether the connection was lost, as when a server closes an idle one. */
function isLoss(error: Error): boolean {
  return LOSSES.has((error as NodeJS.ErrnoException).code ?? '');
}
