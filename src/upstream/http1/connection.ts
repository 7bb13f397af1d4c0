// One HTTP/1.1 connection to a provider: its socket, the exchange it carries, and whether it may carry another one.
//
//   connecting --up--> sending --sent--> awaiting --head--> replying --end of it--> idle --lent again--> sending
//       |                 |                 |                  |                     |
//       +-----------------+-----------------+------------------+---------------------+--> closed, for good
//
// The connection holds the pooled buffer of a request's body from `begin` until the socket's write has called back.
// Until then Node or the operating system may read that memory; Node also calls back, with an error, when the socket is
// destroyed. The connection does not become idle before that either.
//
// A connection has no timers: the origin's coarse clock calls `checkTime`.

import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import { assert } from '../../platform/assert.ts';
import type { PooledBuffer } from '../../platform/buffer-pool.ts';
import type { Clock } from '../../platform/clock.ts';
import { atTickEnd, isTickEnd, tickCount } from '../../platform/event-loop/tick.ts';
import type { CallConnection, ExchangeListener, UpstreamFault } from '../call-connection.ts';
import { KEEP_ALIVE_MS, KEEP_ALIVE_MS_MAX, type UpstreamTimeouts } from '../connection-limits.ts';
import { isReset } from '../is-reset.ts';
import { openSocket, type Peer } from './open-socket.ts';
import { ReplyReader } from './reply-reader.ts';
import type { UpstreamRequest } from './request-head.ts';
import { gather, sendSoon, TICKS_UNTIL_POLLED } from './sending.ts';

/** The origin that owns a connection. */
export interface ConnectionOwner {
  readonly peer: Peer;
  readonly clock: Clock;
  readonly timeouts: UpstreamTimeouts;
  onFree(connection: Connection): void;
  onClosed(connection: Connection): void;
}

/** The server counts its keep-alive time from when it sent the reply, this client from when it read the reply. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
/**
 * How long the connection waits for its write when a reply ends before its request is wholly written. Then it is
 * closed.
 */
