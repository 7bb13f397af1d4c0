// The text of a JSON string with escapes in it: decoded to UTF-8, with a map that leads each byte of the text back to
// the bytes that spell it. A string without escapes needs none of this.

import { Buffer } from 'node:buffer';

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const LETTER_U = 0x75;
const FIRST_BYTES = 4_096;
/**
 * The map has this many numbers for each escape: its offset and length in the text, and its offset and length in the
 * source.
 */
const ESCAPE_WORDS = 4;
/** A buffer of up to this size is kept for the next string; a larger one is dropped. */
const KEPT_BYTES_MAX = 262_144;

/** The byte that a two-character escape stands for, by its letter; 0: not an escape. */
const SINGLE = new Uint8Array(128);
for (const [letter, byte] of [
  ['"', 0x22],
  ['\\', 0x5c],
  ['/', 0x2f],
  ['b', 0x08],
  ['f', 0x0c],
  ['n', 0x0a],
  ['r', 0x0d],
  ['t', 0x09],
] as const)
  SINGLE[letter.charCodeAt(0)] = byte;

/** Reused for one string after another: its content is valid until the next `decode`. */
export class DecodedText {
  bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  length = 0;
  /** Where the decoded part of the source ends: before an escape that is cut off, else at the end of the source. */
  sourceEnd = 0;
  private base = 0;
  private escapes: number[] = [];
  /** Offsets in the text of unescaped quotes: they begin and end the strings of JSON. */
  private quotes: number[] = [];

  /**
   * Decodes `source` from `start` to `end`. A backslash that begins no escape stands for itself, since a model may have
   * written the source. `isCut`: more bytes follow, so an incomplete escape at the end is left out.
   */
  decode(source: Buffer, start: number, end: number, isCut = false): void {
    if (this.bytes.length > KEPT_BYTES_MAX || this.bytes.length < end - start)
      this.bytes = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, end - start));
    if (this.escapes.length > 0) this.escapes = [];
    if (this.quotes.length > 0) this.quotes = [];
    this.base = start;
    this.sourceEnd = end;
    const { bytes } = this;
    let to = 0;
    let at = start;
    while (at < end) {
      const byte = source[at] as number;
      if (byte !== BACKSLASH) {
        if (byte === QUOTE) this.quotes.push(to);
        bytes[to++] = byte;
        at += 1;
        continue;
      }
      const width = escapeWidth(source, at, end);
      if (width === 0) {
        if (isCut && end - at < 6 && mayGoOn(source, at, end)) {
          this.sourceEnd = at;
          break;
        }
        bytes[to++] = byte;
        at += 1;
        continue;
      }
      if (isCut && width === 6 && end - at < 12 && isHighSurrogate(hexAt(source, at + 2))) {
        this.sourceEnd = at;
        break;
      }
      const length = writeEscape(source, at, width, bytes, to);
      this.escapes.push(to, length, at, width);
      to += length;
      at += width;
    }
    this.length = to;
  }

  /** The source offset at which the character begins that contains this byte of the text. */
  sourceStart(offset: number): number {
    const { escapes } = this;
    const row = this.escapeBefore(offset);
    if (row < 0) return this.base + offset;
    const past = offset - (escapes[row] as number) - (escapes[row + 1] as number);
    return past < 0 ? (escapes[row + 2] as number) : (escapes[row + 2] as number) + (escapes[row + 3] as number) + past;
  }

  /** The source offset at which the character ends that contains the text's byte before `offset`. */
  sourceAfter(offset: number): number {
    if (offset === 0) return this.base;
    const { escapes } = this;
    const row = this.escapeBefore(offset - 1);
    if (row < 0) return this.base + offset;
    const past = Math.max(0, offset - (escapes[row] as number) - (escapes[row + 1] as number));
    return (escapes[row + 2] as number) + (escapes[row + 3] as number) + past;
  }

  /** How many unescaped quotes lie before this byte of the text. */
  quotesBefore(offset: number): number {
    const { quotes } = this;
    let low = 0;
    let high = quotes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((quotes[middle] as number) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The row of the last escape that begins at or before this byte of the text; negative: there is none. */
  private escapeBefore(offset: number): number {
    const { escapes } = this;
    let low = 0;
    let high = escapes.length / ESCAPE_WORDS;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((escapes[middle * ESCAPE_WORDS] as number) <= offset) low = middle + 1;
      else high = middle;
    }
    return (low - 1) * ESCAPE_WORDS;
  }
}

/** Bytes of the escape that the backslash at `at` begins; 0: it begins none. A pair of surrogates is one escape. */
function escapeWidth(source: Buffer, at: number, end: number): number {
  if (at + 1 >= end) return 0;
  const letter = source[at + 1] as number;
  if (letter !== LETTER_U) return letter < 128 && SINGLE[letter] !== 0 ? 2 : 0;
  if (at + 6 > end) return 0;
  const unit = hexAt(source, at + 2);
  if (unit < 0) return 0;
  if (!isHighSurrogate(unit) || at + 12 > end) return 6;
  if (source[at + 6] !== BACKSLASH || source[at + 7] !== LETTER_U) return 6;
  return isLowSurrogate(hexAt(source, at + 8)) ? 12 : 6;
}

/** Whether the bytes up to `end` could be the beginning of an escape. */
function mayGoOn(source: Buffer, at: number, end: number): boolean {
  if (at + 1 === end) return true;
  if (source[at + 1] !== LETTER_U) return false;
  for (let index = at + 2; index < end; index++) if (hexDigit(source[index] as number) < 0) return false;
  return true;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** The value of four hexadecimal digits; negative: they are none. */
function hexAt(source: Buffer, at: number): number {
  let value = 0;
  for (let index = at; index < at + 4; index++) {
    const digit = hexDigit(source[index] as number);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/**
 * Writes the character that the escape stands for and returns its length in bytes, which is never above the escape's.
 */
function writeEscape(source: Buffer, at: number, width: number, bytes: Buffer, to: number): number {
  if (width === 2) {
    bytes[to] = SINGLE[source[at + 1] as number] as number;
    return 1;
  }
  let point = hexAt(source, at + 2);
  if (width === 12) point = 0x10000 + ((point - 0xd800) << 10) + (hexAt(source, at + 8) - 0xdc00);
  // Half of a surrogate pair is no character.
  else if (isHighSurrogate(point) || isLowSurrogate(point)) point = 0xfffd;
  if (point < 0x80) {
    bytes[to] = point;
    return 1;
  }
  if (point < 0x800) {
    bytes[to] = 0xc0 | (point >> 6);
    bytes[to + 1] = 0x80 | (point & 0x3f);
    return 2;
  }
  if (point < 0x10000) {
    bytes[to] = 0xe0 | (point >> 12);
    bytes[to + 1] = 0x80 | ((point >> 6) & 0x3f);
    bytes[to + 2] = 0x80 | (point & 0x3f);
    return 3;
  }
  bytes[to] = 0xf0 | (point >> 18);
  bytes[to + 1] = 0x80 | ((point >> 12) & 0x3f);
  bytes[to + 2] = 0x80 | ((point >> 6) & 0x3f);
  bytes[to + 3] = 0x80 | (point & 0x3f);
  return 4;
}

/** `text` escaped for `levels` nested JSON strings. */
export function escapeText(text: string, levels: number): string {
  let escaped = text;
  for (let level = 0; level < levels; level++) escaped = JSON.stringify(escaped).slice(1, -1);
  return escaped;
}
