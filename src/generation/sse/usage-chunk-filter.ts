// Leaves one thing out of a Chat Completions stream: the chunk that tells its usage and nothing else, where it was the
// gateway that asked for it (`stream_usage: request`, DESIGN 3). Every other byte passes as it came, however the stream
// is split.
//
//   line start --usage chunk----> behind it --blank line--> line start
//   line start --any other line--> inside it --line end----> line start

import { Buffer } from 'node:buffer';
import { CARRIAGE_RETURN, LINE_FEED } from './terminal-events.ts';
import { EventLine, namesUsageObject } from './usage-window.ts';

/** A line that is longer is no usage chunk; what is kept back of one that a split has parted stays small. */
const HELD_BYTES_MAX = 16_384;
const EMPTY = Buffer.alloc(0);

const DATA_FIELD = Buffer.from('data:');
const COLON = 0x3a;
const SPACE = 0x20;
const TAB = 0x09;
const BRACE = 0x7b;

/** Where the next byte falls. */
const AT_LINE_START = 0;
const INSIDE_LINE = 1;
const BEHIND_CHUNK = 2;

/** What a line is; any other answer is where the usage chunk that begins with it ends. */
const PLAIN = -1;
const UNDECIDED = -2;

export class UsageChunkFilter {
  #place = AT_LINE_START;
  /** What cannot be told yet: the beginning of a line, and the fields of its event before it. */
  #held: Buffer = EMPTY;

  /** What the client gets of the stream so far; a view of `chunk` itself, nearly always. */
  feed(chunk: Buffer): Buffer {
    if (
      this.#place === AT_LINE_START &&
      this.#held.length === 0 &&
      endsWithBlankLine(chunk) &&
      !namesUsageObject(chunk)
    )
      return chunk;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = EMPTY;
    return this.#take(bytes);
  }

  /** The stream is over: what was kept back of it, unless it is a usage chunk that only lacks its line end. */
  end(): Buffer {
    const held = this.#held;
    this.#held = EMPTY;
    const line = held.lastIndexOf(LINE_FEED) + 1;
    return this.#place === BEHIND_CHUNK || isUsageChunk(held, line, held.length) ? EMPTY : held;
  }

  #take(bytes: Buffer): Buffer {
    const passed: Buffer[] = [];
    let from = 0;
    let at = 0;
    while (at < bytes.length) {
      if (this.#place === INSIDE_LINE) {
        const lineEnd = bytes.indexOf(LINE_FEED, at);
        if (lineEnd === -1) break;
        at = lineEnd + 1;
        this.#place = AT_LINE_START;
        continue;
      }
      const end = this.#place === BEHIND_CHUNK ? endOfBlankLine(bytes, at) : judge(bytes, at);
      if (end === PLAIN) {
        this.#place = INSIDE_LINE;
        continue;
      }
      passed.push(bytes.subarray(from, at));
      if (end === UNDECIDED) {
        this.#held = bytes.subarray(at);
        return join(passed);
      }
      this.#place = this.#place === BEHIND_CHUNK ? AT_LINE_START : BEHIND_CHUNK;
      from = end;
      at = end;
    }
    passed.push(bytes.subarray(from));
    return join(passed);
  }
}

function join(pieces: readonly Buffer[]): Buffer {
  const some = pieces.filter((piece) => piece.length > 0);
  return some.length === 1 ? (some[0] as Buffer) : Buffer.concat(some);
}

/** Of the lines from `start` on: whether they begin with a usage chunk, and then where it ends. */
function judge(bytes: Buffer, start: number): number {
  let line = start;
  for (;;) {
    const lineEnd = bytes.indexOf(LINE_FEED, line);
    if ((lineEnd === -1 ? bytes.length : lineEnd) - start > HELD_BYTES_MAX) return PLAIN;
    if (lineEnd === -1) return mayBeChunk(bytes, line) ? UNDECIDED : PLAIN;
    if (startsWithData(bytes, line)) return isUsageChunk(bytes, line, lineEnd) ? lineEnd + 1 : PLAIN;
    // A blank line or a comment; any other line is a field of the event that the data belongs to.
    if (bytes[line] === LINE_FEED || bytes[line] === CARRIAGE_RETURN || bytes[line] === COLON) return PLAIN;
    line = lineEnd + 1;
  }
}

function endOfBlankLine(bytes: Buffer, at: number): number {
  if (bytes[at] === LINE_FEED) return at + 1;
  if (bytes[at] !== CARRIAGE_RETURN) return at;
  if (at + 1 === bytes.length) return UNDECIDED;
  return bytes[at + 1] === LINE_FEED ? at + 2 : at;
}

/**
 * Of the beginning of a line. `data: [DONE]` passes at its bracket: once a stream has ended, nothing of it is kept
 * back.
 */
function mayBeChunk(bytes: Buffer, line: number): boolean {
  const first = bytes[line];
  if (first === COLON || first === CARRIAGE_RETURN) return false;
  if (!startsWithData(bytes, line)) return true;
  let at = line + DATA_FIELD.length;
  while (bytes[at] === SPACE || bytes[at] === TAB) at += 1;
  return at >= bytes.length || bytes[at] === BRACE;
}

function startsWithData(bytes: Buffer, line: number): boolean {
  for (let index = 0; index < DATA_FIELD.length; index++) if (bytes[line + index] !== DATA_FIELD[index]) return false;
  return true;
}

function endsWithBlankLine(bytes: Buffer): boolean {
  const last = bytes.length - 1;
  if (bytes[last] !== LINE_FEED) return false;
  return bytes[last - 1] === LINE_FEED || (bytes[last - 1] === CARRIAGE_RETURN && bytes[last - 2] === LINE_FEED);
}

/**
 * No choices and a usage object: chunks that tell usage beside a choice are the provider's own, and so is the
 * `"usage":null` of all the others.
 */
function isUsageChunk(bytes: Buffer, line: number, lineEnd: number): boolean {
  if (!namesUsageObject(bytes.subarray(line, lineEnd))) return false;
  const chunk = new EventLine(bytes, line, lineEnd).json();
  const choices = chunk?.['choices'];
  const usage = chunk?.['usage'];
  return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null;
}
