// Condenses long JSON while its bytes pass. The values that are needed from it, such as those a reply is billed by, are
// short and may stand anywhere: after a long answer or before many tools.
//
// In the outermost object, and in the objects that are its members, a short value stays as it is written and a long one
// becomes null. Each byte is passed once. JSON of which too much would stay is given up.

import type { Buffer } from 'node:buffer';
import { PassingString } from './passing-string.ts';

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const VALUE_BYTES_MAX = 8_192;
const CONDENSED_BYTES_MAX = 65_536;
/** Members of the outermost object, and of a response within it. */
const MEMBERS_DEPTH_MAX = 2;
const NONE = -1;

export class CondensedJson {
  /** The condensed JSON so far, one character for each byte. */
  text = '';
  isGivenUp = false;
  private depth = 0;
  private readonly string = new PassingString();
  /**
   * Where the present value begins in the text, and how deep it lies; NONE: no value that may become null is passing.
   */
  private valueAt = NONE;
  private valueDepth = 0;
  /** The value has become null, and its rest passes unseen. */
  private isDropped = false;
  /** Where the part of the present piece begins that is not in the text yet. */
  private from = 0;

  /** All that was opened is closed. */
  get isWhole(): boolean {
    return !this.isGivenUp && this.depth === 0 && !this.string.isOpen;
  }

  pass(part: Buffer): void {
    if (this.isGivenUp) return;
    this.from = 0;
    for (let at = 0; at < part.length; )
      at = this.string.isOpen ? this.passString(part, at) : this.passStructure(part, at);
    this.dropIfLong(part, part.length);
    if (!this.isDropped) this.text += part.toString('latin1', this.from);
    if (this.text.length <= CONDENSED_BYTES_MAX) return;
    this.isGivenUp = true;
    this.text = '';
  }

  private passString(part: Buffer, start: number): number {
    const end = this.string.pass(part, start);
    if (!this.string.isOpen) this.endValue(part, end);
    return end;
  }

  /** Passes everything up to the next string. */
  private passStructure(part: Buffer, start: number): number {
    for (let at = start; at < part.length; at++) {
      const byte = part[at];
      if (byte === QUOTE) {
        this.beginValue(at);
        this.string.open(0);
        return at + 1;
      }
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (byte === OPEN_BRACKET || this.depth >= MEMBERS_DEPTH_MAX) this.beginValue(at);
        this.depth += 1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.depth -= 1;
        this.endValue(part, at + 1);
      }
    }
    return part.length;
  }

  private beginValue(at: number): void {
    if (this.valueAt !== NONE) return;
    this.valueAt = this.text.length + at - this.from;
    this.valueDepth = this.depth;
  }

  private endValue(part: Buffer, end: number): void {
    if (this.valueAt === NONE || this.depth > this.valueDepth) return;
    this.dropIfLong(part, end);
    if (this.isDropped) this.from = end;
    this.isDropped = false;
    this.valueAt = NONE;
  }

  private dropIfLong(part: Buffer, end: number): void {
    const { text, from, valueAt } = this;
    if (valueAt === NONE || this.isDropped || text.length + end - from - valueAt <= VALUE_BYTES_MAX) return;
    const isInText = valueAt < text.length;
    const before = isInText
      ? text.slice(0, valueAt)
      : text + part.toString('latin1', from, from + valueAt - text.length);
    this.text = `${before}null`;
    this.isDropped = true;
  }
}
