// A spool segment read back after every possible truncation and every possible flipped bit.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import {
  findNextFrame,
  HEADER_BYTES,
  isTornTail,
  PAYLOAD_BYTES_MAX,
  writeHeader,
} from '../../src/storage/spool/spool-format.ts';
import { readSegment } from '../../src/storage/spool/spool-reader.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { frameTexts } from '../support/spool-records.ts';

const start = executionStart({ tags: ['größe', 'a"b\\c\u0000\n'], clientRequestId: '客户' });
const frames: readonly (readonly ExecutionRecord[])[] = [
  [admittedRecord(start)],
  [terminalRecord(start), admittedRecord()],
  [admittedRecord()],
  [admittedRecord()],
];
const records = frames.flat();
const { segment, ends } = writeSegment();

function writeSegment(): { segment: Buffer; ends: number[] } {
  const buffer = Buffer.alloc(64 * 1024);
  const frameEnds: number[] = [];
  let end = 0;
  for (const frame of frames) {
    end = putFramed(buffer, end, frameTexts(...frame)[0] ?? '');
    frameEnds.push(end);
  }
  return { segment: buffer.subarray(0, end), ends: frameEnds };
}

function putFramed(buffer: Buffer, offset: number, payload: string): number {
  const end = offset + HEADER_BYTES + buffer.write(payload, offset + HEADER_BYTES);
  writeHeader(buffer, offset, end);
  return end;
}

function wholeFramesIn(length: number): number {
  return ends.filter((end) => end <= length).length;
}

/** Of the first so many frames. */
function recordsOf(count: number): ExecutionRecord[] {
  return frames.slice(0, count).flat();
}

describe('spool format', () => {
  test('what was written is read back equal, from any frame on', () => {
    const all = readSegment(segment, 0);
    assert.deepEqual(all, { records, nextOffset: segment.length, torn: false, corrupt: false });
    const fromSecond = readSegment(segment, ends[0] as number);
    assert.deepEqual(fromSecond.records, records.slice(1));
    assert.deepEqual(readSegment(segment, 0, 1).records, recordsOf(1));
    assert.deepEqual(readSegment(segment, 0, 2).records, recordsOf(2), 'a frame is read whole');
  });

  test('torn at every byte: the longest valid prefix, and the tail is known as torn', () => {
    for (let length = 0; length < segment.length; length++) {
      const torn = segment.subarray(0, length);
      const prefix = readSegment(torn, 0);
      assert.deepEqual(prefix.records, recordsOf(wholeFramesIn(length)), `length ${length}`);
      assert.equal(prefix.nextOffset, ends[wholeFramesIn(length) - 1] ?? 0);
      assert.equal(prefix.corrupt, false);
      assert.equal(prefix.torn, prefix.nextOffset < length);
      if (prefix.torn) assert.ok(isTornTail(torn, prefix.nextOffset), `length ${length}`);
    }
  });

  test('every bit flipped: the frames before it are read, the damage is never taken for a torn tail, and the frames after it are found', () => {
    for (let index = 0; index < segment.length; index++) {
      const damagedFrame = wholeFramesIn(index);
      for (let bit = 0; bit < 8; bit++) {
        const damaged = Buffer.from(segment);
        damaged[index] = (damaged[index] as number) ^ (1 << bit);
        const prefix = readSegment(damaged, 0);
        assert.deepEqual(prefix.records, recordsOf(damagedFrame), `byte ${index} bit ${bit}`);
        assert.ok(prefix.corrupt || prefix.torn);
        assert.equal(isTornTail(damaged, prefix.nextOffset), false, `byte ${index} bit ${bit}`);
        assert.equal(
          findNextFrame(damaged, prefix.nextOffset),
          damagedFrame === frames.length - 1 ? -1 : ends[damagedFrame],
          `byte ${index} bit ${bit}`,
        );
      }
    }
  });

  test('a tail of zeros, as a power cut leaves it, is a torn tail', () => {
    for (const zeros of [1, 7, 8, 4096]) {
      const cut = Buffer.concat([segment, Buffer.alloc(zeros)]);
      const prefix = readSegment(cut, 0);
      assert.equal(prefix.records.length, records.length);
      assert.ok(isTornTail(cut, prefix.nextOffset));
    }
  });

  test('bytes that are no frame are corrupt: implausible lengths and a checksum over something else than records', () => {
    const tooLong = Buffer.alloc(16);
    tooLong.writeUInt32LE(PAYLOAD_BYTES_MAX + 1);
    assert.deepEqual(readSegment(tooLong, 0), { records: [], nextOffset: 0, torn: false, corrupt: true });
    for (const payload of [
      'null',
      '[]',
      '{"type":"other"}',
      '{"type":',
      '["a"]',
      '["b",[]]',
      '["t",[]]',
      '["t",[],{}]',
      '[[]]',
      '[{"type":"admitted"},1]',
      '[["caller","o",null,null,null,"k"]]',
      '[["other"]]',
    ]) {
      const buffer = Buffer.alloc(256);
      const end = putFramed(buffer, 0, payload);
      assert.equal(readSegment(buffer.subarray(0, end), 0).corrupt, true, payload);
    }
  });
});
