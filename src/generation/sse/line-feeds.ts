// Rewrites the line ends of an event stream whose lines end in carriage returns alone, since the code that reads or
// changes events looks for line feeds. Any other stream passes unchanged.
//
// The standard lets each line of a stream end in a line feed, a carriage return or both. No provider is known to end
// lines in a carriage return alone. So the end of the first line decides, and after it the bytes of nearly all streams
// are not examined.

import { Buffer } from 'node:buffer';
import { CARRIAGE_RETURN, LINE_FEED } from './syntax.ts';

const BEGINNING = Buffer.of(LINE_FEED);

export class LineFeeds {
  /**
   * Whether lines end in carriage returns alone; null: the first line has not ended, or a line feed may still follow
   * its carriage return.
   */
  private isReturns: boolean | null = null;
  /** The last byte was a carriage return. */
  private isBehindReturn = false;

  /** Returns the bytes with line feeds as line ends: nearly always `chunk` itself. */
  feed(chunk: Buffer): Buffer {
    if (this.isReturns === null) return this.takeFirst(chunk);
    return this.isReturns ? this.rewritten(chunk) : chunk;
  }

  private takeFirst(chunk: Buffer): Buffer {
    if (chunk.length === 0) return chunk;
    if (this.isBehindReturn) {
      this.isReturns = chunk[0] !== LINE_FEED;
      this.isBehindReturn = false;
      // The carriage return has already been passed on, so the line feed that ends its line is added here.
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

  /** Writes each line end, of whichever form, as one line feed. */
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
