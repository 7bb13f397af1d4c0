// The connections to one provider's address: a free list of kept ones, from which each call takes one or opens a new
// one. No cap and no pipelining: a stream that queues behind another has its first byte seconds late (PERFORMANCE 3).

import type { ProviderTimeouts } from '../domain/models/catalog.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { type CallObserver, UpstreamCall } from './call.ts';
import { Connection, type ConnectionOwner } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { Peer } from './http1/open-socket.ts';
import type { UpstreamRequest } from './http1/request-head.ts';
import type { ReplyHandler } from './reply-handler.ts';

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** What holds where a provider's configuration does not say otherwise. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 90_000,
  totalMs: 3_600_000,
};

export class UpstreamOrigin implements ConnectionOwner {
  readonly origin: string;
  /** Calls whose reply has not ended. */
  openCalls = 0;
  readonly timeouts: UpstreamTimeouts;
  readonly clock: Clock;
  readonly peer: Peer;
  /** As the `host` header has it: without the scheme's own port. */
  readonly host: string;
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

  /** Starts a call. The handler hears of its end exactly once, unless the call is aborted first. */
  call(request: UpstreamRequest, handler: ReplyHandler, observer?: CallObserver): UpstreamCall {
    const call = new UpstreamCall(this, request, handler, observer);
    try {
      call.send(false);
    } catch (fault) {
      // A connection that was given the request would still hold its body.
      call.abort();
      throw fault;
    }
    return call;
  }

  connect(nowMs: number, onNewConnection: boolean): Connection {
    return (onNewConnection ? null : this.takeFree(nowMs)) ?? this.open();
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
