// Reads the name of an event from one line of a stream: from an `event:` line, from the outermost `type` of the event's
// data, or `[DONE]`.
//
// Text of a model or caller cannot forge a name. The data of an event is JSON, which contains no raw line end, so such
// text stays inside its line, and there within a string or below the outermost object. Some providers leave out the
// event line, and `type` may be any of the keys: xAI puts a number before it, others sort the keys. Lines may be split
// anywhere, end in LF or CRLF, and be comments. Few bytes are kept, and no byte is examined twice.

import type { Buffer } from 'node:buffer';
import { PassingString } from '../../platform/bytes/passing-string.ts';
import { CARRIAGE_RETURN, DATA_FIELD, DONE, DONE_NAME, EVENT_FIELD } from './syntax.ts';

const SPACE = 0x20;
const TAB = 0x09;
const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;
const BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const BACKSLASH = 0x5c;
const LETTER_T = 0x74;

/** Matches the key `type`, with any of its letters escaped. */
const TYPE_KEY = /^(?:t|\\u0074)(?:y|\\u0079)(?:p|\\u0070)(?:e|\\u0065)$/;
/** How much of a key is kept: one byte more than TYPE_KEY's longest match, so that a longer key does not match. */
const KEY_BYTES_MAX = 25;
/** Most strings are shorter than this, and are passed byte by byte. */
const NEAR_BYTES = 32;
/** A longer name, as it is written, is none that a caller looks for. */
const NAME_BYTES_MAX = 256;
const ESCAPE = /\\u([0-9a-fA-F]{4})/g;

/** What the next byte of the line belongs to. `decided`: the rest of the line does not matter. */
type Part = 'field' | 'blanks' | 'name' | 'done' | 'object' | 'decided';

/** Reads the name of a line. One reader serves all lines of a stream, one after the other. */
export class EventName {
  private part: Part = 'decided';
  private field: Buffer | null = null;
  /** How many bytes of the field, or of `[DONE]`, have matched. */
  private matched = 0;
  private text = '';
  private depth = 0;
  private readonly string = new PassingString();
  /** The last string, if it may have been the key `type`. */
  private key = '';
  /** The next string is the value of the outermost `type`. */
  private isType = false;
  private readonly readsTypes: boolean;

  /** Without `readsTypes`, JSON data is skipped: only `event:` lines and `[DONE]` matter. */
  constructor(readsTypes = true) {
    this.readsTypes = readsTypes;
  }

  get isDecided(): boolean {
    return this.part === 'decided';
  }

  /** Whether the line is data. */
  get isData(): boolean {
    return this.field === DATA_FIELD && this.part !== 'field';
  }

  /** Whether the line is data that has begun and not said yet what its event is. */
  get isUndecidedData(): boolean {
    return this.part === 'object';
  }

  /** To be called before the first bytes of a line. */
  begin(): void {
    this.part = 'field';
    this.field = null;
    this.matched = 0;
  }

  /** To be called when the rest of the line is known not to name an event. */
  ignoreRest(): void {
    this.part = 'decided';
  }

  /**
   * Takes the next bytes of the line. Returns the name once it is known, else null. `isWhole`: the line ends after
   * these bytes.
   */
  take(line: Buffer, isWhole: boolean): string | null {
    let at = 0;
    if (this.part === 'field') at = this.passField(line, at);
    if (this.part === 'blanks') at = this.passBlanks(line, at);
    if (this.part === 'name') return this.readName(line, at, isWhole);
    if (this.part === 'done') return this.readDone(line, at);
    return this.part === 'object' ? this.readObject(line, at) : null;
  }

  private passField(line: Buffer, start: number): number {
    if (start === line.length) return start;
    this.field ??= line[start] === DATA_FIELD[0] ? DATA_FIELD : EVENT_FIELD;
    const at = this.match(line, start, this.field);
    if (this.matched === this.field.length) this.part = 'blanks';
    return at;
  }

