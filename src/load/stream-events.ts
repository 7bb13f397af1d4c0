// Counts the events of a stream in its pieces, wherever they are cut, and notices its last event and errors. Only the
// beginning of each line is kept.

import { Buffer } from 'node:buffer';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const ERROR_LINES = ['event: error', 'event: response.failed', 'data: {"error"'];

export class StreamEvents {
  /** The last event of a whole stream was seen. */
  isWhole = false;
  /** An event reported an error. */
  hasError = false;
  private readonly endLine: string;
  private readonly kept: Buffer;
  private lineBytes = 0;
  private isEvent = false;

  constructor(endLine: string) {
    this.endLine = endLine;
    this.kept = Buffer.alloc(Math.max(endLine.length, ...ERROR_LINES.map(({ length }) => length)));
  }

  /** Returns how many events ended in this piece. Comments, which only keep a connection open, do not count. */
  push(piece: Buffer): number {
    let ended = 0;
    let at = 0;
    while (at < piece.length) {
      const end = piece.indexOf(LINE_FEED, at);
      const until = end === -1 ? piece.length : end;
      this.keep(piece, at, until);
      if (end === -1) break;
      if (this.endOfLine()) ended += 1;
      at = end + 1;
    }
    return ended;
  }

  private keep(piece: Buffer, from: number, until: number): void {
    if (this.lineBytes < this.kept.length) piece.copy(this.kept, this.lineBytes, from, until);
    this.lineBytes += until - from;
  }

  /** true: this line is empty and ended an event. */
  private endOfLine(): boolean {
    const bytes = this.lineBytes;
    this.lineBytes = 0;
    if (bytes === 0 || (bytes === 1 && this.kept[0] === CARRIAGE_RETURN)) {
      const isOver = this.isEvent;
      this.isEvent = false;
      return isOver;
    }
    const line = this.kept.toString('latin1', 0, Math.min(bytes, this.kept.length));
    if (!line.startsWith(':')) this.isEvent = true;
    if (line.startsWith(this.endLine)) this.isWhole = true;
    if (ERROR_LINES.some((start) => line.startsWith(start))) this.hasError = true;
    return false;
  }
}
