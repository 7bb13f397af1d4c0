// The records of one tick of the event loop, put together as the bytes that the spool writes: frames, each with room
// before it for the spool's header, in memory that is used again for later batches.

import { Buffer } from 'node:buffer';
import type { ExecutionEnd, ExecutionStart } from './execution-record.ts';
import { OpenFrame } from './record-codec.ts';

/** Room before each frame. */
export const FRAME_HEADROOM_BYTES = 8;
/**
 * One damaged byte loses the whole frame, so most frames are no longer than what a disk loses at once, a page. More
 * records than that would save little more by sharing a dictionary.
 */
export const FRAME_RECORDS = 24;

const MEMORY_BYTES = 65_536;
/** With less than this left, the next batch gets other memory, so that one tick of a busy loop need not grow it. */
const ROOM_BYTES = 16_384;
/** A UTF-16 code unit in UTF-8. */
const UNIT_BYTES_MAX = 3;

export class RecordBatch {
  /** Where the frames lie; another buffer once it has grown. */
  bytes: Buffer = Buffer.allocUnsafeSlow(MEMORY_BYTES);
  /** The offset before the first frame. */
  start = 0;
  /** The offset after each frame that is ended. */
  ends: number[] = [];
  /** How many records there are in all. */
  records = 0;
  /** How many records lie before each of `ends`. */
  private recordsBefore: number[] = [];
  /** The frame that is being put together; null: none is. */
  private frame: OpenFrame | null = null;
  /** Where the frames end so far. */
  private end = 0;

  /** The record of a start, or with `end` that of an end. Nothing of it is in the batch where this throws. */
  append(start: ExecutionStart, end: ExecutionEnd | null): void {
    if (this.frame?.records === FRAME_RECORDS) this.endFrame();
    this.frame ??= new OpenFrame(start.admittedAtMs);
    this.frame.add(start, end);
    this.records += 1;
  }

  /** The next record begins a frame. */
  endFrame(): void {
    const { frame } = this;
    if (frame === null) return;
    this.put(frame.json());
    this.frame = null;
    this.ends.push(this.end);
    this.recordsBefore.push(this.records);
  }

  /** How many records the first so many frames have. */
  recordsIn(frames: number): number {
    return this.recordsBefore[frames - 1] ?? 0;
  }

  /** Whether the next batch has room behind this one. */
  get hasRoom(): boolean {
    return this.bytes.length - this.end >= ROOM_BYTES;
  }

  /** Makes the batch empty; its frames may be overwritten. */
  clear(): void {
    this.beginAt(0);
  }

  /** Makes the batch empty; its frames stay as they lie, and what comes next lies behind them. */
  continueBehind(): void {
    this.beginAt(this.end);
  }

  private beginAt(start: number): void {
    this.ends = [];
    this.recordsBefore = [];
    this.records = 0;
    this.frame = null;
    this.start = start;
    this.end = start;
  }

  private put(text: string): void {
    const from = this.end + FRAME_HEADROOM_BYTES;
    const endMax = from + text.length * UNIT_BYTES_MAX;
    if (endMax > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(endMax * 2);
      this.bytes.copy(larger, 0, 0, this.end);
      this.bytes = larger;
    }
    this.end = from + this.bytes.write(text, from, 'utf8');
  }
}
