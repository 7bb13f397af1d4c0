// The records of one tick of the event loop, put together as the bytes that the spool writes: frames, each with room
// before it for the spool's header, in memory that is used again for later batches.

import { Buffer } from 'node:buffer';
import type { ExecutionEnd, ExecutionRecord, ExecutionStart } from './execution-record.ts';
import { decodeFrame, OpenFrame } from './record-codec.ts';

/** Room before each frame. */
export const FRAME_HEADROOM_BYTES = 8;
/**
 * One damaged byte loses the whole frame, so most frames are no longer than what a disk loses at once, a page. More
 * records than that would save little more by sharing a dictionary.
 */
export const FRAME_RECORDS = 24;
/** Of a frame behind its headroom. A reader takes a longer one for damage. */
export const FRAME_BYTES_MAX = 1 << 20;

const MEMORY_BYTES = 65_536;
/** With less than this left, the next batch gets other memory, so that one tick of a busy loop need not grow it. */
const ROOM_BYTES = 16_384;
/** A UTF-16 code unit in UTF-8. */
const UNIT_BYTES_MAX = 3;
const NONE: ReadonlyMap<number, Error> = new Map();

export class RecordBatch {
  /** Where the frames lie; another buffer once it has grown. */
  bytes: Buffer = Buffer.allocUnsafeSlow(MEMORY_BYTES);
  /** The offset before the first frame. */
  start = 0;
  /** The offset after each frame that is ended. */
  ends: number[] = [];
  /** How many records there are in all. */
  records = 0;
  /** Those that lie in none of the frames that are ended, since none could hold them: by their place, and why. */
  refused: ReadonlyMap<number, Error> = NONE;
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

  /** The next record begins a frame. A frame that would be too long, or cannot be written, becomes one a record. */
  endFrame(): void {
    const { frame } = this;
    if (frame === null) return;
    const fault = this.put(frame, this.records);
    if (fault !== null) this.putApart(frame, fault);
    this.frame = null;
  }

  private putApart({ items, originMs, records: count }: OpenFrame, fault: Error): void {
    const first = this.records - count;
    const refused = new Map(this.refused);
    const records = count === 1 ? null : decodeFrame(items);
    for (let index = 0; index < count; index++) {
      const record = records?.[index];
      const cause = record === undefined ? fault : this.putAlone(record, originMs, first + index);
      if (cause !== null) refused.set(first + index, cause);
    }
    this.refused = refused;
  }

  private putAlone(record: ExecutionRecord, originMs: number, place: number): Error | null {
    const frame = new OpenFrame(originMs);
    frame.add(record, record.type === 'terminal' ? record : null);
    return this.put(frame, place + 1);
  }

  /** How many records lie in the first so many frames, with those that are refused before them. */
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
    this.refused = NONE;
    this.frame = null;
    this.start = start;
    this.end = start;
  }

  /** null: it lies behind the others, and ends where so many records are before it; else why it does not. */
  private put(frame: OpenFrame, recordsBefore: number): Error | null {
    const end = this.write(frame);
    if (typeof end !== 'number') return end;
    this.end = end;
    this.ends.push(end);
    this.recordsBefore.push(recordsBefore);
    return null;
  }

  /** Where it ends. */
  private write(frame: OpenFrame): number | Error {
    let text: string;
    try {
      text = frame.json();
    } catch (cause) {
      return new Error('a record cannot be written', { cause });
    }
    if (text.length > FRAME_BYTES_MAX) return new Error(`a record of ${text.length} characters is too long`);
    const from = this.end + FRAME_HEADROOM_BYTES;
    const endMax = from + text.length * UNIT_BYTES_MAX;
    if (endMax > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(endMax * 2);
      this.bytes.copy(larger, 0, 0, this.end);
      this.bytes = larger;
    }
    const count = this.bytes.write(text, from, 'utf8');
    return count > FRAME_BYTES_MAX ? new Error(`a record of ${count} bytes is too long`) : from + count;
  }
}
