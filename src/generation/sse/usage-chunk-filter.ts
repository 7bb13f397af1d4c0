// Removes one chunk from a Chat Completions stream: the chunk that contains only the usage, when the gateway and not
// the client asked for it (`stream_usage: request`). Every other byte passes unchanged, however the stream is split.
//
//   line start --usage chunk----> behind it --blank line--> line start
//   line start --any other line--> inside it --line end----> line start

import { Buffer } from 'node:buffer';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import { CARRIAGE_RETURN, DATA_FIELD, LINE_FEED } from './syntax.ts';
import { EventLine, namesUsageObject } from './usage-window.ts';

/** A longer line is not a usage chunk, so little is held back when a chunk is split. */
const HELD_BYTES_MAX = 16_384;
/** After this many malformed lines no chunk is looked for any more, since parsing each costs microseconds. */
const MALFORMED_LINES_MAX = 64;
const EMPTY = Buffer.alloc(0);

const COLON = 0x3a;
const SPACE = 0x20;
const TAB = 0x09;
const BRACE = 0x7b;

/** The place of the next byte. */
const AT_LINE_START = 0;
const INSIDE_LINE = 1;
const BEHIND_CHUNK = 2;

/** The result for a line that does not begin a usage chunk; any other result is where the usage chunk ends. */
const PLAIN = -1;
const UNDECIDED = -2;

export class UsageChunkFilter {
  private place = AT_LINE_START;
  /** Bytes that cannot be judged yet: the beginning of a line, and the fields of its event before it. */
  private held: Buffer = EMPTY;
  /** How many of the bytes that are judged or held are whole field lines. They are not examined again. */
  private fieldBytes = 0;
  /** How many lines named a usage object and were not JSON. */
  private malformedLines = 0;

  /** Returns what the client gets; almost always a view of `chunk` itself. */
  feed(chunk: Buffer): Buffer {
    if (this.place === AT_LINE_START && this.held.length === 0 && endsWithBlankLine(chunk) && !namesUsageObject(chunk))
      return chunk;
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    this.held = EMPTY;
    return this.take(bytes);
  }

  /**
   * Called at the end of the stream: returns what was held back, unless it is a usage chunk that only lacks its line
   * end.
   */
  end(): Buffer {
    const held = this.held;
    this.held = EMPTY;
    const line = held.lastIndexOf(LINE_FEED) + 1;
    return this.place === BEHIND_CHUNK || this.isUsageChunk(held, line, held.length) ? EMPTY : held;
  }

  private take(bytes: Buffer): Buffer {
    const passed: Buffer[] = [];
    let from = 0;
    let at = 0;
    while (at < bytes.length) {
      if (this.place === INSIDE_LINE) {
        const lineEnd = bytes.indexOf(LINE_FEED, at);
        if (lineEnd === -1) break;
        at = lineEnd + 1;
        this.place = AT_LINE_START;
        continue;
      }
      const end = this.place === BEHIND_CHUNK ? endOfBlankLine(bytes, at) : this.judge(bytes, at);
      if (end === PLAIN) {
        this.place = INSIDE_LINE;
        at += this.fieldBytes;
        this.fieldBytes = 0;
        continue;
      }
      passed.push(bytes.subarray(from, at));
      if (end === UNDECIDED) {
        this.held = bytes.subarray(at);
        return join(passed);
      }
      this.place = this.place === BEHIND_CHUNK ? AT_LINE_START : BEHIND_CHUNK;
      from = end;
      at = end;
    }
    passed.push(bytes.subarray(from));
    return join(passed);
  }

  /** Judges the lines from `start` on: whether they begin with a usage chunk, and where that ends. */
  private judge(bytes: Buffer, start: number): number {
    for (;;) {
      const line = start + this.fieldBytes;
      const lineEnd = bytes.indexOf(LINE_FEED, line);
      if ((lineEnd === -1 ? bytes.length : lineEnd) - start > HELD_BYTES_MAX) return PLAIN;
      if (lineEnd === -1) return mayBeChunk(bytes, line) ? UNDECIDED : PLAIN;
      if (matchesAt(bytes, line, DATA_FIELD)) {
        if (!this.isUsageChunk(bytes, line, lineEnd)) return PLAIN;
        this.fieldBytes = 0;
        return lineEnd + 1;
      }
      // A blank line or a comment ends the event's fields; any other line is a field of the same event.
      if (bytes[line] === LINE_FEED || bytes[line] === CARRIAGE_RETURN || bytes[line] === COLON) return PLAIN;
      this.fieldBytes = lineEnd + 1 - start;
    }
  }

  /**
   * A usage chunk has an empty list of choices and a usage object. A chunk that reports usage beside a choice is the
   * provider's own and stays, as does the `"usage":null` of all other chunks.
   */
  private isUsageChunk(bytes: Buffer, line: number, lineEnd: number): boolean {
    if (this.malformedLines > MALFORMED_LINES_MAX || !namesUsageObject(bytes.subarray(line, lineEnd))) return false;
    const chunk = new EventLine(bytes, line, lineEnd).json();
    if (chunk === null) this.malformedLines += 1;
    const choices = chunk?.['choices'];
    const usage = chunk?.['usage'];
    return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null;
  }
}

function join(pieces: readonly Buffer[]): Buffer {
  const some = pieces.filter((piece) => piece.length > 0);
  return some.length === 1 ? (some[0] as Buffer) : Buffer.concat(some);
}

function endOfBlankLine(bytes: Buffer, at: number): number {
  if (bytes[at] === LINE_FEED) return at + 1;
  if (bytes[at] !== CARRIAGE_RETURN) return at;
  if (at + 1 === bytes.length) return UNDECIDED;
  return bytes[at + 1] === LINE_FEED ? at + 2 : at;
}

/**
 * Whether the beginning of a line could become a usage chunk. `data: [DONE]` is decided at its bracket, since nothing
 * may be held back after a stream has ended.
 */
function mayBeChunk(bytes: Buffer, line: number): boolean {
  const first = bytes[line];
  if (first === COLON || first === CARRIAGE_RETURN) return false;
  if (!matchesAt(bytes, line, DATA_FIELD)) return true;
  let at = line + DATA_FIELD.length;
  while (bytes[at] === SPACE || bytes[at] === TAB) at += 1;
  return at >= bytes.length || bytes[at] === BRACE;
}

function endsWithBlankLine(bytes: Buffer): boolean {
  const last = bytes.length - 1;
  if (bytes[last] !== LINE_FEED) return false;
  return bytes[last - 1] === LINE_FEED || (bytes[last - 1] === CARRIAGE_RETURN && bytes[last - 2] === LINE_FEED);
}
