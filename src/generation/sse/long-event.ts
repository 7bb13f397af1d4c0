// Condenses an event that is longer than the kept end of a long stream, while its bytes pass.

import { Buffer } from 'node:buffer';
import { CondensedJson } from '../../platform/bytes/condensed-json.ts';
import { LINE_FEED } from './syntax.ts';

export class LongEvent {
  private readonly lineBytesMin: number;
  /** The newest long event that has ended, condensed. */
  private ended: string | null = null;
  private lineBytes = 0;
  /** Condenses the present line. */
  private line = new CondensedJson();

  /** `lineBytesMin`: lines up to this length are kept elsewhere and not condensed. */
  constructor(lineBytesMin: number) {
    this.lineBytesMin = lineBytesMin;
  }

  feed(piece: Buffer): void {
    for (let at = 0; at < piece.length; ) {
      const lineFeed = piece.indexOf(LINE_FEED, at);
      const end = lineFeed === -1 ? piece.length : lineFeed;
      const isShort = lineFeed !== -1 && this.lineBytes === 0 && end - at <= this.lineBytesMin;
      if (!isShort) this.pass(piece.subarray(at, end));
      if (lineFeed !== -1) this.endLine();
      at = end + 1;
    }
  }

  /** The newest complete long event, as a condensed line of data; null: there is none. */
  read(): Buffer | null {
    if (this.lineBytes > this.lineBytesMin) this.endLine();
    return this.ended === null ? null : Buffer.from(this.ended, 'latin1');
  }

  private pass(part: Buffer): void {
    this.lineBytes += part.length;
    this.line.pass(part);
  }

  private endLine(): void {
    const { line, lineBytes } = this;
    if (lineBytes === 0) return;
    if (lineBytes > this.lineBytesMin) this.ended = line.isWhole && line.text.startsWith('data:') ? line.text : null;
    this.lineBytes = 0;
    this.line = new CondensedJson();
  }
}
