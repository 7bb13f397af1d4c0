// Rewrites an event stream whose lines end in carriage returns alone for what reads or changes its events, which looks
// for line feeds. Any other stream is handed on as it is.
//
// The standard lets each line of a stream end in a line feed, a carriage return or both. No provider is known that ends
// lines in a carriage return alone, so how the first line ends decides, and behind it the bytes of nearly all streams
// are not looked at.

import { Buffer } from 'node:buffer';
import { CARRIAGE_RETURN, LINE_FEED } from './syntax.ts';

const BEGINNING = Buffer.of(LINE_FEED);

export class LineFeeds {
  /** null: the first line has not ended, or not surely. */
  private isReturns: boolean | null = null;
  /** The last byte was a carriage return. */
  private isBehindReturn = false;

  /** Nearly always `chunk` itself. */
  feed(chunk: Buffer): Buffer {
    if (this.isReturns === null) return this.takeFirst(chunk);
    return this.isReturns ? this.rewritten(chunk) : chunk;
  }

  private takeFirst(chunk: Buffer): Buffer {
    if (chunk.length === 0) return chunk;
    if (this.isBehindReturn) {
      this.isReturns = chunk[0] !== LINE_FEED;
      this.isBehindReturn = false;
      // The carriage return has been handed on as it is, which is half of a line's end.
      return this.isReturns ? Buffer.concat([BEGINNING, this.rewritten(chunk)]) : chunk;
    }
    const carriageReturn = chunk.indexOf(CARRIAGE_RETURN);
    const lineFeed = chunk.indexOf(LINE_FEED);
    if (carriageReturn === -1 || (lineFeed !== -1 && lineFeed <= carriageReturn + 1)) {
      if (lineFeed !== -1) this.isReturns = false;
      return chunk;
    }
    if (carriageReturn === chunk.length - 1) {
      this.isBehindReturn = true;
      return chunk;
    }
    this.isReturns = true;
    return this.rewritten(chunk);
  }

  /** Each end of a line, whichever it is, is one line feed. */
  private rewritten(chunk: Buffer): Buffer {
    const written = Buffer.allocUnsafe(chunk.length);
    let length = 0;
    for (const byte of chunk) {
      const isReturn = byte === CARRIAGE_RETURN;
      if (byte !== LINE_FEED || !this.isBehindReturn) written[length++] = isReturn ? LINE_FEED : byte;
      this.isBehindReturn = isReturn;
    }
    return written.subarray(0, length);
  }
}
