// Finds the end of an event stream while its bytes pass: the event after which a dialect's clients take the reply for
// complete.
//
//   open --terminal line begins--> ending --blank line--> ended          open --data: [DONE]--> ended

import type { Buffer } from 'node:buffer';
import { parseObject } from '../../domain/usage/countable-text.ts';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import { EventName } from './event-name.ts';
import { CARRIAGE_RETURN, DATA_FIELD, DONE_NAME, EVENT_FIELD, LINE_FEED } from './syntax.ts';
import { SURE_BYTES, type TerminalEvents } from './terminal-events.ts';

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
  /**
   * The name of the event that ends the stream, once that event has begun. The name tells a failed reply from a
   * complete one.
   */
  readonly endedBy: string | null;
}

/** For an endpoint without streams. If a provider streams nevertheless, the stream ends when the provider ends it. */
export const NO_STREAM: StreamEnd = { feed: () => 'open', endedBy: null };

const CLOSE_BRACE = 0x7d;

/**
 * Whether the last event of a stream is complete, judged by the stream's last bytes. The last event's data may lack its
 * line end: it is complete if it parses, or, if its beginning is not kept, if it ends with a brace.
 */
export function endsWithWholeEvent(end: Buffer): boolean {
  let to = end.length;
  while (to > 0 && (end[to - 1] === LINE_FEED || end[to - 1] === CARRIAGE_RETURN)) to -= 1;
  if (to === 0) return true;
  const line = end.subarray(end.lastIndexOf(LINE_FEED, to - 1) + 1, to);
  if (matchesAt(line, 0, EVENT_FIELD)) return false;
  if (to < end.length) return true;
  if (!matchesAt(line, 0, DATA_FIELD)) return line.at(-1) === CLOSE_BRACE;
  const text = line.toString('utf8', DATA_FIELD.length);
  return text.trim() === DONE_NAME || parseObject(text) !== null;
}

export class EventStreamEnd implements StreamEnd {
  endedBy: string | null = null;
  private readonly terminal: TerminalEvents;
  private progress: StreamProgress = 'open';
  private isInsideLine = false;
  private readonly name: EventName;

  constructor(terminal: TerminalEvents) {
    this.terminal = terminal;
    this.name = new EventName(terminal.names.length > 0);
  }

  /** Whether the stream is open and the next byte begins a line. */
  get isBetweenLines(): boolean {
    return !this.isInsideLine && this.progress === 'open';
  }

  feed(chunk: Buffer): StreamProgress {
    let at = this.isInsideLine ? this.passLine(chunk, 0) : 0;
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
    // A CR here belongs to the CRLF of an empty line; its line feed, the next byte, ends the event.
    if (first === CARRIAGE_RETURN) return at + 1;
    if (chunk.length - at >= SURE_BYTES && this.terminal.isSurelyPlain(chunk, at)) this.name.ignoreRest();
    else this.name.begin();
    return this.passLine(chunk, at);
  }

  private passLine(chunk: Buffer, at: number): number {
    const lineEnd = chunk.indexOf(LINE_FEED, at);
    const isWhole = lineEnd !== -1;
    const end = isWhole ? lineEnd : chunk.length;
    if (!this.name.isDecided) {
      const name = this.name.take(chunk.subarray(at, end), isWhole);
      if (name !== null) this.end(name);
    }
    this.isInsideLine = !isWhole;
    return end + 1;
  }

  private end(name: string): void {
    if (name === DONE_NAME) {
      this.progress = 'ended';
      this.endedBy ??= name;
    } else if (this.progress === 'open' && this.terminal.names.includes(name)) {
      this.progress = 'ending';
      this.endedBy = name;
    }
  }
}
