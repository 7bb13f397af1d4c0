// Tells the lines of an event stream that end it, by the few bytes that say so.
//
// Only the beginnings and ends of lines are looked at, since those are what nobody can forge: the data of an event is
// JSON, which holds no raw line end, so whatever a model or a caller writes stays inside its line, and inside the
// outermost braces of it. A line is told by its `event:` field, or by a `type` that is the first key of its data that
// has text (xAI puts a number before it) or the last one (GitHub sorts keys); what lies between is passed over by a
// native search for the line end. Lines may be split anywhere, end in LF or CRLF, and be comments.

import { Buffer } from 'node:buffer';
import { assert } from '../../platform/assert.ts';

export const LINE_FEED = 0x0a;
export const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const QUOTE = 0x22;
const COLON = 0x3a;
const BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BRACKET = 0x5b;
const COMMA = 0x2c;
const UNDERSCORE = 0x5f;
const LETTER_A = 0x61;
const LETTER_D = 0x64;
const LETTER_E = 0x65;
const LETTER_T = 0x74;
const LETTER_Z = 0x7a;

const EVENT_FIELD = Buffer.from('event:');
const DATA_FIELD = Buffer.from('data:');
const TYPE_KEY = Buffer.from('"type"');
export const DONE_NAME = '[DONE]';
const DONE = Buffer.from(DONE_NAME);

/** Long enough to contain a terminal event's whole name. */
export const SURE_BYTES = 40;

/**
 * The kind of a line: the index of the terminal event's name, `[DONE]`, any other line, or undecided from the bytes so
 * far.
 */
export const PLAIN = -1;
export const DONE_LINE = -2;
export const UNDECIDED = -3;

/**
 * The names of a dialect's terminal events, in the forms of an `event:` line and of the `type` that begins an event's
 * data; made once per dialect.
 */
export class TerminalEvents {
  readonly names: readonly string[];
  private readonly bytes: readonly Buffer[];
  private readonly longest: number;
  private readonly lengths: readonly number[];

  constructor(names: readonly string[]) {
    this.names = names;
    this.bytes = names.map((name) => Buffer.from(name));
    this.lengths = [...new Set(names.map((name) => name.length))];
    this.longest = Math.max(0, ...this.lengths);
    assert(
      this.longest < SURE_BYTES - '"data: {"type":"'.length,
      'a terminal event has a longer name than is looked for',
    );
  }

