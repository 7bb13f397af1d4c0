// Cuts a stream into whole events, and finds the line of an event that has its data.

import { Buffer } from 'node:buffer';
import { matchesAt } from '../../platform/matches-at.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Where a stream begins with it, clients leave it out. */
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const DATA = Buffer.from('data:');
const DONE = Buffer.from('[DONE]');
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
  /** How far the rest has been searched for the event's end. */
  private searched = 0;

  get restBytes(): number {
    return this.rest.length;
  }

  /** The whole events that end with these bytes. An event with `[DONE]` counts as whole without its end. */
  take(chunk: Buffer): EventBytes[] {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    const events: EventBytes[] = [];
    let from = 0;
    let at = this.searched;
    for (;;) {
      const lineEnd = bytes.indexOf(LINE_FEED, at);
      if (lineEnd === -1) break;
      at = lineEnd + 1;
      if (!isBlankAt(bytes, at)) continue;
      const end = bytes[at] === LINE_FEED ? at + 1 : at + 2;
      events.push(eventOf(bytes.subarray(from, end)));
      from = end;
      at = end;
    }
    this.rest = bytes.subarray(from);
    const lastLine = this.rest.lastIndexOf(LINE_FEED);
    this.searched = lastLine === -1 ? this.rest.length : lastLine;
    if (hasDone(this.rest)) events.push(eventOf(this.takeRest()));
    return events;
  }

  /** What there is of an event without its end. */
  takeRest(): Buffer {
    const { rest } = this;
    this.rest = NOTHING;
    this.searched = 0;
    return rest;
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

/** A carriage return ends a line, too, also without a line feed behind it. */
function lineEnd(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(LINE_FEED, from);
  const end = found === -1 ? bytes.length : found;
  const before = bytes.subarray(from, end).indexOf(CARRIAGE_RETURN);
  return before === -1 ? end : from + before;
}

function dataOf(bytes: Buffer): EventBytes | null {
  const lines: [number, number][] = [];
  for (let at = matchesAt(bytes, 0, BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0; at < bytes.length; ) {
    const end = lineEnd(bytes, at);
    if (matchesAt(bytes, at, DATA)) lines.push([at + DATA.length, end]);
    at = end + 1;
  }
  const [first] = lines;
  if (first === undefined) return null;
  if (lines.length > 1) return joined(bytes, lines);
  const [start, end] = first;
  const isDone = bytes.toString('latin1', start, Math.min(end, start + 16)).trim() === '[DONE]';
  return { bytes, original: bytes, dataStart: isDone ? -1 : start, dataEnd: end, isDone };
}

/** Clients join the lines of data by line ends, which in JSON are blanks. */
function joined(bytes: Buffer, lines: readonly [number, number][]): EventBytes {
  const [firstStart] = lines[0] as [number, number];
  const head = bytes.subarray(0, firstStart);
  const data = Buffer.from(lines.map(([start, end]) => bytes.toString('utf8', start, end)).join(' '));
  const whole = Buffer.concat([head, data, Buffer.from('\n\n')]);
  return { bytes: whole, original: bytes, dataStart: head.length, dataEnd: head.length + data.length, isDone: false };
}
