// Reads segments in bounded batches: the longest valid prefix, and why it ends. Callers decide what to do about damage.

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionRecord } from '../../records/execution-record.ts';
import { decodeFrame } from '../../records/record-codec.ts';
import { segmentFileName } from './spool-directory.ts';
import { findNextFrame, HEADER_BYTES, isTornTail, PAYLOAD_BYTES_MAX, readFrame } from './spool-format.ts';

export interface SegmentPrefix {
  readonly records: ExecutionRecord[];
  /** The end of the last frame read. */
  readonly nextOffset: number;
  /** The buffer ends inside a frame. */
  readonly torn: boolean;
  /** The bytes at `nextOffset` are not a frame of records. */
  readonly corrupt: boolean;
}

/** Reads whole frames until there are `recordsMax` records or more. */
export function readSegment(
  buffer: Buffer,
  offset: number,
  recordsMax: number = Number.POSITIVE_INFINITY,
): SegmentPrefix {
  const records: ExecutionRecord[] = [];
  let nextOffset = offset;
  while (nextOffset < buffer.length && records.length < recordsMax) {
    const frame = readFrame(buffer, nextOffset);
    if (frame.kind !== 'whole')
      return { records, nextOffset, torn: frame.kind === 'torn', corrupt: frame.kind === 'corrupt' };
    const framed = parseFrame(buffer, frame.payloadStart, frame.end);
    if (framed === null) return { records, nextOffset, torn: false, corrupt: true };
    for (const record of framed) records.push(record);
    nextOffset = frame.end;
  }
  return { records, nextOffset, torn: false, corrupt: false };
}

function parseFrame(buffer: Buffer, start: number, end: number): ExecutionRecord[] | null {
  try {
    return decodeFrame(JSON.parse(buffer.toString('utf8', start, end)));
  } catch {
    return null;
  }
}

/** A bounded run of frames of one segment. */
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
  /** A batch ends with the frame that reaches this number. */
  readonly recordsMax: number;
  readonly bytesMax: number;
}

/** The bytes at an offset where no frame could be read. */
export interface SegmentDamage {
  readonly bytes: Buffer;
  readonly nextOffset: number;
  /** The bytes are a whole frame by now: the first read came while the frame was being written. */
  readonly isFrame: boolean;
  readonly frameFollows: boolean;
  readonly tornTail: boolean;
}

const FRAME_ROOM = PAYLOAD_BYTES_MAX + HEADER_BYTES;

/** One reader reuses one buffer; a batch's records do not point into it. */
export class SpoolReader {
  private buffer = Buffer.allocUnsafeSlow(0);

  readBatch(directory: string, segment: number, fromOffset: number, limits: BatchLimits): SegmentBatch {
    const segmentBytes = this.segmentBytes(directory, segment);
    // Most calls find nothing new, so this case costs a single system call.
    if (segmentBytes === fromOffset)
      return { records: [], fromOffset, toOffset: fromOffset, segmentBytes, stopped: 'end' };
    return this.withFile(directory, segment, (fd, segmentBytes) => {
      let window = this.read(fd, fromOffset, Math.min(limits.bytesMax, segmentBytes - fromOffset));
      let prefix = readSegment(window, 0, limits.recordsMax);
      if (prefix.torn && prefix.records.length === 0 && fromOffset + window.length < segmentBytes) {
        // The frame is larger than the window.
        window = this.read(fd, fromOffset, Math.min(FRAME_ROOM, segmentBytes - fromOffset));
        prefix = readSegment(window, 0, 1);
      }
      const toOffset = fromOffset + prefix.nextOffset;
      const sawTheEnd = fromOffset + window.length >= segmentBytes;
      const stopped =
        toOffset >= segmentBytes ? 'end' : prefix.corrupt ? 'corrupt' : prefix.torn && sawTheEnd ? 'torn' : null;
      return { records: prefix.records, fromOffset, toOffset, segmentBytes, stopped };
    });
  }

  /** The damaged bytes at `offset` of a segment: up to the next frame, or to the end when there is none. */
  readDamage(directory: string, segment: number, offset: number): SegmentDamage {
    return this.withFile(directory, segment, (fd, segmentBytes) => {
      const rest = Buffer.from(this.read(fd, offset, segmentBytes - offset));
      const next = findNextReadable(rest);
      const length = next === -1 ? rest.length : next;
      return {
        bytes: rest.subarray(0, length),
        nextOffset: offset + length,
        isFrame: isReadable(rest, 0),
        frameFollows: next !== -1,
        tornTail: isTornTail(rest, 0),
      };
    });
  }

  /** The raw bytes of a range of a segment. */
  readBytes(directory: string, segment: number, fromOffset: number, toOffset: number): Buffer {
    return this.withFile(directory, segment, (fd) => Buffer.from(this.read(fd, fromOffset, toOffset - fromOffset)));
  }

  segmentBytes(directory: string, segment: number): number {
    return statSync(join(directory, segmentFileName(segment))).size;
  }

  private withFile<T>(directory: string, segment: number, use: (fd: number, segmentBytes: number) => T): T {
    const fd = openSync(join(directory, segmentFileName(segment)), 'r');
    try {
      return use(fd, fstatSync(fd).size);
    } finally {
      closeSync(fd);
    }
  }

  private read(fd: number, position: number, length: number): Buffer {
    const wanted = Math.max(0, length);
    if (this.buffer.length < wanted) this.buffer = Buffer.allocUnsafeSlow(wanted);
    let filled = 0;
    while (filled < wanted) {
      const count = readSync(fd, this.buffer, filled, wanted - filled, position + filled);
      if (count === 0) break;
      filled += count;
    }
    return this.buffer.subarray(0, filled);
  }
}

/** The next frame that matches its checksum and also parses; anything less is still damage. */
function findNextReadable(buffer: Buffer): number {
  for (let next = findNextFrame(buffer, 0); next !== -1; next = findNextFrame(buffer, next)) {
    if (isReadable(buffer, next)) return next;
  }
  return -1;
}

function isReadable(buffer: Buffer, offset: number): boolean {
  const frame = readFrame(buffer, offset);
  return frame.kind === 'whole' && parseFrame(buffer, frame.payloadStart, frame.end) !== null;
}
