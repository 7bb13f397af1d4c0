// Cuts a stream into whole events, and finds the line of an event that has its data.

import { Buffer } from 'node:buffer';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import { CARRIAGE_RETURN, DATA_FIELD, DONE, DONE_NAME, firstLineAt, LINE_FEED } from '../sse/syntax.ts';

const SPACE = 0x20;
const BLANK_LINE = Buffer.from('\n\n');
const NOTHING = Buffer.alloc(0);

/** Bytes of one event, the blank line behind it included, and where its data lies in them. */
export interface EventBytes {
  readonly bytes: Buffer;
  /** As it came; another one than `bytes` where its data was several lines. */
  readonly original: Buffer;
  /** -1: it has none that is JSON. */
  readonly dataStart: number;
  readonly dataEnd: number;
  /** `data: [DONE]`: nothing follows. */
  readonly isDone: boolean;
}

export class EventLines {
  /** The bytes of an event that is not whole. */
  private rest: Buffer = NOTHING;
  /** The rest, and room for what follows: an event that comes in many pieces is not copied with each of them. */
  private room: Buffer = NOTHING;

  get restBytes(): number {
    return this.rest.length;
  }

  /**
   * The whole events that end with these bytes. An event with `[DONE]` counts as whole without its end.
   *
   * An event is views of `chunk`, which the caller must leave as it is while it needs the event or feeds this; or,
   * where it came in several chunks or has several lines of data, memory of its own, to which nobody writes any more.
   */
  take(chunk: Buffer): EventBytes[] {
    const events: EventBytes[] = [];
    let from = 0;
    // The line end before a blank line, and a part of that, may have been here.
    let at = Math.max(0, this.rest.length - 2);
    const bytes = this.rest.length === 0 ? chunk : this.withRest(chunk);
    for (;;) {
      const lineEnd = bytes.indexOf(LINE_FEED, at);
      if (lineEnd === -1) break;
      at = lineEnd + 1;
      if (!isBlankAt(bytes, at)) continue;
      // More blank lines are no events of their own: a read can be full of them.
      let end = at;
      while (isBlankAt(bytes, end)) end += bytes[end] === LINE_FEED ? 1 : 2;
      events.push(eventOf(bytes.subarray(from, end)));
      from = end;
      at = end;
    }
    if (from > 0) this.room = NOTHING;
    this.rest = bytes.subarray(from);
    if (hasDone(this.rest)) events.push(eventOf(this.takeRest()));
    return events;
  }

  /** What there is of an event without its end. */
  takeRest(): Buffer {
    const { rest } = this;
    this.rest = NOTHING;
    this.room = NOTHING;
    return rest;
  }

  private withRest(chunk: Buffer): Buffer {
    const { rest } = this;
    const length = rest.length + chunk.length;
    if (this.room.length < length) {
      this.room = Buffer.allocUnsafe(2 * length);
      rest.copy(this.room);
    }
    chunk.copy(this.room, rest.length);
    return this.room.subarray(0, length);
  }
}

function isBlankAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === LINE_FEED || (bytes[at] === CARRIAGE_RETURN && bytes[at + 1] === LINE_FEED);
}

/** Short: a line like any other has more before its end comes. */
function hasDone(bytes: Buffer): boolean {
  return bytes.length < 64 && bytes.includes(DONE) && dataOf(bytes)?.isDone === true;
}

export function eventOf(bytes: Buffer): EventBytes {
  const data = dataOf(bytes);
  return data ?? { bytes, original: bytes, dataStart: -1, dataEnd: -1, isDone: false };
}

function dataOf(bytes: Buffer): EventBytes | null {
  const ends = new LineEnds(bytes);
  let start = -1;
  let end = -1;
  let joined: JoinedData | null = null;
  for (let at = firstLineAt(bytes); at < bytes.length; ) {
    const lineEnd = ends.behind(at);
    if (matchesAt(bytes, at, DATA_FIELD)) {
      if (start !== -1) {
        joined ??= new JoinedData(bytes, start, end);
        joined.add(at + DATA_FIELD.length, lineEnd);
      } else {
        start = at + DATA_FIELD.length;
        end = lineEnd;
      }
    }
    at = lineEnd + 1;
  }
  if (start === -1) return null;
  if (joined !== null) return joined.event();
  const isDone = bytes.toString('latin1', start, Math.min(end, start + 16)).trim() === DONE_NAME;
  return { bytes, original: bytes, dataStart: isDone ? -1 : start, dataEnd: end, isDone };
}

/** Most lines are shorter, and two native searches cost more than to look at so many bytes. */
const NEAR_BYTES = 128;

/** The ends of lines, found in ascending order: no byte is searched twice, whichever of them ends the lines. */
class LineEnds {
  private readonly bytes: Buffer;
  /** The first of each behind what has been passed. */
  private lineFeed = -1;
  private carriageReturn = -1;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Of the line that begins at `from`. A carriage return ends one, too, also without a line feed behind it. */
  behind(from: number): number {
    const { bytes } = this;
    const far = Math.min(bytes.length, from + NEAR_BYTES);
    for (let at = from; at < far; at++) if (bytes[at] === LINE_FEED || bytes[at] === CARRIAGE_RETURN) return at;
    if (this.lineFeed < far) this.lineFeed = indexOrEnd(bytes, LINE_FEED, far);
    if (this.carriageReturn < far) this.carriageReturn = indexOrEnd(bytes, CARRIAGE_RETURN, far);
    return Math.min(this.lineFeed, this.carriageReturn);
  }
}

function indexOrEnd(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from);
  return found === -1 ? bytes.length : found;
}

/** Clients join the lines of data by line ends, which in JSON are blanks. */
class JoinedData {
  private readonly bytes: Buffer;
  private readonly start: number;
  private readonly joined: Buffer;
  private end: number;

  /** From its beginning to the end of its first line of data an event is as it was. */
  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.joined = Buffer.allocUnsafe(bytes.length + BLANK_LINE.length);
    this.end = bytes.copy(this.joined, 0, 0, end);
  }

  add(start: number, end: number): void {
    this.joined[this.end] = SPACE;
    this.end += 1;
    // A native copy costs more than that of a few bytes.
    if (end - start > NEAR_BYTES) this.end += this.bytes.copy(this.joined, this.end, start, end);
    else for (let at = start; at < end; at++) this.joined[this.end++] = this.bytes[at] as number;
  }

  event(): EventBytes {
    const { bytes: original, start: dataStart, end: dataEnd, joined } = this;
    const end = dataEnd + BLANK_LINE.copy(joined, dataEnd);
    return { bytes: joined.subarray(0, end), original, dataStart, dataEnd, isDone: false };
  }
}
