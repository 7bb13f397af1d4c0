// The body of an upload, piece by piece, for a reader that is slower than the client. What the reader has not asked for
// stays with the client, except for what uWebSockets.js had begun to read.

import type { Exchange } from '../../http/exchange.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import type { TimeSlices } from '../../platform/event-loop/time-slices.ts';

/**
 * `ended`: the body is whole. `left`: the client left, or is refused for its slowness. `too_long`: the body is longer
 * than it may be. `stopped`: reading was ended.
 */
export type NextPiece = Buffer | 'ended' | 'left' | 'too_long' | 'stopped';

/**
 * The longest piece. Searching it for the form's boundary and hashing it takes a tenth of a millisecond, in one tick of
 * the event loop.
 */
const PIECE_BYTES_MAX = 65_536;

/** About what Linux still sends for a client that has left: tcp_wmem. */
const LOOKED_AHEAD_BYTES_MAX = 4_194_304;

export class UploadBody {
  private readonly exchange: Exchange;
  private readonly bytesMax: number;
  private readonly pieces: Buffer[] = [];
  private receivedBytes = 0;
  private end: Exclude<NextPiece, Buffer> | null = null;
  private wake: (() => void) | null = null;

  /** To be made before the route's handler returns. `bytesMax`: nothing of a longer body is kept. */
  constructor(exchange: Exchange, bytesMax: number) {
    this.exchange = exchange;
    this.bytesMax = bytesMax;
    exchange.body.hold();
    exchange.watchClient({ onClientLeft: () => this.finish('left') });
    if (exchange.contentLength > bytesMax) this.end = 'too_long';
    else if (exchange.contentLength <= 0 && !exchange.isChunked) this.end = 'ended';
    else exchange.body.receive({ take: (bytes, isLast) => this.take(bytes, isLast) });
  }

  get hasLeft(): boolean {
    return this.end === 'left';
  }

  get isTooLong(): boolean {
    return this.end === 'too_long';
  }

  private take(bytes: Uint8Array, isLast: boolean): void {
    if (this.end !== null) return;
    this.receivedBytes += bytes.length;
    if (this.receivedBytes > this.bytesMax) {
      this.exchange.body.hold();
      return this.finish('too_long');
    }
    // uWebSockets.js empties the bytes when this returns. Each piece is a copy, which its reader may keep.
    for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX)
      this.pieces.push(Buffer.from(bytes.subarray(at, at + PIECE_BYTES_MAX)));
    if (isLast) this.end = 'ended';
    else this.exchange.body.hold();
    this.awaken();
  }

  /**
   * Finds out whether the client left while its upload waited. Its leaving shows only after everything that it had
   * sent, so that is let in as long as there is more. Then no work is done for a client that has left.
   */
  async lookForClient(slices: TimeSlices): Promise<void> {
    while (this.end === null && this.receivedBytes < LOOKED_AHEAD_BYTES_MAX) {
      const before = this.receivedBytes;
      await slices.next();
      this.exchange.body.resume();
      await socketsRead();
      if (this.receivedBytes === before) return;
    }
  }

  private finish(end: 'left' | 'too_long' | 'stopped'): void {
    this.end = end;
    this.pieces.length = 0;
    this.awaken();
  }

  private awaken(): void {
    const { wake } = this;
    this.wake = null;
    wake?.();
  }

  /** Ends reading. A reader that waits for a piece is told. */
  stop(): void {
    if (this.end !== 'left') this.finish('stopped');
  }

  async next(): Promise<NextPiece> {
    for (;;) {
      const piece = this.pieces.shift();
      if (piece !== undefined) return piece;
      if (this.end !== null) return this.end;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        this.exchange.body.resume();
      });
    }
  }
}
