// Reads segments back: the longest valid prefix, in bounded batches, with what stopped it. It never decides what becomes of damage.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionRecord } from '../../domain/executions/execution-record.ts';
import { readRecordForm } from '../../domain/executions/record-form.ts';
import { segmentFileName } from './spool-directory.ts';
import { findNextFrame, HEADER_BYTES, isTornTail, RECORD_BYTES_MAX, readFrame } from './spool-format.ts';

export interface SegmentPrefix {
  readonly records: ExecutionRecord[];
  /** Where reading stopped: the end of the last record that was read. */
  readonly nextOffset: number;
  /** The buffer ends inside a record. */
  readonly torn: boolean;
  /** The bytes at `nextOffset` are not a record. */
  readonly corrupt: boolean;
}

export function readSegment(buffer: Buffer, offset: number, recordsMax: number = Number.POSITIVE_INFINITY): SegmentPrefix {
  const records: ExecutionRecord[] = [];
  let nextOffset = offset;
  while (nextOffset < buffer.length && records.length < recordsMax) {
    const frame = readFrame(buffer, nextOffset);
    if (frame.kind !== 'record') return { records, nextOffset, torn: frame.kind === 'torn', corrupt: frame.kind === 'corrupt' };
    const record = parseRecord(buffer, frame.payloadStart, frame.end);
    if (record === null) return { records, nextOffset, torn: false, corrupt: true };
    records.push(record);
    nextOffset = frame.end;
  }
  return { records, nextOffset, torn: false, corrupt: false };
}

function parseRecord(buffer: Buffer, start: number, end: number): ExecutionRecord | null {
  try {
    return readRecordForm(JSON.parse(buffer.toString('utf8', start, end)));
  } catch {
    return null;
  }
}

/** A bounded run of records of one segment, from one offset. */
export interface SegmentBatch {
  readonly records: ExecutionRecord[];
  readonly fromOffset: number;
  readonly toOffset: number;
  /** The segment's size when it was read. */
  readonly segmentBytes: number;
  /** Why there is nothing beyond `toOffset` to read now; null when there may be more. */
  readonly stopped: 'end' | 'torn' | 'corrupt' | null;
}

export interface BatchLimits {
  readonly recordsMax: number;
  readonly bytesMax: number;
}

/** What stands where no record could be read. */
export interface SegmentDamage {
  readonly bytes: Buffer;
  readonly nextOffset: number;
  /** By now it is a record: its write was under way when it was looked at before. */
  readonly isRecord: boolean;
  readonly recordFollows: boolean;
  readonly tornTail: boolean;
}

const RECORD_ROOM = RECORD_BYTES_MAX + HEADER_BYTES;

/** One reader reuses one buffer; a batch's records do not point into it. */
export class SpoolReader {
  #buffer = Buffer.allocUnsafeSlow(0);

  readBatch(directory: string, segment: number, fromOffset: number, limits: BatchLimits): SegmentBatch {
    return this.#withFile(directory, segment, (fd, segmentBytes) => {
      let window = this.#read(fd, fromOffset, Math.min(limits.bytesMax, segmentBytes - fromOffset));
      let prefix = readSegment(window, 0, limits.recordsMax);
      if (prefix.torn && prefix.records.length === 0 && fromOffset + window.length < segmentBytes) {
        // One record larger than the window.
        window = this.#read(fd, fromOffset, Math.min(RECORD_ROOM, segmentBytes - fromOffset));
        prefix = readSegment(window, 0, 1);
      }
      const toOffset = fromOffset + prefix.nextOffset;
      const sawTheEnd = fromOffset + window.length >= segmentBytes;
      const stopped = toOffset >= segmentBytes ? 'end' : prefix.corrupt ? 'corrupt' : prefix.torn && sawTheEnd ? 'torn' : null;
      return { records: prefix.records, fromOffset, toOffset, segmentBytes, stopped };
    });
  }

  /** The damaged bytes at `offset` of a segment: up to the next record, or to the end when there is none. */
  readDamage(directory: string, segment: number, offset: number): SegmentDamage {
    return this.#withFile(directory, segment, (fd, segmentBytes) => {
      const rest = Buffer.from(this.#read(fd, offset, segmentBytes - offset));
      const next = findNextReadable(rest);
      const length = next === -1 ? rest.length : next;
      return {
        bytes: rest.subarray(0, length),
        nextOffset: offset + length,
        isRecord: isReadable(rest, 0),
        recordFollows: next !== -1,
        tornTail: isTornTail(rest, 0),
      };
    });
  }

  /** The bytes of a segment's range, as they lie. */
  readBytes(directory: string, segment: number, fromOffset: number, toOffset: number): Buffer {
    return this.#withFile(directory, segment, (fd) => Buffer.from(this.#read(fd, fromOffset, toOffset - fromOffset)));
  }

  segmentBytes(directory: string, segment: number): number {
    return this.#withFile(directory, segment, (_fd, segmentBytes) => segmentBytes);
  }

  #withFile<T>(directory: string, segment: number, use: (fd: number, segmentBytes: number) => T): T {
    const fd = openSync(join(directory, segmentFileName(segment)), 'r');
    try {
      return use(fd, fstatSync(fd).size);
    } finally {
      closeSync(fd);
    }
  }

  #read(fd: number, position: number, length: number): Buffer {
    const wanted = Math.max(0, length);
    if (this.#buffer.length < wanted) this.#buffer = Buffer.allocUnsafeSlow(wanted);
    let filled = 0;
    while (filled < wanted) {
      const count = readSync(fd, this.#buffer, filled, wanted - filled, position + filled);
      if (count === 0) break;
      filled += count;
    }
    return this.#buffer.subarray(0, filled);
  }
}

/** A record that is whole by its checksum and also parses; anything less is still damage. */
function findNextReadable(buffer: Buffer): number {
  for (let next = findNextFrame(buffer, 0); next !== -1; next = findNextFrame(buffer, next)) {
    if (isReadable(buffer, next)) return next;
  }
  return -1;
}

function isReadable(buffer: Buffer, offset: number): boolean {
  const frame = readFrame(buffer, offset);
  return frame.kind === 'record' && parseRecord(buffer, frame.payloadStart, frame.end) !== null;
}