  /**
   * Whether the line at `start` is certainly of no interest, by the few bytes that decide it for lines as providers
   * write them, without spaces in unusual places. If not, `classify` decides. Needs `SURE_BYTES` bytes from `start` on.
   */
  isSurelyPlain(bytes: Buffer, start: number): boolean {
    const first = bytes[start];
    if (first === LETTER_D) {
      // data: {"type":"...
      if (bytes[start + 6] !== BRACE || bytes[start + 7] !== QUOTE) return false;
      if (bytes[start + 8] !== LETTER_T) return this.longest === 0;
      if (bytes[start + 12] !== QUOTE || bytes[start + 14] !== QUOTE) return false;
      return !this.endsName(bytes, start + 15);
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

  /** Classifies the line that begins at `start`, as far as the bytes up to `end` allow. */
  classify(bytes: Buffer, start: number, end: number): number {
    const first = bytes[start];
    // Most lines are data or event lines, or a comment.
    if (first === DATA_FIELD[0]) return this.classifyData(bytes, start, end);
    if (first !== EVENT_FIELD[0]) return PLAIN;
    const matched = matchWord(bytes, start, end, EVENT_FIELD);
    if (matched !== MATCHED) return matched;
    const name = skipBlanks(bytes, start + EVENT_FIELD.length, end);
    return this.classifyName(bytes, name, end, false);
  }

  /** `data: [DONE]`, or `data: {"type":"<name>"`, since some providers leave out the event line. */
  private classifyData(bytes: Buffer, start: number, end: number): number {
    const field = matchWord(bytes, start, end, DATA_FIELD);
    if (field !== MATCHED) return field;
    let at = skipBlanks(bytes, start + DATA_FIELD.length, end);
    if (at >= end) return UNDECIDED;
    if (bytes[at] === BRACKET) {
      const done = matchWord(bytes, at, end, DONE);
      return done === MATCHED ? DONE_LINE : done;
    }
    if (bytes[at] !== BRACE || this.longest === 0) return PLAIN;
    while (at < end) {
      const key = skipBlanks(bytes, at + 1, end);
      const matched = matchWord(bytes, key, end, TYPE_KEY);
      if (matched === UNDECIDED) return UNDECIDED;
      const value = valueAfter(bytes, key, end);
      if (value === PLAIN || value === UNDECIDED) return value;
      if (matched === MATCHED) return bytes[value] === QUOTE ? this.classifyName(bytes, value + 1, end, true) : PLAIN;
      at = endOfScalar(bytes, value, end);
      if (at < end && bytes[at] !== COMMA) return PLAIN;
    }
    return UNDECIDED;
  }

  /**
   * Whether these bytes end with `"type":"<name>"}`. The brace at the end of a line of JSON closes its outermost
   * object, so this `type` is the event's.
   */
  classifyEnding(bytes: Buffer, end: number): number {
    const brace = bytes[end - 1] === CARRIAGE_RETURN ? end - 2 : end - 1;
    if (bytes[brace] !== CLOSE_BRACE || bytes[brace - 1] !== QUOTE) return PLAIN;
    const names = this.bytes;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as Buffer;
      const start = brace - 1 - name.length;
      if (bytes[start - 1] !== QUOTE || matchWord(bytes, start, end, name) !== MATCHED) continue;
      const colon = skipBlanksBack(bytes, start - 2);
      const keyEnd = skipBlanksBack(bytes, colon - 1) + 1;
      if (
        bytes[colon] === COLON &&
        keyEnd >= TYPE_KEY.length &&
        matchWord(bytes, keyEnd - TYPE_KEY.length, keyEnd, TYPE_KEY) === MATCHED
      )
        return index;
    }
    return PLAIN;
  }

  private classifyName(bytes: Buffer, start: number, end: number, quoted: boolean): number {
    const names = this.bytes;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as Buffer;
      const after = start + name.length;
      if (after >= end) continue;
      const closer = bytes[after];
      const closed = quoted ? closer === QUOTE : closer === LINE_FEED || closer === CARRIAGE_RETURN;
      if (closed && matchWord(bytes, start, end, name) === MATCHED) return index;
    }
    if (end - start > this.longest) return PLAIN;
    const lineEnd = bytes.indexOf(LINE_FEED, start);
    return lineEnd === -1 || lineEnd >= end ? UNDECIDED : PLAIN;
  }
}

const MATCHED = 0;

function matchWord(bytes: Buffer, start: number, end: number, word: Buffer): number {
  const length = word.length;
  for (let index = 0; index < length; index++) {
    if (start + index >= end) return UNDECIDED;
    if (bytes[start + index] !== word[index]) return PLAIN;
  }
  return MATCHED;
}

function skipBlanks(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1;
  return at;
}

/** Where the value of the key at `key` begins. Keys with escapes are not among those searched for. */
function valueAfter(bytes: Buffer, key: number, end: number): number {
  if (key >= end) return UNDECIDED;
  if (bytes[key] !== QUOTE) return PLAIN;
  let at = key + 1;
  while (at < end && isKeyByte(bytes[at] as number)) at += 1;
  if (at >= end) return UNDECIDED;
  if (bytes[at] !== QUOTE) return PLAIN;
  at = skipBlanks(bytes, at + 1, end);
  if (at >= end) return UNDECIDED;
  if (bytes[at] !== COLON) return PLAIN;
  at = skipBlanks(bytes, at + 1, end);
  return at >= end ? UNDECIDED : at;
}

function isKeyByte(byte: number): boolean {
  return byte === UNDERSCORE || (byte >= LETTER_A && byte <= LETTER_Z);
}

/** Where a number or the word true, false or null ends; immediately if the value is none of these. */
function endOfScalar(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (
    at < end &&
    bytes[at] !== COMMA &&
    (bytes[at] as number) >= SPACE &&
    bytes[at] !== QUOTE &&
    bytes[at] !== BRACE &&
    bytes[at] !== BRACKET
  )
    at += 1;
  return at;
}

function skipBlanksBack(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at -= 1;
  return at;
}