  private passBlanks(line: Buffer, start: number): number {
    let at = start;
    while (line[at] === SPACE || line[at] === TAB) at += 1;
    if (at >= line.length) return at;
    this.matched = 0;
    this.text = '';
    this.depth = 0;
    this.key = '';
    this.isType = false;
    this.string.isOpen = false;
    if (this.field === EVENT_FIELD) this.part = 'name';
    else if (line[at] === BRACKET) this.part = 'done';
    else this.part = line[at] === BRACE && this.readsTypes ? 'object' : 'decided';
    return at;
  }

  /** Matches as much of the word as there is. Any other byte decides that the line has no name. */
  private match(line: Buffer, start: number, word: Buffer): number {
    let at = start;
    while (at < line.length && this.matched < word.length) {
      if (line[at] !== word[this.matched]) {
        this.part = 'decided';
        return line.length;
      }
      this.matched += 1;
      at += 1;
    }
    return at;
  }

  private readDone(line: Buffer, start: number): string | null {
    this.match(line, start, DONE);
    return this.matched === DONE.length ? this.decide(DONE_NAME) : null;
  }

  /** An `event:` name ends only with its line. */
  private readName(line: Buffer, start: number, isWhole: boolean): string | null {
    let end = start;
    const far = Math.min(line.length, start + NAME_BYTES_MAX - this.text.length);
    while (end < far && line[end] !== CARRIAGE_RETURN) end += 1;
    this.text += line.toString('latin1', start, end);
    if (this.text.length === NAME_BYTES_MAX) this.part = 'decided';
    else if (isWhole || line[end] === CARRIAGE_RETURN) return this.decide(this.text);
    return null;
  }

  private readObject(line: Buffer, start: number): string | null {
    let at = start;
    while (at < line.length && this.part === 'object') {
      if (!this.string.isOpen) {
        at = this.passStructure(line, at);
        continue;
      }
      at = this.string.pass(line, at);
      if (this.string.isOpen) break;
      this.key = this.string.text;
      if (this.isType && this.depth === 1) return this.decide(nameOf(this.key));
    }
    return null;
  }

  /** Passes everything up to the next string. */
  private passStructure(line: Buffer, start: number): number {
    for (let at = start; at < line.length; at++) {
      switch (line[at] as number) {
        case QUOTE: {
          const close = this.passShortString(line, at);
          if (close === at) return at + 1;
          at = close;
          break;
        }
        case COLON:
          if (this.depth === 1) this.isType = this.key !== '' && TYPE_KEY.test(this.key);
          break;
        case COMMA:
          if (this.depth === 1) this.isType = false;
          break;
        case BRACE:
        case BRACKET:
          this.depth += 1;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.depth -= 1;
          if (this.depth === 0) {
            this.part = 'decided';
            return line.length;
          }
          break;
        default:
      }
    }
    return line.length;
  }

  /**
   * Where the string that begins at `at` ends. Returns `at` for a string that is long or kept: `string` then passes it
   * piece by piece.
   */
  private passShortString(line: Buffer, at: number): number {
    const keep = this.bytesToKeep(line, at + 1);
    const far = keep === 0 ? Math.min(line.length, at + NEAR_BYTES) : at;
    for (let end = at + 1; end < far && line[end] !== BACKSLASH; end++) {
      if (line[end] !== QUOTE) continue;
      this.key = '';
      return end;
    }
    this.string.open(keep);
    return at;
  }

  /**
   * How many bytes of the string at `at` to keep: nearly always 0, since it can be neither the key `type` nor its
   * value.
   */
  private bytesToKeep(line: Buffer, at: number): number {
    if (this.depth !== 1) return 0;
    if (this.isType) return NAME_BYTES_MAX;
    const first = line[at] ?? LETTER_T;
    return first === LETTER_T || first === BACKSLASH ? KEY_BYTES_MAX : 0;
  }

  private decide(name: string | null): string | null {
    this.part = 'decided';
    return name;
  }
}

/** Decodes a name from its written form. */
function nameOf(text: string): string | null {
  if (text.length === NAME_BYTES_MAX) return null;
  return !text.includes('\\')
    ? text
    : text.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
