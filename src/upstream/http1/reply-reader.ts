// Reads the replies of one connection, one exchange at a time. It makes no callbacks: its owner looks at the result
// after each read. So a listener may do anything, even begin another call, and no reader is in the middle of its work.

import { Buffer } from 'node:buffer';
import { HEAD_BYTES_MAX } from '../connection-limits.ts';
import { ChunkedBody } from './chunked-body.ts';
import { faultOfBeginning, type ReplyFault, type ReplyHead, readReplyHead } from './reply-head.ts';

/** The limit of interim replies (1xx, such as 103) before a reply. */
const INTERIM_HEADS_MAX = 32;
const HELD_BYTES_MIN = 1_024;

const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

export class ReplyReader {
  /** The head of the present reply, once it is complete. */
  head: ReplyHead | null = null;
  /** The part of the body in the last read: a view of that read's memory. */
  body: Buffer | null = null;
  /** The reply is complete. */
  ended = false;
  fault: ReplyFault | null = null;
  /** The number of interim replies (1xx) before the present reply; they only show that the provider is alive. */
  interimHeads = 0;
  /** Unrequested bytes came after the end of the reply. */
  private excess = false;
  /** The beginning of an incomplete head. */
  private held: Buffer = NOTHING;
  private heldBytes = 0;
  private left = 0;
  private chunks: ChunkedBody | null = null;

  /** To be called when a new request is sent: what comes next is the reply to it. */
  begin(): void {
    this.head = null;
    this.body = null;
    this.ended = false;
    this.interimHeads = 0;
    this.heldBytes = 0;
    this.chunks = null;
  }

  /**
   * Whether the connection can be used for another exchange: the reply is complete, nothing followed it, and both sides
   * keep the connection.
   */
  get reusable(): boolean {
    return this.ended && !this.excess && this.fault === null && this.head !== null && this.head.keepAlive;
  }

  /**
   * Reads the first `length` bytes of `read`, and may move them within it. The caller may overwrite the memory once it
   * has used `body`.
   */
  read(read: Buffer, length: number): void {
    this.body = null;
    if (this.fault !== null) return;
    const at = this.head === null ? this.readHeads(read, length) : 0;
    if (this.head === null || this.fault !== null) return;
    if (!this.ended) this.readBody(read, at, length);
    else if (at < length) this.excess = true;
  }

  /** To be called when the other side has sent its last byte. */
  endOfConnection(): void {
    this.body = null;
    if (this.ended) return;
    // Without a declared length the end of the connection ends the body, and a cut looks the same.
    if (this.head?.framing === 'until_close') this.ended = true;
    else this.fault ??= 'the connection ended before the reply';
  }

  /** Reads up to the head of a reply; returns where in `read` its body begins. */
  private readHeads(read: Buffer, length: number): number {
    let at = 0;
    while (this.head === null && this.fault === null && at < length) at = this.readOneHead(read, at, length);
    return at;
  }

  private readOneHead(read: Buffer, start: number, length: number): number {
    if (this.heldBytes > 0) return this.readHeldHead(read, start, length);
    const found = read.indexOf(HEAD_END, start, 'latin1');
    if (found !== -1 && found + HEAD_END.length <= length) {
      this.takeHead(read, start, found);
      return found + HEAD_END.length;
    }
    this.hold(read, start, length);
    this.fault ??= faultOfBeginning(this.held, 0, this.heldBytes);
    return length;
  }

  /** Reads the rest of a head that began in an earlier read. */
  private readHeldHead(read: Buffer, start: number, length: number): number {
    const before = this.heldBytes;
    this.hold(read, start, length);
    const { held } = this;
    const found = held
      .subarray(0, this.heldBytes)
      .indexOf(HEAD_END, Math.max(0, before - HEAD_END.length + 1), 'latin1');
    if (found === -1) {
      this.fault ??= faultOfBeginning(held, before, this.heldBytes);
      return length;
    }
    this.held = NOTHING;
    this.heldBytes = 0;
    this.fault = null;
    this.takeHead(held, 0, found);
    return start + found + HEAD_END.length - before;
  }

  private hold(read: Buffer, start: number, end: number): void {
    // One byte more than the longest head is enough to know that this one is too long.
    const bytes = Math.min(end - start, HEAD_BYTES_MAX + 1 - this.heldBytes);
    const total = this.heldBytes + bytes;
    if (total > this.held.length) {
      const larger = Buffer.allocUnsafe(Math.max(total, this.held.length * 2, HELD_BYTES_MIN));
      this.held.copy(larger, 0, 0, this.heldBytes);
      this.held = larger;
    }
    read.copy(this.held, this.heldBytes, start, start + bytes);
    this.heldBytes = total;
    if (total > HEAD_BYTES_MAX) this.fault = 'a head beyond all measure';
  }

  private takeHead(bytes: Buffer, start: number, end: number): void {
    if (end + HEAD_END.length - start > HEAD_BYTES_MAX) {
      this.fault = 'a head beyond all measure';
      return;
    }
    const head = readReplyHead(bytes, start, end + 2);
    if (typeof head === 'string') this.fault = head;
    else if (head.status === 101) this.fault = 'an upgrade nobody asked for';
    else if (head.status < 200) this.passOver();
    else this.startBody(head);
  }

  /** RFC 9110, 15.2: interim replies may come unrequested. */
  private passOver(): void {
    this.interimHeads += 1;
    if (this.interimHeads > INTERIM_HEADS_MAX) this.fault = 'interim replies beyond all measure';
  }

  private startBody(head: ReplyHead): void {
    this.head = head;
    this.left = head.bodyBytes;
    this.ended = head.framing === 'none';
    this.chunks = head.framing === 'chunked' ? new ChunkedBody() : null;
  }

  private readBody(read: Buffer, start: number, length: number): void {
    if (start === length) return;
    if (this.chunks !== null) {
      this.readChunks(this.chunks, read, start, length);
      return;
    }
    const isDeclared = this.head?.framing === 'length';
    const end = isDeclared ? Math.min(length, start + this.left) : length;
    this.body = read.subarray(start, end);
    if (!isDeclared) return;
    this.left -= end - start;
    this.ended = this.left === 0;
    this.excess = end < length;
  }

  private readChunks(chunks: ChunkedBody, read: Buffer, start: number, length: number): void {
    const { at, content } = chunks.read(read, start, length);
    this.body = content;
    this.fault = chunks.fault;
    this.ended = chunks.over;
    this.excess = chunks.over && at < length;
  }
}
