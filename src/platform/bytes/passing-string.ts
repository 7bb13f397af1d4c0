// Passes over a string of JSON that comes in pieces, by native searches where it is long.

import type { Buffer } from 'node:buffer';
import { quoteBehind } from './json-bytes.ts';

const BACKSLASH = 0x5c;

export class PassingString {
  isOpen = false;
  /** The beginning of the last string, as it is written: as many bytes as `open` asked for. */
  text = '';
  private room = 0;
  /** The last piece ended with an odd number of backslashes, so the next byte is escaped. */
  private isEscaped = false;

  /** Begins a string: the next byte is the first after its quote. `bytesKept`: how many bytes `text` keeps of it. */
  open(bytesKept: number): void {
    this.isOpen = true;
    this.text = '';
    this.room = bytesKept;
  }

  /**
   * Passes the string's part in this piece. Returns where the string has ended, or the piece's length if it goes on.
   */
  pass(piece: Buffer, start: number): number {
    let from = start;
    if (this.isEscaped) {
      this.isEscaped = false;
      from += 1;
    }
    let quote = quoteBehind(piece, from - 1);
    while (quote !== -1 && backslashesBefore(piece, quote, from) % 2 === 1) {
      from = quote + 1;
      quote = quoteBehind(piece, quote);
    }
    const end = quote === -1 ? piece.length : quote;
    if (this.room > 0) this.keep(piece, start, end);
    if (quote === -1) {
      this.isEscaped = backslashesBefore(piece, end, from) % 2 === 1;
      return end;
    }
    this.isOpen = false;
    return quote + 1;
  }

  private keep(piece: Buffer, start: number, end: number): void {
    const kept = piece.toString('latin1', start, Math.min(end, start + this.room));
    this.text += kept;
    this.room -= kept.length;
  }
}

function backslashesBefore(piece: Buffer, end: number, start: number): number {
  let at = end - 1;
  while (at >= start && piece[at] === BACKSLASH) at -= 1;
  return end - 1 - at;
}
