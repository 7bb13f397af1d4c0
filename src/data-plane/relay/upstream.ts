// Calls to providers: one connection per call at a time, a free list of kept connections per origin, every end told exactly once.
// No cap and no pipelining: a stream that queues behind another has its first byte seconds late (PERFORMANCE 3).

import type { ProviderTimeouts } from '../../domain/models/catalog.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import { Connection, type ConnectionKeeper, type ExchangeListener, type UpstreamFault } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { Peer } from './http1/open-socket.ts';
import type { ReplyHead, ReplyHeaders } from './http1/reply-head.ts';
import { requestHead, type UpstreamRequest } from './http1/request-head.ts';

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** What holds where a provider's configuration does not say otherwise. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 90_000, totalMs: 3_600_000 };

export interface ReplyListener {
  onReplyStart(status: number, headers: ReplyHeaders): void;
  /** The chunk is a view on memory that the next read uses again: who keeps it copies it. */
  onReplyData(chunk: Buffer): void;
  /** All that one read of the socket brought has been told, and the reply goes on. */
  onReplyPause(): void;
  onReplyEnd(): void;
  /** Not called after `abort`. */
  onReplyFault(fault: UpstreamFault): void;
}

export class UpstreamOrigin implements ConnectionKeeper {
  readonly origin: string;
  /** Calls whose reply has not ended. */
  openCalls = 0;
  readonly timeouts: UpstreamTimeouts;
  readonly clock: Clock;
  readonly peer: Peer;
  /** As the `host` header has it: without the scheme's own port. */
  private readonly host: string;
  /** Every connection that is not closed, in no order. */
  private readonly connections: Connection[] = [];
  /** Those that wait for a call, the last used on top; some may have been closed since. */
  private readonly free: Connection[] = [];
  private closing = false;

  constructor(origin: string, timeouts: UpstreamTimeouts = UPSTREAM_TIMEOUTS, clock: Clock = systemClock, names = new NameLookups(clock)) {
    this.origin = origin;
    this.timeouts = timeouts;
    this.clock = clock;
    const url = new URL(origin);
    const isTls = url.protocol === 'https:';
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
    this.peer = { isTls, host: url.hostname.replace(/^\[|\]$/g, ''), port, lookup: names.lookup, session: null };
    this.host = url.host;
  }

  /**
   * Starts a call. The listener hears of its end exactly once, unless the call is aborted first; never before this returns.
   * `onNewConnection`: not on a kept connection, which may be as dead as the one before it.
   */
  call(request: UpstreamRequest, listener: ReplyListener, onNewConnection: boolean): UpstreamCall {
    const call = new UpstreamCall(this, listener);
    this.openCalls += 1;
    const head = requestHead(request, this.host);
    if (head === null) {
      // A credential with a line break in it, say: the provider cannot be called with it.
      queueMicrotask(() => call.onFault('connect_failed'));
      return call;
    }
    const nowMs = this.clock.monotonicMs();
    const connection = (onNewConnection ? null : this.takeFree(nowMs)) ?? this.open();
    call.connection = connection;
    connection.begin(request, head, call, nowMs);
    return call;
  }

  /** Last in, first out: the connections in use stay few and warm, the others reach the end of their time. */
  private takeFree(nowMs: number): Connection | null {
    for (;;) {
      const connection = this.free.pop();
      if (connection === undefined) return null;
      if (!connection.closed && nowMs < connection.lendableUntilMs) return connection;
      connection.close();
    }
  }

  private open(): Connection {
    const connection = new Connection(this);
    connection.index = this.connections.length;
    this.connections.push(connection);
    return connection;
  }

  onFree(connection: Connection): void {
    if (this.closing) connection.close();
    else this.free.push(connection);
  }

  onClosed(connection: Connection): void {
    const last = this.connections.pop() as Connection;
    if (last === connection) return;
    this.connections[connection.index] = last;
    last.index = connection.index;
  }

  /** Ends calls and idle connections that are out of time. To be called from the process's coarse clock: without it there are no timeouts. */
  trim(): void {
    const nowMs = this.clock.monotonicMs();
    // One that is closed is replaced by the last, which has been looked at.
    for (let index = this.connections.length - 1; index >= 0; index--) this.connections[index]?.checkTime(nowMs);
    let kept = 0;
    for (const connection of this.free) if (!connection.closed) this.free[kept++] = connection;
    this.free.length = kept;
  }

  /** Closes what is idle now, and what carries a call when that has ended. */
  async close(): Promise<void> {
    this.closing = true;
    for (const connection of this.free) connection.close();
    this.free.length = 0;
  }
}

/** What is read of a reply that nobody hears, and for how long, so that its connection can be kept. */
const DISCARDED_BYTES_MAX = 65_536;
const DISCARDING_MS = 2_000;

export class UpstreamCall implements ExchangeListener {
  /** null: none was asked for. */
  connection: Connection | null = null;
  private readonly origin: UpstreamOrigin;
  private readonly listener: ReplyListener;
  private done = false;
  private discarding = false;
  private discardedBytes = 0;

  constructor(origin: UpstreamOrigin, listener: ReplyListener) {
    this.origin = origin;
    this.listener = listener;
  }

  onHead(head: ReplyHead): void {
    this.listener.onReplyStart(head.status, head.headers);
  }

  onBody(bytes: Buffer): void {
    if (!this.discarding) {
      this.listener.onReplyData(bytes);
      return;
    }
    this.discardedBytes += bytes.length;
    if (this.discardedBytes > DISCARDED_BYTES_MAX) this.abort();
  }

  onPause(): void {
    if (!this.discarding) this.listener.onReplyPause();
  }

  onEnd(): void {
    if (!this.settle() || this.discarding) return;
    this.listener.onReplyEnd();
  }

  onFault(fault: UpstreamFault): void {
    if (!this.settle() || this.discarding) return;
    this.listener.onReplyFault(fault);
  }

  /** Its request has begun to go out. */
  get sent(): boolean {
    return this.connection?.sent ?? false;
  }

  /** False when the call has ended before. */
  private settle(): boolean {
    if (this.done) return false;
    this.done = true;
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

  /** Lets the reply come to its end unheard, so that the connection can be kept; a long or a late one is cut, and one whose request is not written. */
  discard(): void {
    if (this.done) return;
    this.discarding = true;
    this.connection?.hurry(this, DISCARDING_MS);
  }

  /** Cuts the call: the provider sees its connection close. The listener hears nothing more. */
  abort(): void {
    if (this.settle()) this.connection?.abort();
  }
}
