// The connections to one provider's address: a free list of kept ones, from which each call takes one or opens a new
// one. There is no cap and no pipelining: a stream that queued behind another one would have its first byte seconds
// late.

import { type Clock, systemClock } from '../platform/clock.ts';
import type { EgressGuard } from '../platform/egress/egress-guard.ts';
import { type CallObserver, type ProviderOrigin, startCall, type UpstreamCall } from './call.ts';
import { LENT_MS_MAX, UPSTREAM_TIMEOUTS, type UpstreamTimeouts } from './connection-limits.ts';
import { Connection, type ConnectionOwner } from './http1/connection.ts';
import { NameLookups } from './http1/name-lookups.ts';
import type { Peer } from './http1/open-socket.ts';
import type { UpstreamRequest } from './http1/request-head.ts';
import type { ReplyHandler } from './reply-handler.ts';
import type { TlsOptions } from './tls-files.ts';

export class UpstreamOrigin implements ConnectionOwner, ProviderOrigin {
  readonly origin: string;
  /** The number of calls whose reply has not ended. */
  openCalls = 0;
  readonly timeouts: UpstreamTimeouts;
  readonly clock: Clock;
  readonly peer: Peer;
  /** The value of the `host` header: without the scheme's default port. */
  readonly host: string;
  /** Every connection that is not closed, in no order. */
  private readonly connections: Connection[] = [];
  /** The idle connections, the last used on top; some may have been closed since. */
  private readonly free: Connection[] = [];
  private closing = false;

  constructor(
    origin: string,
    timeouts: UpstreamTimeouts = UPSTREAM_TIMEOUTS,
    clock: Clock = systemClock,
    names = new NameLookups(clock),
    tls: TlsOptions = {},
    guard: EgressGuard | null = null,
  ) {
    this.origin = origin;
    this.timeouts = timeouts;
    this.clock = clock;
    const url = new URL(origin);
    const isTls = url.protocol === 'https:';
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
    this.peer = {
      isTls,
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port,
      lookup: names.lookup,
      tls,
      guard,
      session: null,
    };
    this.host = url.host;
  }

  call(request: UpstreamRequest, handler: ReplyHandler, observer?: CallObserver): UpstreamCall {
    return startCall(this, request, handler, observer);
  }

  connect(nowMs: number, onNewConnection: boolean): Connection {
    return (onNewConnection ? null : this.takeFree(nowMs)) ?? this.open();
  }

  /** Last in, first out: the connections in use stay few and warm, the others reach the end of their time. */
  private takeFree(nowMs: number): Connection | null {
    for (;;) {
      const connection = this.free.pop();
      if (connection === undefined) return null;
      const isYoung = nowMs - connection.openedAtMs < LENT_MS_MAX;
      if (!connection.closed && isYoung && nowMs < connection.lendableUntilMs) return connection;
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

  trim(): void {
    const nowMs = this.clock.monotonicMs();
    // A closed connection is replaced by the last one, which was checked already.
    for (let index = this.connections.length - 1; index >= 0; index--) this.connections[index]?.checkTime(nowMs);
    let kept = 0;
    for (const connection of this.free) if (!connection.closed) this.free[kept++] = connection;
    this.free.length = kept;
  }

  async close(): Promise<void> {
    this.closing = true;
    for (const connection of this.free) connection.close();
    this.free.length = 0;
  }
}
