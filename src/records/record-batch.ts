// Encodes the records of one tick of the event loop as the bytes that the spool writes: frames, each with room before
// it for the spool's header. The memory of a batch is reused for later batches.

import { Buffer } from 'node:buffer';
import type { ExecutionEnd, ExecutionRecord, ExecutionStart } from './execution-record.ts';
import { decodeFrame, OpenFrame } from './record-codec.ts';

/** Bytes left free before each frame for the spool's header. */
export const FRAME_HEADROOM_BYTES = 8;
/**
 * The most records of a frame. One damaged byte loses the whole frame, so most frames are no longer than a page, which
 * is what a disk loses at once. Longer frames would save little more by sharing a dictionary.
 */
export const FRAME_RECORDS = 24;
/** The longest frame, without its headroom. A reader treats a longer frame as damage. */
export const FRAME_BYTES_MAX = 1 << 20;

const MEMORY_BYTES = 65_536;
/**
 * With less than this left, the next batch gets other memory. More than this is enough for one tick of a busy loop, so
 * a batch rarely has to grow.
 */
const ROOM_BYTES = 16_384;
/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const UNIT_BYTES_MAX = 3;
const NONE: ReadonlyMap<number, Error> = new Map();

export class RecordBatch {
  /** The memory of the frames. Growing replaces the buffer. */
  bytes: Buffer = Buffer.allocUnsafeSlow(MEMORY_BYTES);
  /** The offset of the first frame's headroom. */
  start = 0;
  /** The end offset of each finished frame. */
  ends: number[] = [];
  /** The number of appended records, including those of the open frame and refused ones. */
  records = 0;
  /** Records that no frame could hold: the error by the record's index in the batch. */
  refused: ReadonlyMap<number, Error> = NONE;
  /** For each of `ends`, how many records were appended up to there, refused ones included. */
  private recordsBefore: number[] = [];
  /** The frame that is being put together; null: none is. */
  private frame: OpenFrame | null = null;
  /** The end offset of the last finished frame. */
  private end = 0;

  /** Appends an admitted record, or a terminal one if `end` is given. If it throws, the record is not in the batch. */
  append(start: ExecutionStart, end: ExecutionEnd | null): void {
    if (this.frame?.records === FRAME_RECORDS) this.endFrame();
    this.frame ??= new OpenFrame(start.admittedAtMs);
    this.frame.add(start, end);
    this.records += 1;
  }

  /**
   * Finishes the open frame. A frame that is too long, or cannot be written, is split into one frame for each record;
   * records that still fail are `refused`.
   */
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

  /** How many records were appended up to the end of the first `frames` frames, refused ones included. */
  recordsIn(frames: number): number {
    return this.recordsBefore[frames - 1] ?? 0;
  }

  /** Whether the next batch fits into the memory after this one. */
  get hasRoom(): boolean {
    return this.bytes.length - this.end >= ROOM_BYTES;
  }

  /** Empties the batch. Its frames will be overwritten. */
  clear(): void {
    this.beginAt(0);
  }

  /** Empties the batch. Its frames stay in memory, and new frames go after them. */
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

  /** Adds a frame, up to whose end `recordsBefore` records were appended; returns null, or why it cannot be added. */
  private put(frame: OpenFrame, recordsBefore: number): Error | null {
    const end = this.write(frame);
    if (typeof end !== 'number') return end;
    this.end = end;
    this.ends.push(end);
    this.recordsBefore.push(recordsBefore);
    return null;
  }

  /** Writes a frame after the others and returns its end offset, or why it cannot be written. */
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
