// Records put together as bytes the way a spool has them: in frames, each a JSON array with room before it for the
// header that the spool frames it with. What one turn of the event loop has to record is written as it lies here,
// without a copy. What many records say alike is in a frame once.

import { Buffer } from 'node:buffer';
import { assert } from '../platform/assert.ts';
import { AsciiText, jsonAscii } from './ascii-text.ts';

/** Room before each frame. */
export const FRAME_HEADROOM_BYTES = 8;
/**
 * A frame that has grown so long is ended. All of it is lost with one damaged byte, so it is no longer than what a disk
 * loses at once, a page; some twenty records share what it says once, and more would save no more.
 */
export const FRAME_BYTES = 4_096;

const MEMORY_BYTES = 65_536;
/**
 * With less than this left, what comes next begins in other memory: what one turn of a busy event loop records should
 * not have to grow.
 */
const ROOM_BYTES = 16_384;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** A frame that is being put together. */
interface OpenFrame {
  /** Since 1970; null: nothing has been told from it. */
  originMs: number | null;
  /** How many shared texts it has. */
  shared: number;
  /** How many records. */
  records: number;
}

/** The JSON of values that many records have in common: a record refers to it by its number in the frame. */
export class SharedText {
  readonly bytes: Buffer;
  /** The frame that it was last put into, and its number there. */
  private frame: OpenFrame | null = null;
  private number = 0;

  constructor(values: unknown) {
    this.bytes = Buffer.from(jsonAscii(values), 'latin1');
  }

  numberIn(frame: OpenFrame): number | null {
    return this.frame === frame ? this.number : null;
  }

  setNumber(frame: OpenFrame, number: number): void {
    this.frame = frame;
    this.number = number;
  }
}

export class RecordGroup extends AsciiText {
  /** The offset after each frame that is ended. */
  readonly ends: number[] = [];
  /** How many records lie before each of these. */
  private readonly recordsBefore: number[] = [];
  /** Records that are ended. */
  records = 0;
  private open: OpenFrame | null = null;
  /** Up to here all is whole: the shared texts and the records that are ended. */
  private wholeBytes = 0;
  private frameStart = 0;
  private firstStart = 0;

  constructor() {
    super(MEMORY_BYTES);
  }

  /**
   * What the record that begins next tells its instants from: the first instant of the frame, which is there once,
   * before all else.
   */
  originMs(instantMs: number): number {
    const frame = this.open ?? this.beginFrame();
    if (frame.originMs === null) {
      this.beginItem();
      this.putNumber(instantMs);
      this.wholeBytes = this.end;
      frame.originMs = instantMs;
    }
    return frame.originMs;
  }

  /**
   * The number of a text in the frame of the record that begins next; it is put there if this is the first to refer to
   * it.
   */
  share(text: SharedText): number {
    const frame = this.open ?? this.beginFrame();
    const known = text.numberIn(frame);
    if (known !== null) return known;
    this.beginItem();
    this.put(text.bytes);
    this.wholeBytes = this.end;
    const number = frame.shared++;
    text.setNumber(frame, number);
    return number;
  }

  /** Begins a record: an item of the frame's array. One that was begun before and not ended is none. */
  beginRecord(): void {
    this.open ??= this.beginFrame();
    this.beginItem();
  }

  endRecord(): void {
    assert(this.open !== null, 'a record is begun before it is ended');
    this.wholeBytes = this.end;
    this.open.records += 1;
    this.records += 1;
    if (this.wholeBytes - this.frameStart >= FRAME_BYTES) this.endFrame();
  }

  /** What comes next is in a frame of its own. Texts that no record refers to are left out. */
  endFrame(): void {
    const { open } = this;
    this.open = null;
    if (open === null || open.records === 0) return;
    this.begin(this.wholeBytes);
    this.reserve(1);
    this.putByte(CLOSE_BRACKET);
    this.frameStart = this.end;
    this.ends.push(this.end);
    this.recordsBefore.push(this.records);
  }

  /** Of the first so many frames. */
  recordsIn(frames: number): number {
    return this.recordsBefore[frames - 1] ?? 0;
  }

  /** The offset before the first frame. */
  get start(): number {
    return this.firstStart;
  }

  /** Whether another group has room behind this one. */
  get hasRoom(): boolean {
    return this.bytes.length - this.frameStart >= ROOM_BYTES;
  }

  /** As if it were new. */
  clear(): void {
    this.beginAt(0);
  }

  /** As if it were new, behind the frames that it has: these stay as they lie. */
  goOn(): void {
    this.beginAt(this.frameStart);
  }

  private beginAt(start: number): void {
    this.ends.length = 0;
    this.recordsBefore.length = 0;
    this.records = 0;
    this.open = null;
    this.wholeBytes = start;
    this.frameStart = start;
    this.firstStart = start;
  }

  private beginFrame(): OpenFrame {
    const frame = { originMs: null, shared: 0, records: 0 };
    this.open = frame;
    this.wholeBytes = this.frameStart + FRAME_HEADROOM_BYTES;
    return frame;
  }

  private beginItem(): void {
    this.begin(this.wholeBytes);
    this.reserve(1);
    this.putByte(this.wholeBytes === this.frameStart + FRAME_HEADROOM_BYTES ? OPEN_BRACKET : COMMA);
  }
}
