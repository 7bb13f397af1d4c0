// Cuts a stream into whole events, and finds the line with an event's data.

import { Buffer } from 'node:buffer';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import { CARRIAGE_RETURN, DATA_FIELD, DONE, DONE_NAME, firstLineAt, LINE_FEED } from '../sse/syntax.ts';

const SPACE = 0x20;
const BLANK_LINE = Buffer.from('\n\n');
const NOTHING = Buffer.alloc(0);

/** The bytes of one event, its blank line included, and where its data is in them. */
export interface EventBytes {
  readonly bytes: Buffer;
  /** The event as it came; different from `bytes` if its data had several lines. */
  readonly original: Buffer;
  /** -1: it has no data that is JSON. */
  readonly dataStart: number;
  readonly dataEnd: number;
  /** `data: [DONE]`: nothing follows. */
  readonly isDone: boolean;
}

export class EventLines {
  /** The bytes of an incomplete event. */
  private rest: Buffer = NOTHING;
  /** Memory for `rest` with room for more, so that an event in many pieces is not copied with each piece. */
  private room: Buffer = NOTHING;

  get restBytes(): number {
    return this.rest.length;
  }

  /**
   * Returns the events that these bytes complete. An event with `[DONE]` counts as complete without its end.
   *
   * An event consists of views of `chunk`, which the caller must not change while it uses the event or feeds this. If
   * the event came in several chunks or has several data lines, it has memory of its own, to which nobody writes any
   * more.
   */
  take(chunk: Buffer): EventBytes[] {
    const events: EventBytes[] = [];
    let from = 0;
    // The rest may end with the line end before a blank line, and a part of the blank line.
    let at = Math.max(0, this.rest.length - 2);
    const bytes = this.rest.length === 0 ? chunk : this.withRest(chunk);
    for (;;) {
      const lineEnd = bytes.indexOf(LINE_FEED, at);
      if (lineEnd === -1) break;
      at = lineEnd + 1;
      if (!isBlankAt(bytes, at)) continue;
      // Further blank lines are no events of their own; a read can be full of them.
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

  /** Returns the bytes of an incomplete event, and forgets them. */
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

/** Whether the rest is `data: [DONE]`. Only a short rest is examined: any other line is longer before its end comes. */
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

/** Most lines are shorter than this, and to read so many bytes one by one costs less than two native searches. */
const NEAR_BYTES = 128;

/** Finds the ends of lines in ascending order. No byte is searched twice, whichever character ends the lines. */
class LineEnds {
  private readonly bytes: Buffer;
  /** The first line feed, and the first carriage return, after the bytes passed so far. */
  private lineFeed = -1;
  private carriageReturn = -1;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /**
   * The end of the line that begins at `from`. A carriage return ends a line, too, even without a line feed after it.
   */
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

/** Joins several data lines of an event. Clients join them by line ends, which are blanks in JSON. */
class JoinedData {
  private readonly bytes: Buffer;
  private readonly start: number;
  private readonly joined: Buffer;
  private end: number;

  /** Up to the end of its first data line, the event stays as it was. */
  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.joined = Buffer.allocUnsafe(bytes.length + BLANK_LINE.length);
    this.end = bytes.copy(this.joined, 0, 0, end);
  }

  add(start: number, end: number): void {
    this.joined[this.end] = SPACE;
    this.end += 1;
    // For a few bytes a loop costs less than a native copy.
    if (end - start > NEAR_BYTES) this.end += this.bytes.copy(this.joined, this.end, start, end);
    else for (let at = start; at < end; at++) this.joined[this.end++] = this.bytes[at] as number;
  }

  event(): EventBytes {
    const { bytes: original, start: dataStart, end: dataEnd, joined } = this;
    const end = dataEnd + BLANK_LINE.copy(joined, dataEnd);
    return { bytes: joined.subarray(0, end), original, dataStart, dataEnd, isDone: false };
  }
}
