// The body of an upload, piece by piece, for a reader that is slower than the client: what it has not asked for stays
// with the client, apart from what uWebSockets.js had begun to read.

import type { Exchange } from '../../http/exchange.ts';

/** `ended`: the body is whole. `left`: the client left, or is refused for its slowness. `stopped`: nobody reads on. */
export type NextPiece = Buffer | 'ended' | 'left' | 'stopped';

/**
 * The most that is handed on at once. It is searched for the form's boundary and hashed in one turn of the event loop:
 * a tenth of a millisecond.
 */
const PIECE_BYTES_MAX = 65_536;

export class UploadBody {
  private readonly exchange: Exchange;
  private readonly pieces: Buffer[] = [];
  private end: Exclude<NextPiece, Buffer> | null = null;
  private wake: (() => void) | null = null;

  /** To be made before the route's handler returns. */
  constructor(exchange: Exchange) {
    this.exchange = exchange;
    exchange.body.hold();
    exchange.watchClient({ onClientLeft: () => this.finish('left') });
    if (exchange.contentLength <= 0 && !exchange.isChunked) this.end = 'ended';
    else exchange.body.receive({ take: (bytes, isLast) => this.take(bytes, isLast) });
  }

  get hasLeft(): boolean {
    return this.end === 'left';
  }

  private take(bytes: Uint8Array, isLast: boolean): void {
    if (this.end === 'left' || this.end === 'stopped') return;
    // uWebSockets.js empties them when this returns. A piece is its reader's own.
    for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX)
      this.pieces.push(Buffer.from(bytes.subarray(at, at + PIECE_BYTES_MAX)));
    if (isLast) this.end = 'ended';
    else this.exchange.body.hold();
    this.awaken();
  }

  private finish(end: 'left' | 'stopped'): void {
    this.end = end;
    this.pieces.length = 0;
    this.awaken();
  }

  private awaken(): void {
    const { wake } = this;
    this.wake = null;
    wake?.();
  }

  /** Whoever waits for a piece is told. */
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
        this.exchange.body.letCome();
      });
    }
  }
}
