// Finds the end of an event stream while its bytes pass: the event after which clients of a dialect take the reply for
// complete.
//
//   open --terminal line begins--> ending --blank line--> ended          open --data: [DONE]--> ended

import { Buffer } from 'node:buffer';
import { parseObject } from '../../domain/usage/countable-text.ts';
import { matchesAt } from '../../platform/matches-at.ts';
import {
  CARRIAGE_RETURN,
  DONE_LINE,
  DONE_NAME,
  LINE_FEED,
  PLAIN,
  SURE_BYTES,
  type TerminalEvents,
  UNDECIDED,
} from './terminal-events.ts';

/**
 * `ending`: the terminal event has begun and may not be shown to the client before the execution's end is recorded.
 * `ended`: it is complete.
 */
export type StreamProgress = 'open' | 'ending' | 'ended';

/** Finds the end of one stream. */
export interface StreamEnd {
  /**
   * Takes the next bytes of the stream. While the answer is `open`, everything up to their end may be shown to the
   * client.
   */
  feed(chunk: Buffer): StreamProgress;
  /** The event that ends the stream, once it has begun; it tells a failed reply from a complete one. */
  readonly endedBy: string | null;
}

/** For an endpoint without streams. If a provider streams nevertheless, the stream ends when the provider ends it. */
export const NO_STREAM: StreamEnd = { feed: () => 'open', endedBy: null };

const EVENT = Buffer.from('event:');
const DATA = Buffer.from('data:');
const CLOSE_BRACE = 0x7d;

/**
 * Whether a stream did not break off within its last event, judged by its last bytes. The last event's data may lack
 * its line end: it is complete if it parses, or, if its beginning is not kept, if it ends with a brace.
 */
export function endsWithWholeEvent(end: Buffer): boolean {
  let to = end.length;
  while (to > 0 && (end[to - 1] === LINE_FEED || end[to - 1] === CARRIAGE_RETURN)) to -= 1;
  if (to === 0) return true;
  const line = end.subarray(end.lastIndexOf(LINE_FEED, to - 1) + 1, to);
  if (matchesAt(line, 0, EVENT)) return false;
  if (to < end.length) return true;
  if (!matchesAt(line, 0, DATA)) return line.at(-1) === CLOSE_BRACE;
  const text = line.toString('utf8', DATA.length);
  return text.trim() === DONE_NAME || parseObject(text) !== null;
}

/**
 * The kind of a line can be told from this many bytes at its beginning; a line with more padding counts as ordinary.
 */
const CARRY_BYTES_MAX = 128;
/** How much of the end of an unfinished line is kept: more than `"type": "response.incomplete"}` and CR. */
const TAIL_BYTES = 48;

/** The place of the next byte. */
const AT_LINE_START = 0;
const INSIDE_LINE = 1;
const BEFORE_DECISION = 2;

export class EventStreamEnd implements StreamEnd {
  endedBy: string | null = null;
  private readonly terminal: TerminalEvents;
  private progress: StreamProgress = 'open';
  private place = AT_LINE_START;
  /** The beginning of a line that was split before its kind could be told. */
  private carry: Buffer | null = null;
  private carryLength = 0;
  /** The last bytes of a line that continues in the next chunk. */
  private tail: Buffer | null = null;
  private tailLength = 0;

  constructor(terminal: TerminalEvents) {
    this.terminal = terminal;
  }

  /** Whether the stream is open and the next byte begins a line. */
  get isBetweenLines(): boolean {
    return this.place === AT_LINE_START && this.progress === 'open';
  }

  feed(chunk: Buffer): StreamProgress {
    let at = this.place === AT_LINE_START ? 0 : this.continueLine(chunk);
    while (at < chunk.length && this.progress !== 'ended') at = this.takeLine(chunk, at);
    return this.progress;
  }

  /** Takes the bytes of the line that begins at `at`; returns where the next line begins. */
  private takeLine(chunk: Buffer, at: number): number {
    const first = chunk[at];
    if (first === LINE_FEED) {
      if (this.progress === 'ending') this.progress = 'ended';
      return at + 1;
    }
    // This is the CR of an empty line's CRLF; the following line feed ends it.
    if (first === CARRIAGE_RETURN) return at + 1;
    if (chunk.length - at < SURE_BYTES || !this.terminal.isSurelyPlain(chunk, at)) {
      const verdict = this.terminal.classify(chunk, at, chunk.length);
      if (verdict === UNDECIDED) return this.keep(chunk, at);
      if (verdict !== PLAIN) this.end(verdict);
    }
    const lineEnd = chunk.indexOf(LINE_FEED, at);
    if (lineEnd === -1) return this.leaveOpen(chunk, at);
    this.closeLine(chunk, lineEnd);
    return lineEnd + 1;
  }

  private leaveOpen(chunk: Buffer, from: number): number {
    this.place = INSIDE_LINE;
    if (this.terminal.names.length === 0) return chunk.length;
    this.tail ??= Buffer.allocUnsafe(TAIL_BYTES * 2);
    const kept = Math.max(from, chunk.length - TAIL_BYTES);
    // Keeps as much of the earlier bytes as there is room for.
    const excess = this.tailLength + chunk.length - kept - TAIL_BYTES * 2;
    if (excess > 0) {
      const stays = Math.min(this.tailLength, TAIL_BYTES);
      this.tail.copyWithin(0, this.tailLength - stays, this.tailLength);
      this.tailLength = stays;
    }
    this.tailLength += chunk.copy(this.tail, this.tailLength, kept);
    return chunk.length;
  }

  /** `bytes` up to `lineEnd` are the line, or a sufficient part of its end. */
  private closeLine(bytes: Buffer, lineEnd: number): void {
    this.place = AT_LINE_START;
    this.tailLength = 0;
    if (this.progress !== 'open') return;
    const verdict = this.terminal.classifyEnding(bytes, lineEnd);
    if (verdict !== PLAIN) this.end(verdict);
  }

  private end(verdict: number): void {
    if (verdict === DONE_LINE) {
      this.progress = 'ended';
      this.endedBy ??= DONE_NAME;
    } else if (this.progress === 'open') {
      this.progress = 'ending';
      this.endedBy = this.terminal.names[verdict] ?? null;
    }
  }

  private keep(chunk: Buffer, from: number): number {
    this.carry ??= Buffer.allocUnsafe(CARRY_BYTES_MAX);
    this.carryLength += chunk.copy(this.carry, this.carryLength, from);
    this.place = BEFORE_DECISION;
    return chunk.length;
  }

  /** Continues a line that began in an earlier chunk; returns where the next line begins. */
  private continueLine(chunk: Buffer): number {
    if (this.place === BEFORE_DECISION) {
      this.keep(chunk, 0);
      const verdict = this.terminal.classify(this.carry as Buffer, 0, this.carryLength);
      if (verdict === UNDECIDED && this.carryLength < CARRY_BYTES_MAX) return chunk.length;
      this.carryLength = 0;
      if (verdict !== PLAIN && verdict !== UNDECIDED) this.end(verdict);
    }
    const lineEnd = chunk.indexOf(LINE_FEED);
    if (lineEnd === -1) return this.leaveOpen(chunk, 0);
    if (lineEnd >= TAIL_BYTES || this.tail === null) {
      this.closeLine(chunk, lineEnd);
    } else {
      const line = Buffer.concat([this.tail.subarray(0, this.tailLength), chunk.subarray(0, lineEnd)]);
      this.closeLine(line, line.length);
    }
    return lineEnd + 1;
  }
}
