// Names the events that end a stream, and rules out nearly all other lines by a few of their bytes.

import { assert } from '../../platform/assert.ts';

const SPACE = 0x20;
const QUOTE = 0x22;
const BRACE = 0x7b;
const LETTER_D = 0x64;
const LETTER_E = 0x65;
const LETTER_P = 0x70;
const LETTER_T = 0x74;
const LETTER_Y = 0x79;

/** This many bytes of a line contain the whole name of a terminal event. */
export const SURE_BYTES = 40;

/** The names of a dialect's terminal events; made once per dialect. */
export class TerminalEvents {
  readonly names: readonly string[];
  private readonly lengths: readonly number[];

  constructor(names: readonly string[]) {
    this.names = names;
    this.lengths = [...new Set(names.map((name) => name.length))];
    assert(
      Math.max(0, ...this.lengths) < SURE_BYTES - '"data: {"type":"'.length,
      'a terminal event has a longer name than is looked for',
    );
  }

  /**
   * Whether the line at `start` certainly names no terminal event. A few bytes decide that for lines as providers write
   * them, without spaces in unusual places; for all other lines `EventName` decides. Needs `SURE_BYTES` bytes from
   * `start` on.
   */
  isSurelyPlain(bytes: Buffer, start: number): boolean {
    const first = bytes[start];
    if (first === LETTER_D) {
      // data: {"type":"...
      if (bytes[start + 6] !== BRACE || bytes[start + 7] !== QUOTE) return false;
      if (bytes[start + 8] !== LETTER_T) return this.lengths.length === 0;
      if (bytes[start + 12] !== QUOTE || bytes[start + 14] !== QUOTE) return false;
      // The type may still follow another key of four letters, such as "text".
      const isType = bytes[start + 9] === LETTER_Y && bytes[start + 10] === LETTER_P && bytes[start + 11] === LETTER_E;
      return isType && !this.endsName(bytes, start + 15);
    }
    // event: ...
    return first !== LETTER_E || (bytes[start + 6] === SPACE && !this.endsName(bytes, start + 7));
  }

  /** Whether a name that begins at `start` could end like a terminal event's name. */
  private endsName(bytes: Buffer, start: number): boolean {
    const lengths = this.lengths;
    for (let index = 0; index < lengths.length; index++) {
      const closer = bytes[start + (lengths[index] as number)] as number;
      if (closer === QUOTE || closer < SPACE) return true;
    }
    return false;
  }
}
