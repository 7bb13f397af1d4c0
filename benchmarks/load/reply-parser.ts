// Reads HTTP/1.1 replies from the bytes of one connection: status, body length or chunks, and the stamps of stream
// events. Just what the load needs.

import { STAMP_MARK } from '../stub/reply-bodies.ts';

const HEAD_END = Buffer.from('\r\n\r\n');
const MARK = Buffer.from(STAMP_MARK);
const STAMP_DIGITS = 16;
const EVENT_BYTES_HELD_MAX = MARK.length + STAMP_DIGITS;

export interface ReplyListener {
  /** The first bytes of a reply. */
  onFirstByte(): void;
  /** A stamped event, with the stub's time in nanoseconds. */
  onEvent(stampNs: number): void;
  onReply(status: number, bodyBytes: number): void;
  onBadReply(reason: string): void;
}

type State = 'head' | 'length' | 'chunk-size' | 'chunk-bytes' | 'chunk-end' | 'trailer';

export class ReplyParser {
  private readonly listener: ReplyListener;
  private readonly findEvents: boolean;
  private state: State = 'head';
  /** Bytes that could not be judged yet: an incomplete head or chunk-size line. */
  private held: Buffer | null = null;
  private status = 0;
  private left = 0;
  private bodyBytes = 0;
  private firstByteSeen = false;
  /** The end of the last piece of body, where a stamp may have been cut. */
  private eventTail: Buffer = Buffer.alloc(0);

  constructor(listener: ReplyListener, findEvents: boolean) {
    this.listener = listener;
    this.findEvents = findEvents;
  }

  /** Takes what the socket read. The buffer may be reused by the caller afterwards. */
  push(read: Buffer): void {
    if (!this.firstByteSeen) {
      this.firstByteSeen = true;
      this.listener.onFirstByte();
    }
    let bytes = read;
    if (this.held !== null) {
      bytes = Buffer.concat([this.held, read]);
      this.held = null;
    }
    let at = 0;
    while (at < bytes.length) {
      const next = this.step(bytes, at);
      if (next < 0) {
        this.held = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** Handles the bytes at `at`; returns where to go on, or -1 when more bytes are needed. */
  private step(bytes: Buffer, at: number): number {
    switch (this.state) {
      case 'head':
        return this.head(bytes, at);
      case 'length':
      case 'chunk-bytes':
        return this.body(bytes, at);
      case 'chunk-size':
        return this.chunkSize(bytes, at);
      case 'chunk-end':
        if (bytes.length - at < 2) return -1;
        this.state = 'chunk-size';
        return at + 2;
      case 'trailer':
        // No proxy under test sends trailers: the empty line ends the reply.
        if (bytes.length - at < 2) return -1;
        this.end();
        return at + 2;
    }
  }

  private head(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(HEAD_END, at);
    if (end < 0) return -1;
    const head = bytes.toString('latin1', at, end).toLowerCase();
    this.status = Number(head.slice(9, 12));
    this.bodyBytes = 0;
    const lengthAt = head.indexOf('\r\ncontent-length:');
    if (lengthAt >= 0) {
      this.left = Number.parseInt(head.slice(lengthAt + 17), 10);
      this.state = 'length';
      if (this.left === 0) this.end();
    } else if (head.includes('\r\ntransfer-encoding: chunked')) {
      this.state = 'chunk-size';
    } else {
      this.listener.onBadReply(`a reply without a length: ${head.slice(0, 80)}`);
    }
    return end + HEAD_END.length;
  }

  private chunkSize(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(10, at);
    if (end < 0) return -1;
    this.left = Number.parseInt(bytes.toString('latin1', at, end), 16);
    this.state = this.left === 0 ? 'trailer' : 'chunk-bytes';
    return end + 1;
  }

  private body(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.left);
    this.bodyBytes += end - at;
    this.left -= end - at;
    if (this.findEvents) this.scanEvents(bytes, at, end);
    if (this.left === 0) {
      if (this.state === 'length') this.end();
      else this.state = 'chunk-end';
    }
    return end;
  }

  private scanEvents(bytes: Buffer, start: number, end: number): void {
    let piece = bytes;
    let at = start;
    let limit = end;
    if (this.eventTail.length > 0) {
      piece = Buffer.concat([this.eventTail, bytes.subarray(start, end)]);
      at = 0;
      limit = piece.length;
      this.eventTail = piece.subarray(0, 0);
    }
    for (;;) {
      const mark = piece.indexOf(MARK, at);
      if (mark < 0 || mark + EVENT_BYTES_HELD_MAX > limit) break;
      this.listener.onEvent(Number(piece.toString('latin1', mark + MARK.length, mark + EVENT_BYTES_HELD_MAX)));
      at = mark + EVENT_BYTES_HELD_MAX;
    }
    // A piece that ends with a whole event holds nothing back, which is the rule on an unloaded path.
    if (piece[limit - 1] === 10) return;
    this.eventTail = Buffer.from(piece.subarray(Math.max(at, limit - EVENT_BYTES_HELD_MAX), limit));
  }

  private end(): void {
    this.state = 'head';
    this.firstByteSeen = false;
    this.eventTail = Buffer.alloc(0);
    this.listener.onReply(this.status, this.bodyBytes);
  }
}
