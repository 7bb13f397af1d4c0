// Counts the images in a reply while its bytes pass: images are billed one by one (spec 8), and a reply is too long to
// keep or parse.
//
// Native searches skip the base64, so that only the bytes between strings, or at the beginning of a line, are examined.
// The images in the reply are what counts; the requested number only bounds the hold.

import { Buffer } from 'node:buffer';
import { PassingString } from '../../platform/bytes/passing-string.ts';
import { EventName } from './event-name.ts';
import type { StreamEnd, StreamProgress } from './stream-end.ts';
import { CARRIAGE_RETURN, DONE_NAME, LINE_FEED } from './syntax.ts';

export interface ImageTally {
  feed(chunk: Buffer): unknown;
  /** How many images the reply contains at least a part of. */
  readonly begun: number;
  /** How many images the reply contains completely. */
  readonly finished: number;
}

const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const DATA_KEY = 'data';
/** A key of the outermost object is kept up to this length, which is enough to recognize `data`. */
const KEY_BYTES_MAX = 8;

/** The event by which a stream reports that it failed. */
export const FAILED_IMAGES = 'error';

/** Counts the images of a JSON reply: the objects in its outermost `data` array. */
export class ImageDocumentTally implements ImageTally {
  begun = 0;
  finished = 0;
  private depth = 0;
  private readonly string = new PassingString();
  private insideData = false;
  /** The key of the outermost object whose value is passing. */
  private key = '';

  feed(chunk: Buffer): undefined {
    let at = 0;
    while (at < chunk.length) at = this.string.isOpen ? this.string.pass(chunk, at) : this.passStructure(chunk, at);
  }

  /** Passes everything up to the next string. */
  private passStructure(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      switch (byte) {
        case QUOTE:
          this.string.open(this.depth === 1 ? KEY_BYTES_MAX : 0);
          return at + 1;
        case COLON:
          if (this.depth === 1) this.key = this.string.text;
          break;
        case OPEN_BRACE:
          if (this.insideData && this.depth === 2) this.begun += 1;
          this.depth += 1;
          break;
        case OPEN_BRACKET:
          if (this.depth === 1) this.insideData = this.key === DATA_KEY;
          this.depth += 1;
          break;
        case CLOSE_BRACE:
          this.depth -= 1;
          if (this.insideData && this.depth === 2) this.finished += 1;
          break;
        case CLOSE_BRACKET:
          this.depth -= 1;
          if (this.depth === 1) this.insideData = false;
          break;
        default:
      }
    }
    return chunk.length;
  }
}

/**
 * Counts the images of an event stream and finds its end: one `completed` event per image, `partial_image` events
 * before it.
 */
export class ImageStreamTally implements ImageTally, StreamEnd {
  endedBy: string | null = null;
  private readonly answers: number;
  private progress: StreamProgress = 'open';
  /** How many images have a complete event. */
  private whole = 0;
  /** The event of a finished image has begun and its data has not ended. */
  private completing = false;
  /** Partial images have come since the last finished one. */
  private partial = false;
  /** The present event's name or type has said what it is. */
  private known = false;
  private readonly name = new EventName();
  private isInsideLine = false;
  private lastByte = 0;

  /** `answers` is the number of requested images; the stream ends with the last of them. */
  constructor(answers: number) {
    this.answers = answers;
  }

  /** An event that has not said yet what it is counts, too: it may contain a whole image and name its type last. */
  get begun(): number {
    const isUnknown = !this.known && this.isInsideLine && this.name.isUndecidedData;
    return this.whole + (this.partial || this.completing || isUnknown ? 1 : 0);
  }

  /** Data without a line end is complete if it ends with its brace, since a provider may leave out the line end. */
  get finished(): number {
    const isComplete = this.isInsideLine && this.name.isData && this.lastByte === CLOSE_BRACE;
    return this.whole + (this.completing && isComplete ? 1 : 0);
  }

  feed(chunk: Buffer): StreamProgress {
    let at = this.isInsideLine ? this.passLine(chunk, 0) : 0;
    while (at < chunk.length) at = this.takeLine(chunk, at);
    return this.progress;
  }

  /** Takes the bytes of the line that begins at `at`; returns where the next line begins. */
  private takeLine(chunk: Buffer, at: number): number {
    const first = chunk[at];
    if (first === LINE_FEED) this.endEvent();
    // A CR here belongs to the CRLF of a blank line.
    if (first === LINE_FEED || first === CARRIAGE_RETURN) return at + 1;
    this.name.begin();
    return this.passLine(chunk, at);
  }

  private passLine(chunk: Buffer, at: number): number {
    const lineEnd = chunk.indexOf(LINE_FEED, at);
    const isWhole = lineEnd !== -1;
    const end = isWhole ? lineEnd : chunk.length;
    const name = this.name.isDecided ? null : this.name.take(chunk.subarray(at, end), isWhole);
    if (name === DONE_NAME) this.end(name, 'ended');
    else if (name !== null && !this.known) this.take(name);
    if (end > at) this.lastByte = chunk[end - 1] as number;
    if (isWhole && this.completing && this.name.isData) this.complete();
    this.isInsideLine = !isWhole;
    return end + 1;
  }

  private endEvent(): void {
    this.known = false;
    this.completing = false;
    if (this.progress === 'ending') this.progress = 'ended';
  }

  private take(name: string): void {
    const isCompleted = name.endsWith('.completed');
    const isPartial = name.endsWith('.partial_image');
    // Any other name of an `event:` line decides nothing, since the event's data may still have a type.
    this.known = isCompleted || isPartial || name === FAILED_IMAGES;
    this.partial ||= isPartial;
    this.completing = isCompleted;
    if (name === FAILED_IMAGES || (isCompleted && this.whole + 1 >= this.answers)) this.end(name, 'ending');
  }

  private complete(): void {
    this.whole += 1;
    this.completing = false;
    this.partial = false;
  }

  private end(name: string, progress: StreamProgress): void {
    this.endedBy ??= name;
    if (this.progress !== 'ended') this.progress = progress;
  }
}
