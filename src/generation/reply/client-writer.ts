// The last handler of a reply: writes it to the client in as few packets as possible, and stops the reading of the
// provider while the client's socket is full.

import { Buffer } from 'node:buffer';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type HeaderList, NO_HEADERS } from '../../http/response-headers.ts';
import type { Clock } from '../../platform/clock.ts';
import { isTimeout, type UpstreamFault } from '../../upstream/call-connection.ts';
import { passesToClient } from '../../upstream/header-policy.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import type { ReplyHandler } from '../../upstream/reply-handler.ts';

/** A reply's length when the provider did not declare it. */
const CHUNKED = -1;

/** The relay or pass-through whose reply is written. */
export interface WriterOwner {
  /** Stops reading the provider: the client's socket is full. */
  pause(): void;
  /** The client's socket takes bytes again. */
  onRoom(): void;
  /** The response is complete, cut or refused. May be called more than once. */
  onOver(): void;
  onOwnFault(fault: unknown): void;
  /** The refusal that the client gets when the provider does not accept the key. */
  readonly keyRefusal: Refusal;
}

export class ClientWriter implements ReplyHandler {
  /** Since when the client's socket is full and nothing is written to it; 0: it takes bytes. */
  blockedSinceMs = 0;
  /** How many bytes wait to be written. */
  pendingBytes = 0;
  private readonly exchange: Exchange;
  private readonly ownHeaders: HeaderList;
  private readonly clock: Clock;
  private readonly owner: WriterOwner;
  private status = 0;
  private replyHeaders: ReplyHeaders = NO_HEADERS;
  private totalBytes = CHUNKED;
  /** Status and headers have gone out. */
  private begun = false;
  /** The bytes that wait to be written: one piece, or several. */
  private piece: Buffer | null = null;
  private pieces: Buffer[] | null = null;
  /** The refusal that the client gets instead of the reply. */
  private refusal: Refusal | null = null;
  /** What follows once everything is written; null: the reply goes on. */
  private finish: 'end' | 'cut' | null = null;

  constructor(exchange: Exchange, ownHeaders: HeaderList, clock: Clock, owner: WriterOwner) {
    this.exchange = exchange;
    this.ownHeaders = ownHeaders;
    this.clock = clock;
    this.owner = owner;
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    const length = replyHeader(headers, 'content-length');
    this.status = status;
    this.replyHeaders = headers;
    this.totalBytes = length === undefined ? CHUNKED : Number(length);
  }

  /** `chunk` must not change until it is written. */
  onReplyData(chunk: Buffer): void {
    if (chunk.length === 0 || this.exchange.closed) return;
    if (this.pieces !== null) this.pieces.push(chunk);
    else if (this.piece === null) this.piece = chunk;
    else this.pieces = [this.piece, chunk];
    this.pendingBytes += chunk.length;
  }

  onReplyPause(): void {
    this.flush();
  }

  /** Only while nothing of the reply has come to this writer. */
  refuseInstead(refusal: Refusal): void {
    this.refusal = refusal;
  }

  onReplyEnd(): void {
    if (this.refusal !== null) {
      this.exchange.refuse(this.refusal, this.ownHeaders);
      this.owner.onOver();
      return;
    }
    this.finish = 'end';
    this.flush();
  }

  /**
   * A reply that broke off is cut for the client too, after the bytes that came. Without a byte it counts as no reply.
   */
  onReplyFault(fault: UpstreamFault): void {
    if (fault === 'cut' && (this.begun || this.pendingBytes > 0)) {
      this.finish = 'cut';
      this.flush();
      return;
    }
    const kind = isTimeout(fault) ? 'upstream_timeout' : 'upstream_unreachable';
    this.exchange.refuse({ kind }, this.ownHeaders);
    this.owner.onOver();
  }

  onKeyRefused(): void {
    this.exchange.refuse(this.owner.keyRefusal, this.ownHeaders);
    this.owner.onOver();
  }

  /** The client is gone: drops what was not written. */
  drop(): void {
    this.forgetPending();
    this.blockedSinceMs = 0;
  }

  private flush(): void {
    const { exchange, owner } = this;
    try {
      if (!exchange.closed && this.blockedSinceMs === 0) writeWithin(exchange, this);
      if (this.blockedSinceMs !== 0) owner.pause();
      else if (this.finish === 'cut') exchange.cut();
    } catch (fault) {
      owner.onOwnFault(fault);
      return;
    }
    if (exchange.closed && this.finish !== null) owner.onOver();
  }

  /** Called within a cork. */
  writeOut(): void {
    const { exchange } = this;
    const isWhole = this.finish === 'end';
    if (!this.begun) {
      // As long as nothing is written, the client can still be told that there is no reply.
      if (this.pendingBytes === 0 && !isWhole) return;
      this.begun = true;
      exchange.begin(this.status, this.ownHeaders, this.replyHeaders, passesToClient);
      // A reply that is complete before its first write goes out in one piece, with its length.
      if (isWhole && (this.totalBytes === CHUNKED || this.totalBytes === this.pendingBytes)) {
        exchange.end(this.takePending());
        return;
      }
    }
    if (this.pendingBytes > 0) {
      const bytes = this.takePending();
      const room = this.totalBytes === CHUNKED ? exchange.write(bytes) : exchange.writeOfTotal(bytes, this.totalBytes);
      if (exchange.closed) return;
      if (!room) {
        this.waitForRoom();
        return;
      }
    }
    if (isWhole) exchange.end();
  }

  private takePending(): Buffer {
    const bytes = this.pieces === null ? (this.piece ?? NOTHING) : Buffer.concat(this.pieces, this.pendingBytes);
    this.forgetPending();
    return bytes;
  }

  private forgetPending(): void {
    this.piece = null;
    this.pieces = null;
    this.pendingBytes = 0;
  }

  private waitForRoom(): void {
    this.blockedSinceMs = this.clock.monotonicMs();
    this.exchange.onWritable(() => {
      this.blockedSinceMs = 0;
      this.owner.onRoom();
    });
  }
}

/**
 * The writer whose bytes are being written. `cork` runs its function at once, so one function serves all writers and no
 * closure is made for each write.
 */
let writing: ClientWriter | null = null;

function writeWithin(exchange: Exchange, writer: ClientWriter): void {
  writing = writer;
  exchange.cork(writeOut);
  writing = null;
}

function writeOut(): void {
  writing?.writeOut();
}

const NOTHING = Buffer.alloc(0);
