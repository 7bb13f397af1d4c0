// Counts the images in a reply while its bytes pass: images are billed one by one (spec 8), and a reply is too long to
// keep or to parse.
//
// Native searches skip the base64, so that only what is between strings, or at the beginning of a line, is looked at.
// The images of the reply itself are counted; the number that was requested only bounds the hold.

import { Buffer } from 'node:buffer';
import type { StreamEnd, StreamProgress } from './stream-end.ts';

export interface ImageTally {
  feed(chunk: Buffer): unknown;
  /** Images of which the reply has contained at least a part. */
  readonly begun: number;
  /** Images that the reply contains completely. */
  readonly finished: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const LINE_FEED = 0x0a;

const DATA_KEY = 'data';
/** A key of the outermost object is kept up to this length, which is enough to recognize `data`. */
const KEY_BYTES_MAX = 8;

/** Counts the images of a JSON reply: the objects in its outermost `data` array. */
export class ImageDocumentTally implements ImageTally {
  begun = 0;
  finished = 0;
  private depth = 0;
  private insideString = false;
  /** The string at the end of the last chunk ended with an odd number of backslashes, so the next byte is escaped. */
  private escaped = false;
  private insideData = false;
  /** The last string at the top level, and the key whose value is passing. */
  private text = '';
  private key = '';

  feed(chunk: Buffer): undefined {
    let at = 0;
    while (at < chunk.length) at = this.insideString ? this.passString(chunk, at) : this.passStructure(chunk, at);
  }

  private passString(chunk: Buffer, start: number): number {
    let from = start;
    if (this.escaped) {
      this.escaped = false;
      from += 1;
    }
    let quote = chunk.indexOf(QUOTE, from);
    while (quote !== -1 && backslashesBefore(chunk, quote, from) % 2 === 1) {
      from = quote + 1;
      quote = chunk.indexOf(QUOTE, from);
    }
    const end = quote === -1 ? chunk.length : quote;
    if (this.depth === 1)
      this.text += chunk.toString('latin1', start, Math.min(end, start + KEY_BYTES_MAX - this.text.length));
    if (quote === -1) {
      this.escaped = backslashesBefore(chunk, end, from) % 2 === 1;
      return end;
    }
    this.insideString = false;
    return quote + 1;
  }

  /** Passes everything up to the next string. */
  private passStructure(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      switch (byte) {
        case QUOTE:
          this.insideString = true;
          this.text = '';
          return at + 1;
        case COLON:
          if (this.depth === 1) this.key = this.text;
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

function backslashesBefore(chunk: Buffer, end: number, start: number): number {
  let at = end - 1;
  while (at >= start && chunk[at] === BACKSLASH) at -= 1;
  return end - 1 - at;
}

const EVENT_NAME = /^event:[ \t]*([\w.]+)\s*$/;
const EVENT_TYPE = /^data:[ \t]*\{\s*"type"\s*:\s*"([\w.]+)"/;
const DONE = /^data:[ \t]*\[DONE\]/;
/** The kind of a line can be told from this many bytes at its beginning. */
const LINE_BYTES_KEPT = 128;

/**
 * Counts the images of an event stream and finds its end: one `completed` event per image, `partial_image` events
 * before it.
 */
export class ImageStreamTally implements ImageTally, StreamEnd {
  endedBy: string | null = null;
  private readonly answers: number;
  private progress: StreamProgress = 'open';
  /** Images whose event is complete. */
  private whole = 0;
  /** The event of a finished image has begun and its data has not ended. */
  private completing = false;
  /** Partial images have come since the last finished one. */
  private partial = false;
  /** The kind of the present event is known from its name or its type. */
  private known = false;
  /** The beginning of the present line. */
  private line = '';
  private lineIsLong = false;
  private lastByte = 0;

  /** `answers` is the number of requested images; the stream ends with the last of them. */
  constructor(answers: number) {
    this.answers = answers;
  }

  get begun(): number {
    return this.whole + (this.partial || this.completing ? 1 : 0);
  }

  /** Data without a line end is complete if it ends with its brace: a provider may leave out what follows. */
  get finished(): number {
    return this.whole + (this.completing && this.isData && this.lastByte === CLOSE_BRACE ? 1 : 0);
  }

  private get isData(): boolean {
    return this.line.startsWith('data:');
  }

  feed(chunk: Buffer): StreamProgress {
    for (let at = 0; at < chunk.length; ) {
      const lineEnd = chunk.indexOf(LINE_FEED, at);
      const end = lineEnd === -1 ? chunk.length : lineEnd;
      if (!this.lineIsLong) this.readLine(chunk, at, end, lineEnd !== -1);
      if (end > at) this.lastByte = chunk[end - 1] as number;
      if (lineEnd !== -1) {
        if (this.completing && this.isData) this.complete();
        this.line = '';
        this.lineIsLong = false;
      }
      at = end + 1;
    }
    return this.progress;
  }

  private readLine(chunk: Buffer, start: number, end: number, isWhole: boolean): void {
    this.line += chunk.toString('latin1', start, Math.min(end, start + LINE_BYTES_KEPT - this.line.length));
    this.lineIsLong = this.line.length === LINE_BYTES_KEPT;
    const line = this.line;
    if (isWhole && (line === '' || line === '\r')) {
      this.known = false;
      this.completing = false;
      if (this.progress === 'ending') this.progress = 'ended';
      return;
    }
    // An event's name may continue while its line does; a type ends with its quote.
    const name = EVENT_TYPE.exec(line)?.[1] ?? (isWhole ? EVENT_NAME.exec(line)?.[1] : undefined);
    if (name !== undefined && !this.known) this.take(name);
    else if (DONE.test(line)) this.end('[DONE]', 'ended');
  }

  private take(name: string): void {
    this.known = true;
    if (name.endsWith('.partial_image')) this.partial = true;
    if (name === 'error') this.end(name, 'ending');
    if (!name.endsWith('.completed')) return;
    this.completing = true;
    if (this.whole + 1 >= this.answers) this.end(name, 'ending');
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
