// Calls to providers over undici: one connection per lane, a free list of lanes per origin, every timer set, every end told exactly once.
// undici's own Pool searches its busy connections one by one, which doubles every request's cost at 5,000 open streams (PERFORMANCE 3).

import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { ProviderTimeouts } from '../../domain/models/catalog.ts';

type DispatchController = Dispatcher.DispatchController;
export type ReplyHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** What holds where a provider's configuration does not say otherwise. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 90_000, totalMs: 3_600_000 };

/** How a call to a provider failed. */
export type UpstreamFault =
  /** No connection: not a byte was sent. */
  | 'connect_failed'
  /** A kept connection turned out dead before any reply byte: the provider had closed it. */
  | 'stale_connection'
  /** The bytes may have been sent; no reply byte came. */
  | 'no_reply'
  /** No reply byte came within the first-byte timeout. */
  | 'first_byte_timeout'
  /** The reply began and was cut, or stalled beyond the idle timeout. */
  | 'cut';

export interface ReplyListener {
  onReplyStart(status: number, headers: ReplyHeaders): void;
  /** The chunk is the listener's to keep. */
  onReplyData(chunk: Buffer): void;
  /** `requestWritten`: the request's bytes have left our memory, so that their buffer may be used again. */
  onReplyEnd(requestWritten: boolean): void;
  /** Not called after `abort`. */
  onReplyFault(fault: UpstreamFault): void;
}

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Names and values, alternating. */
  readonly headers: string[];
  /** null: the request has none. */
  readonly body: Buffer | null;
}

/** One keep-alive connection. */
interface Lane {
  readonly client: Client;
  socket: Socket | null;
  /** Replies completed on the present socket: above 0 it is a kept connection. */
  repliesOnSocket: number;
}

export class UpstreamOrigin {
  readonly origin: string;
  /** Calls whose reply has not ended. */
  openCalls = 0;
  readonly timeouts: UpstreamTimeouts;
  private free: Lane[] = [];

  constructor(origin: string, timeouts: UpstreamTimeouts = UPSTREAM_TIMEOUTS) {
    this.origin = origin;
    this.timeouts = timeouts;
  }

  /**
   * Starts a call. The listener hears of its end exactly once, unless the call is aborted first.
   * `onNewConnection`: not on a kept connection, which may be as dead as the one before it.
   */
  call(request: UpstreamRequest, listener: ReplyListener, onNewConnection: boolean): UpstreamCall {
    // Last in, first out: the connections in use stay few and warm, the others reach their keep-alive timeout.
    const lane = onNewConnection ? this.openLane() : (this.free.pop() ?? this.openLane());
    this.openCalls += 1;
    const call = new UpstreamCall(this, lane, listener);
    lane.client.dispatch(
      {
        path: request.path,
        method: request.method,
        headers: request.headers,
        body: request.body,
        headersTimeout: this.timeouts.firstByteMs,
        bodyTimeout: this.timeouts.idleMs,
      },
      call,
    );
    return call;
  }

  private openLane(): Lane {
    const connect = buildConnector({ timeout: this.timeouts.connectMs, allowH2: false });
    const client = new Client(this.origin, {
      pipelining: 1,
      maxHeaderSize: 65_536,
      keepAliveTimeout: 4_000,
      connect: (options, callback) =>
        connect(options, (error, socket) => {
          if (error !== null) {
            callback(error, null);
            return;
          }
          lane.socket = socket;
          lane.repliesOnSocket = 0;
          socket.setNoDelay(true);
          callback(null, socket);
        }),
    });
    const lane: Lane = { client, socket: null, repliesOnSocket: 0 };
    return lane;
  }

  /** A lane comes back when its reply has ended; an undici client opens a new socket by itself if the old one is gone. */
  release(lane: Lane): void {
    this.openCalls -= 1;
    this.free.push(lane);
  }

  /** Drops lanes without a live socket, which a burst leaves behind. Called from the coarse clock. */
  trim(): void {
    const live: Lane[] = [];
    for (const lane of this.free) {
      if (lane.socket !== null && !lane.socket.destroyed) live.push(lane);
      else lane.client.destroy().catch(() => undefined);
    }
    this.free = live;
  }

  async close(): Promise<void> {
    const lanes = this.free;
    this.free = [];
    await Promise.allSettled(lanes.map((lane) => lane.client.destroy()));
  }
}

const DISCARDED_BYTES_MAX = 65_536;

class AbortedByGateway extends Error {}

export class UpstreamCall implements Dispatcher.DispatchHandler {
  private readonly origin: UpstreamOrigin;
  private readonly lane: Lane;
  private readonly listener: ReplyListener;
  private controller: DispatchController | null = null;
  private replied = false;
  private done = false;
  private discarding = false;
  private discardedBytes = 0;
  /** What the connection had received before this call; null on a new one. */
  private readonly bytesReadBefore: number | null;

  constructor(origin: UpstreamOrigin, lane: Lane, listener: ReplyListener) {
    this.origin = origin;
    this.lane = lane;
    this.listener = listener;
    this.bytesReadBefore = lane.repliesOnSocket > 0 ? (lane.socket?.bytesRead ?? null) : null;
  }

  onRequestStart(controller: DispatchController): void {
    if (this.done) controller.abort(new AbortedByGateway());
    else this.controller = controller;
  }

  onResponseStart(_controller: DispatchController, status: number, headers: ReplyHeaders): void {
    // 1xx are the connection's business, not a reply.
    if (status < 200 || this.done) return;
    this.replied = true;
    this.listener.onReplyStart(status, headers);
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.done) return;
    if (!this.discarding) {
      this.listener.onReplyData(chunk);
      return;
    }
    this.discardedBytes += chunk.length;
    if (this.discardedBytes > DISCARDED_BYTES_MAX) this.abort();
  }

  onResponseEnd(): void {
    if (this.done) return;
    this.done = true;
    this.lane.repliesOnSocket += 1;
    const requestWritten = this.lane.socket?.writableLength === 0;
    this.origin.release(this.lane);
    if (!this.discarding) this.listener.onReplyEnd(requestWritten);
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    if (this.done) return;
    this.done = true;
    this.origin.release(this.lane);
    if (!this.discarding) this.listener.onReplyFault(this.classify(error));
  }

  private classify(error: Error): UpstreamFault {
    if (this.replied) return 'cut';
    if (this.controller === null) return 'connect_failed';
    if ('code' in error && error.code === 'UND_ERR_HEADERS_TIMEOUT') return 'first_byte_timeout';
    // A reply that could not be read (its headers are too long, it is no HTTP) is one all the same: the provider has done its work.
    return this.bytesReadBefore !== null && this.lane.socket?.bytesRead === this.bytesReadBefore ? 'stale_connection' : 'no_reply';
  }

  /** Stops reading the provider until `resume`. */
  pause(): void {
    this.controller?.pause();
  }

  resume(): void {
    this.controller?.resume();
  }

  /** Lets the reply come to its end unheard, so that the connection can be kept; a long one is cut. */
  discard(): void {
    this.discarding = true;
  }

  /** Cuts the call: the provider sees its connection close. The listener hears nothing more. */
  abort(): void {
    if (this.done) return;
    this.done = true;
    this.origin.release(this.lane);
    // Before the connection is up there is no controller: `onRequestStart` then aborts.
    this.controller?.abort(new AbortedByGateway());
  }
}
