// The client's side of a relay: gathers what the provider sent, writes it in as few packets as possible, and says when
// the client is full.

import { Buffer } from 'node:buffer';
import { type Exchange, type HeaderList, NO_HEADERS } from '../../http/exchange.ts';
import { passesToClient } from '../../upstream/header-policy.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import type { UsageChunkFilter } from '../sse/usage-chunk-filter.ts';

/** A reply's length when the provider sent it in chunks. */
export const CHUNKED = -1;

/** Whose reply it is. */
export interface WriterOwner {
  /** The client's socket takes bytes again. */
  onRoom(): void;
}

export class ReplyWriter {
  /** The client's socket is full: nothing is written, and the provider should not be read, until `onRoom`. */
  blocked = false;
  /** Status and headers have gone out. */
  begun = false;
  private readonly exchange: Exchange;
  private readonly owner: WriterOwner;
  private status = 0;
  private ownHeaders: HeaderList = NO_HEADERS;
  private replyHeaders: ReplyHeaders = NO_HEADERS;
  private totalBytes = CHUNKED;
  /** What waits to be written: one piece, or several. */
  private piece: Buffer | null = null;
  private pieces: Buffer[] | null = null;
  /** What waits to be written. */
  pendingBytes = 0;
  /** null: the client gets every byte. */
  private filter: UsageChunkFilter | null = null;
  /** The reply is whole: the next flush ends the response. */
  private ending = false;

  constructor(exchange: Exchange, owner: WriterOwner) {
    this.exchange = exchange;
    this.owner = owner;
  }

  /**
   * `replyHeaders`: the provider's, of which those go along that may. `totalBytes`: the declared length of the body, or
   * CHUNKED.
   */
  start(
    status: number,
    ownHeaders: HeaderList,
    replyHeaders: ReplyHeaders,
    totalBytes: number,
    filter: UsageChunkFilter | null = null,
  ): void {
    this.status = status;
    this.ownHeaders = ownHeaders;
    this.replyHeaders = replyHeaders;
    this.totalBytes = filter === null ? totalBytes : CHUNKED;
    this.filter = filter;
  }

  push(chunk: Buffer): void {
    this.take(this.filter === null ? chunk : this.filter.feed(chunk));
  }

  private take(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (this.pieces !== null) this.pieces.push(chunk);
    else if (this.piece === null) this.piece = chunk;
    else this.pieces = [this.piece, chunk];
    this.pendingBytes += chunk.length;
  }

  /** Forgets what was not written: the client is gone. */
  drop(): void {
    this.forgetPending();
    this.blocked = false;
  }

  /** Writes what there is; `whole` ends the response with it. */
  flush(whole: boolean): void {
    if (this.blocked) return;
    if (whole && this.filter !== null) this.take(this.filter.end());
    this.ending = whole;
    writeWithin(this.exchange, this);
  }

  /** Within a cork. */
  writeOut(): void {
    const { exchange } = this;
    if (!this.begun) {
      this.begun = true;
      exchange.begin(this.status, this.ownHeaders, this.replyHeaders, passesToClient);
      // A reply that is whole already goes out with its length, in one piece.
      if (this.ending && (this.totalBytes === CHUNKED || this.totalBytes === this.pendingBytes)) {
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
    if (this.ending) exchange.end();
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
    this.blocked = true;
    this.exchange.onWritable(() => {
      this.blocked = false;
      this.owner.onRoom();
    });
  }
}

/**
 * Whose bytes are being written. A cork calls back at once, so one function does for all: one made for each reply costs
 * it a little each time.
 */
let writing: ReplyWriter | null = null;

function writeWithin(exchange: Exchange, writer: ReplyWriter): void {
  writing = writer;
  exchange.cork(writeOut);
  writing = null;
}

function writeOut(): void {
  writing?.writeOut();
}

const NOTHING = Buffer.alloc(0);
