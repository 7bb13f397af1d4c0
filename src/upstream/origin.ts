// Calls to providers: one connection per call at a time, a free list of kept connections per origin, every end told
// exactly once. No cap and no pipelining: a stream that queues behind another has its first byte seconds late
// (PERFORMANCE 3).

import { Buffer } from 'node:buffer';
import type { ProviderTimeouts } from '../domain/models/catalog.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { Connection, type ConnectionKeeper, type ExchangeListener, type UpstreamFault } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { Peer } from './http1/open-socket.ts';
import type { ReplyHead, ReplyHeaders } from './http1/reply-head.ts';
import { requestHead, type UpstreamRequest } from './http1/request-head.ts';
import { EXAMINED_BYTES_MAX, refusesKey } from './refused-key.ts';

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** What holds where a provider's configuration does not say otherwise. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 90_000,
  totalMs: 3_600_000,
};

export interface ReplyListener {
  onReplyStart(status: number, headers: ReplyHeaders): void;
  /** The chunk is a view on memory that the next read uses again: who keeps it copies it. */
  onReplyData(chunk: Buffer): void;
  /** All that one read of the socket brought has been told, and the reply goes on. */
  onReplyPause(): void;
  onReplyEnd(): void;
  /** The provider does not accept the key of the call, and nothing more is told of it. Instead of `onReplyStart`. */
  onKeyRefused(status: number): void;
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

  constructor(
    origin: string,
    timeouts: UpstreamTimeouts = UPSTREAM_TIMEOUTS,
    clock: Clock = systemClock,
    names = new NameLookups(clock),
  ) {
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
   * Starts a call. The listener hears of its end exactly once, unless the call is aborted first; never before this
   * returns. `onNewConnection`: not on a kept connection, which may be as dead as the one before it.
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

  /**
   * Ends calls and idle connections that are out of time. To be called from the process's coarse clock: without it
   * there are no timeouts.
   */
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
  /** null: there is nothing to find out about the reply. */
  private examined: ExaminedReply | null = null;

  constructor(origin: UpstreamOrigin, listener: ReplyListener) {
    this.origin = origin;
    this.listener = listener;
  }

  onHead(head: ReplyHead): void {
    const { status } = head;
    if (status === 401 || status === 402) this.refuseKey(status);
    else if (status === 400 || status === 403) this.examined = new ExaminedReply(head, () => this.examineLate());
    else this.listener.onReplyStart(status, head.headers);
  }

  onBody(bytes: Buffer): void {
    if (this.examined !== null) {
      if (this.examined.hold(bytes)) this.examine();
    } else if (!this.discarding) {
      this.listener.onReplyData(bytes);
    } else {
      this.discardedBytes += bytes.length;
      if (this.discardedBytes > DISCARDED_BYTES_MAX) this.abort();
    }
  }

  onPause(): void {
    if (!this.discarding && this.examined === null) this.listener.onReplyPause();
  }

  onEnd(): void {
    this.examine();
    if (!this.settle() || this.discarding) return;
    this.listener.onReplyEnd();
  }

  onFault(fault: UpstreamFault): void {
    this.examine();
    if (!this.settle() || this.discarding) return;
    this.listener.onReplyFault(fault);
  }

  /** What is here of a reply that may refuse the key decides: it does, or all of it goes on to the listener. */
  private examine(): void {
    const { examined } = this;
    if (examined === null) return;
    this.examined = null;
    const { status, headers } = examined.head;
    const body = examined.end();
    if (refusesKey(status, body)) {
      this.refuseKey(status);
      return;
    }
    this.listener.onReplyStart(status, headers);
    if (body.length > 0 && !this.done) this.listener.onReplyData(body);
  }

  /** The rest of the reply has not come in time. */
  private examineLate(): void {
    try {
      this.examine();
      this.onPause();
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.abort();
      this.listener.onReplyFault('cut');
    }
  }

  private refuseKey(status: number): void {
    this.discard();
    this.listener.onKeyRefused(status);
  }

  /** Its request has begun to go out. */
  get sent(): boolean {
    return this.connection?.sent ?? false;
  }

  /** False when the call has ended before. */
  private settle(): boolean {
    if (this.done) return false;
    this.done = true;
    this.examined?.end();
    this.examined = null;
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
    if (this.done) return;
    this.discarding = true;
    this.connection?.endWithin(this, DISCARDING_MS);
  }

  /** Cuts the call: the provider sees its connection close. The listener hears nothing more. */
  abort(): void {
    if (this.settle()) this.connection?.abort();
  }
}

/** So long the decision waits for the rest of a reply. */
const EXAMINING_MS = 2_000;

/** A reply that may mean a refused key, held back until that is known. */
class ExaminedReply {
  readonly head: ReplyHead;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(head: ReplyHead, onLate: () => void) {
    this.head = head;
    this.timer = setTimeout(onLate, EXAMINING_MS);
  }

  /** True: that is enough. */
  hold(chunk: Buffer): boolean {
    this.chunks.push(Buffer.from(chunk));
    this.bytes += chunk.length;
    return this.bytes >= EXAMINED_BYTES_MAX;
  }

  /** All that was held. */
  end(): Buffer {
    clearTimeout(this.timer);
    return Buffer.concat(this.chunks);
  }
}
