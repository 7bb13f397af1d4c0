// The format of a spool segment: how frames are written, and how a reader tells them from damage.
//
//   | u32 length of the payload | u32 crc32 of the payload | payload: JSON, UTF-8 |     (numbers are little-endian)
//
// The payload is one array of records (src/records/record-codec.ts). A length is below 2^24, so every header contains a
// zero byte, which JSON text never does (control characters are escaped). The bytes of a payload can therefore never be
// mistaken for a header, which is how a reader finds the next frame after damaged bytes.

import { crc32 } from 'node:zlib';
import { assert } from '../../platform/assert.ts';
import { FRAME_BYTES_MAX, FRAME_HEADROOM_BYTES, type RecordBatch } from '../../records/record-batch.ts';

export const HEADER_BYTES = FRAME_HEADROOM_BYTES;
/** Far above most frames (some 4,000 bytes). A longer length in a header is damage, not a frame. */
export const PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX;

/** Writes the header of the frame that lies from `offset`, with room for the header, to `end`. */
export function writeHeader(bytes: Buffer, offset: number, end: number): void {
  const payloadStart = offset + HEADER_BYTES;
  bytes.writeUInt32LE(end - payloadStart, offset);
  bytes.writeUInt32LE(crc32(bytes.subarray(payloadStart, end)), offset + 4);
}

/** Writes the headers of all frames of a batch. */
export function writeHeaders(batch: RecordBatch): void {
  const { bytes, ends } = batch;
  let { start } = batch;
  for (const end of ends) {
    const payloadBytes = end - start - HEADER_BYTES;
    assert(payloadBytes > 0 && payloadBytes <= PAYLOAD_BYTES_MAX, `spool: a frame of ${payloadBytes} bytes`);
    writeHeader(bytes, start, end);
    start = end;
  }
}

/**
 * What is found at an offset: a whole frame that matches its checksum, the beginning of a frame that the buffer cuts
 * off, or damage.
 */
export type Frame =
  | { readonly kind: 'whole'; readonly payloadStart: number; readonly end: number }
  | { readonly kind: 'torn' | 'corrupt' };

const TORN: Frame = { kind: 'torn' };
const CORRUPT: Frame = { kind: 'corrupt' };

export function readFrame(buffer: Buffer, offset: number): Frame {
  const payloadStart = offset + HEADER_BYTES;
  if (payloadStart > buffer.length) return TORN;
  const length = buffer.readUInt32LE(offset);
  if (length === 0 || length > PAYLOAD_BYTES_MAX) return CORRUPT;
  const end = payloadStart + length;
  if (end > buffer.length) return TORN;
  if (crc32(buffer.subarray(payloadStart, end)) !== buffer.readUInt32LE(offset + 4)) return CORRUPT;
  return { kind: 'whole', payloadStart, end };
}

/** The offset of the first whole frame after `offset`; -1 when there is none in the buffer. */
export function findNextFrame(buffer: Buffer, offset: number): number {
  for (let candidate = offset + 1; candidate + HEADER_BYTES < buffer.length; candidate++) {
    if (readFrame(buffer, candidate).kind === 'whole') return candidate;
  }
  return -1;
}

/**
 * Whether the bytes from `offset` to the end are what an interrupted write or a power cut leaves: part of one frame, or
 * zeros. Anything else is damage to bytes that had been written, and must not be mistaken for a torn tail.
 */
export function isTornTail(buffer: Buffer, offset: number): boolean {
  if (isZero(buffer, offset)) return true;
  if (readFrame(buffer, offset).kind !== 'torn') return false;
  if (offset + HEADER_BYTES > buffer.length) return true;
  // A damaged length can reach past the end as that of a torn frame does. In that case the whole payload is there and
  // matches, or whole frames follow.
  if (crc32(buffer.subarray(offset + HEADER_BYTES)) === buffer.readUInt32LE(offset + 4)) return false;
  return findNextFrame(buffer, offset) === -1;
}

function isZero(buffer: Buffer, offset: number): boolean {
  for (let index = offset; index < buffer.length; index++) if (buffer[index] !== 0) return false;
  return true;
}
