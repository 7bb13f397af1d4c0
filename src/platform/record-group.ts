// Records put together one behind the other as bytes, each with room before it for the header that the spool frames it with: what one turn of the
// event loop has to record is written to the spool as it lies here, without a copy.

import { AsciiText } from './ascii-text.ts';

/** Room before each record. */
export const RECORD_HEADROOM_BYTES = 8;

const FIRST_BYTES = 32_768;

export class RecordGroup extends AsciiText {
  /** The offset after each record. */
  readonly ends: number[] = [];
  private wholeBytes = 0;

  constructor() {
    super(FIRST_BYTES);
  }

  /** Begins a record. One that was begun before and not ended is none. */
  beginRecord(): void {
    this.begin(this.wholeBytes + RECORD_HEADROOM_BYTES);
  }

  endRecord(): void {
    this.wholeBytes = this.end;
    this.ends.push(this.wholeBytes);
  }

  /** As if it were new. */
  clear(): void {
    this.ends.length = 0;
    this.wholeBytes = 0;
  }
}