const WRITE_WAIT_MS = 2_000;
/** After this time the operating system probes the peer (TCP keep-alive), to notice one that vanished. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

const NO_PIECES: readonly Uint8Array[] = [];
const NOTHING = Buffer.alloc(0);

/** All connections share this read buffer: what one read brings is dealt with before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536);

export class Connection implements CallConnection {
  /** Its place among its owner's connections. */
  index = -1;
  closed = false;
  readonly openedAtMs: number;
  /** While idle: until when it may be lent. */
  lendableUntilMs = 0;
  /** The present request has begun to go out. */
  sent = false;
  private readonly owner: ConnectionOwner;
  private readonly socket: Socket;
  private readonly reader = new ReplyReader();
  private listener: ExchangeListener | null = null;
  private request: UpstreamRequest | null = null;
  private head = '';
  private connected = false;
  private earlySession: Buffer | null = null;
  /** The write of the request has not called back. */
  private writing = false;
  /** Where the request's body lies; held until its write has called back. null: in memory of its own. */
  private pooled: PooledBuffer | null = null;
  /** The buffer of the request's head and of what was copied behind it; held until the write has called back. */
  private gathered: PooledBuffer | null = null;
  /** A byte has come since the request was sent. */
  private answered = false;
  /** Nothing more is to be read until `resume`. */
  private paused = false;
  /** The socket was told to stop reading. */
  private stopped = false;
  /** `onRead` is running. */
  private reading = false;
  private exchanges = 0;
  private freeSinceTick = 0;
  private readAtMs = 0;
  /** Since when the connection waits for its present step: being connected, the reply's head, or its next piece. */
  private waitingSinceMs: number;
  /** The deadline of the whole exchange. */
  private endByMs = Number.POSITIVE_INFINITY;

  constructor(owner: ConnectionOwner) {
    this.owner = owner;
    this.openedAtMs = owner.clock.monotonicMs();
    this.waitingSinceMs = this.openedAtMs;
    const onread = { buffer: READ_BUFFER, callback: this.onRead };
    this.socket = openSocket(owner.peer, { onread, onConnected: this.onConnected, onSession: this.onSession });
    this.socket.on('error', this.onError);
    this.socket.on('end', this.onEnd);
    this.socket.on('close', this.onError);
  }

  /**
   * A TLS session may come before the certificate is verified, and the certificate of a resumed session is not verified
   * again. So an early session is not used before the connection is up.
   */
  private readonly onSession = (session: Buffer): void => {
    if (this.connected) this.owner.peer.session = session;
    else this.earlySession = session;
  };

  private readonly onConnected = (): void => {
    this.connected = true;
    if (this.earlySession !== null) this.owner.peer.session = this.earlySession;
    this.earlySession = null;
    this.socket.setNoDelay(true);
    this.socket.setKeepAlive(true, TCP_KEEP_ALIVE_DELAY_MS);
    this.waitingSinceMs = this.owner.clock.monotonicMs();
    this.send();
  };

  /** Begins an exchange. `head` goes before the request's body. */
  begin(request: UpstreamRequest, head: string, listener: ExchangeListener, nowMs: number): void {
    this.request = request;
    this.waitingSinceMs = nowMs;
    this.head = head;
    this.listener = listener;
    this.sent = false;
    this.answered = false;
    this.endByMs = nowMs + this.owner.timeouts.totalMs;
    assert(!this.writing && this.pooled === null, 'a connection sends one request at a time');
    const { body } = request;
    this.pooled = body === null || body instanceof Uint8Array ? null : body.pooled;
    this.pooled?.pool.retain(this.pooled);
    this.reader.begin();
    if (this.connected && isTickEnd() && tickCount() - this.freeSinceTick >= TICKS_UNTIL_POLLED) {
      this.send();
      return;
    }
    if (this.connected) sendSoon(this);
  }

  /** Sends the request of the exchange that was begun. */
  send(): void {
    const { request, head, socket } = this;
    if (this.closed || request === null) return;
    this.request = null;
    this.head = '';
    this.sent = true;
    this.writing = true;
    const pieces = piecesOf(request.body);
    const gathered = gather(head, pieces);
    this.gathered = gathered.pooled;
    const beginning = gathered.pooled.buffer.subarray(0, gathered.bytes);
    // Encrypted bytes go out after `write` has returned. Plain bytes the operating system has nearly always taken by
    // then, and a callback for them would cost 2 to 4 % of a request.
    const onWritten = this.owner.peer.isTls ? this.onWritten : undefined;
    if (gathered.pieces === pieces.length) {
      // The whole body was copied, and the copy is sent.
      this.releaseBody();
      socket.write(beginning, onWritten);
    } else {
      // Corked, all pieces are one system call.
      socket.cork();
      socket.write(beginning);
      const last = pieces.length - 1;
      for (let index = gathered.pieces; index < last; index++) socket.write(pieces[index] as Buffer);
      socket.write(pieces[last] as Buffer, onWritten);
      socket.uncork();
    }
    if (onWritten !== undefined) return;
    if (socket.writableLength === 0) this.onWritten();
    else socket.write(NOTHING, this.onWritten);
  }

  /** Neither Node nor the system reads the request's memory any more, whether it went out or not. */
  private readonly onWritten = (): void => {
    this.writing = false;
    this.releaseBody();
    this.releaseGathered();
    // The reply ended before its request was written: only now may the connection carry another one.
    if (this.listener === null && !this.closed) this.becomeFree();
  };

  private releaseBody(): void {
    const { pooled } = this;
    this.pooled = null;
    pooled?.pool.release(pooled);
  }

  private releaseGathered(): void {
    const { gathered } = this;
    this.gathered = null;
    gathered?.pool.release(gathered);
  }

  private readonly onRead = (length: number): boolean => {
    const { listener, reader } = this;
    if (this.closed) return false;
    this.answered = true;
    if (listener === null || !this.sent) {
      // Nobody asked for these bytes: what comes after them on this connection cannot be trusted.
      this.fail('stale_connection');
      return true;
    }
    const hadHead = reader.head !== null;
    const interimHeads = reader.interimHeads;
    reader.read(READ_BUFFER, length);
    // After its head, each piece of a reply restarts the wait. Before, only an interim reply (1xx) does; a part of a
    // head does not.
    this.readAtMs = this.owner.clock.monotonicMs();
    if (reader.head !== null || reader.interimHeads > interimHeads) this.waitingSinceMs = this.readAtMs;
    this.reading = true;
    try {
      this.tell(listener, hadHead);
    } catch (fault) {
      // A bug of ours ends the one call, not the process with all others.
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      if (this.listener === listener) this.fail(reader.head === null ? 'no_reply' : 'cut');
    }
    this.reading = false;
    // Returning false stops the socket at less cost than `pause`, and makes the later `resume` cheaper, too.
    if (this.paused) this.stopped = true;
    return !this.paused;
  };

  /** Passes on what the last read brought. The listener may abort the call in any of these calls. */
  private tell(listener: ExchangeListener, hadHead: boolean): void {
    const { reader } = this;
    if (reader.head !== null && !hadHead) listener.onHead(reader.head);
    if (reader.body !== null && this.listener === listener) listener.onBody(reader.body);
    if (this.listener !== listener) return;
    if (reader.fault !== null) this.fail(reader.head === null ? 'no_reply' : 'cut');
    else if (reader.ended) this.finish();
    else if (reader.head !== null) listener.onPause();
  }

  /** The reply is complete. */
  private finish(): void {
    const { listener, reader } = this;
    this.listener = null;
    const keptMs = this.keptMs();
    if (reader.reusable && keptMs > 0 && !this.closed && this.socket.errored === null) {
      this.exchanges += 1;
      if (this.paused) this.resume();
      // Over TLS a write nearly always calls back after its reply, if the provider answers at once.
      if (this.writing) this.lendableUntilMs = this.readAtMs + Math.min(keptMs, WRITE_WAIT_MS);
      else this.becomeFree();
    } else {
      this.close();
    }
    listener?.onEnd();
  }

  private becomeFree(): void {
    this.freeSinceTick = tickCount();
    this.lendableUntilMs = this.readAtMs + this.keptMs();
    this.owner.onFree(this);
  }

  private keptMs(): number {
    const hintMs = this.reader.head?.keepAliveHintMs ?? null;
    return hintMs === null ? KEEP_ALIVE_MS : Math.min(hintMs - KEEP_ALIVE_MARGIN_MS, KEEP_ALIVE_MS_MAX);
  }

  private readonly onEnd = (): void => {
    if (this.closed) return;
    const { reader } = this;
    reader.endOfConnection();
    // Where only the end of the connection ends a reply, a reset is not that end: the reply is cut.
    if (this.listener !== null && reader.ended && !isReset(this.socket)) this.finish();
    else this.fail(this.faultOfLoss());
  };

  private readonly onError = (error: Error | boolean): void => {
    if (!this.closed) this.fail(this.faultOfLoss(), error instanceof Error ? error : undefined);
  };

  private faultOfLoss(): UpstreamFault {
    if (this.sent && this.reader.head !== null) return 'cut';
    if (!this.connected) return 'connect_failed';
    return this.exchanges > 0 && !this.answered ? 'stale_connection' : 'no_reply';
  }

  private fail(fault: UpstreamFault, error?: Error): void {
    const { listener } = this;
    this.listener = null;
    this.close();
    listener?.onFault(fault, error);
  }

  /** Closes an idle connection, or fails an exchange, that is out of time. */
  checkTime(nowMs: number): void {
    const { timeouts } = this.owner;
    if (this.listener === null) {
      if (nowMs >= this.lendableUntilMs) this.close();
      return;
    }
    const waitedMs = nowMs - this.waitingSinceMs;
    const isOver = nowMs > this.endByMs;
    if (!this.connected) {
      if (isOver || waitedMs > timeouts.connectMs) this.fail('connect_failed');
    } else if (isOver) {
      this.fail('total_timeout');
    } else if (this.reader.head === null) {
      if (waitedMs > timeouts.firstByteMs) this.fail('first_byte_timeout');
    } else if (!this.paused && waitedMs > timeouts.idleMs) {
      this.fail('idle_timeout');
    }
  }

  /**
   * The reply that goes to `listener` is no longer wanted: it must end within this time. If the request is not wholly
   * written at the end of this tick, the connection closes at once.
   */
  endWithin(listener: ExchangeListener, withinMs: number): void {
    // The reply may have ended already, and the connection carry another one.
    if (this.listener !== null && this.listener !== listener) return;
    this.endByMs = Math.min(this.endByMs, this.owner.clock.monotonicMs() + withinMs);
    // Over TLS the write may still call back in this tick.
    if (this.writing) atTickEnd(() => this.cutUnwritten(listener));
  }

  private cutUnwritten(listener: ExchangeListener): void {
    // Without a listener, the reply has ended meanwhile, and only its request is unwritten. With another listener, that
    // request was written, too.
    if (!this.writing || this.closed || (this.listener !== null && this.listener !== listener)) return;
    this.fail('cut');
  }

  pause(): void {
    if (this.paused || !this.connected) return;
    this.paused = true;
    if (this.reading) return;
    this.stopped = true;
    this.socket.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.waitingSinceMs = this.owner.clock.monotonicMs();
    if (!this.stopped) return;
    this.stopped = false;
    this.socket.resume();
  }

  /** Gives up the exchange and the connection; its listener is not called any more. */
  abort(): void {
    this.listener = null;
    this.close();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.request = null;
    if (!this.writing) this.releaseBody();
    this.socket.destroy();
    this.owner.onClosed(this);
  }
}

/** The pieces of a body, in the order in which they are sent. */
function piecesOf(body: UpstreamRequest['body']): readonly Uint8Array[] {
  if (body === null) return NO_PIECES;
  return body instanceof Uint8Array ? [body] : body.pieces;
}
