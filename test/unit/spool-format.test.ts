// A spool segment read back after every possible truncation and every possible flipped bit.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExecutionRecord } from '../../src/domain/executions/execution-record.ts';
import { findNextFrame, frameRecord, HEADER_BYTES, isTornTail, RECORD_BYTES_MAX } from '../../src/storage/spool/spool-format.ts';
import { readSegment } from '../../src/storage/spool/spool-reader.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';

const start = executionStart({ tags: ['größe', 'a"b\\c\u0000\n'], clientRequestId: '客户' });
const records: ExecutionRecord[] = [admittedRecord(start), terminalRecord(start), admittedRecord(), admittedRecord()];
const { segment, ends } = writeSegment(records);

function writeSegment(list: readonly ExecutionRecord[]): { segment: Buffer; ends: number[] } {
  const buffer = Buffer.alloc(64 * 1024);
  const recordEnds: number[] = [];
  let end = 0;
  for (const record of list) {
    end = putFramed(buffer, end, JSON.stringify(record));
    recordEnds.push(end);
  }
  return { segment: buffer.subarray(0, end), ends: recordEnds };
}

function putFramed(buffer: Buffer, offset: number, payload: string): number {
  const end = offset + HEADER_BYTES + buffer.write(payload, offset + HEADER_BYTES);
  frameRecord(buffer, offset, end);
  return end;
}

function wholeRecordsIn(length: number): number {
  return ends.filter((end) => end <= length).length;
}

describe('spool format', () => {
  test('what was written is read back equal, from any record on', () => {
    const all = readSegment(segment, 0);
    assert.deepEqual(all, { records, nextOffset: segment.length, torn: false, corrupt: false });
    const fromSecond = readSegment(segment, ends[0] as number);
    assert.deepEqual(fromSecond.records, records.slice(1));
    assert.deepEqual(readSegment(segment, 0, 2).records, records.slice(0, 2));
  });

  test('torn at every byte: the longest valid prefix, and the tail is known as torn', () => {
    for (let length = 0; length < segment.length; length++) {
      const torn = segment.subarray(0, length);
      const prefix = readSegment(torn, 0);
      assert.deepEqual(prefix.records, records.slice(0, wholeRecordsIn(length)), `length ${length}`);
      assert.equal(prefix.nextOffset, ends[prefix.records.length - 1] ?? 0);
      assert.equal(prefix.corrupt, false);
      assert.equal(prefix.torn, prefix.nextOffset < length);
      if (prefix.torn) assert.ok(isTornTail(torn, prefix.nextOffset), `length ${length}`);
    }
  });

  test('every bit flipped: the records before it are read, the damage is never taken for a torn tail, and the records after it are found', () => {
    for (let index = 0; index < segment.length; index++) {
      const damagedRecord = wholeRecordsIn(index);
      for (let bit = 0; bit < 8; bit++) {
        const damaged = Buffer.from(segment);
        damaged[index] = (damaged[index] as number) ^ (1 << bit);
        const prefix = readSegment(damaged, 0);
        assert.deepEqual(prefix.records, records.slice(0, damagedRecord), `byte ${index} bit ${bit}`);
        assert.ok(prefix.corrupt || prefix.torn);
        assert.equal(isTornTail(damaged, prefix.nextOffset), false, `byte ${index} bit ${bit}`);
        assert.equal(findNextFrame(damaged, prefix.nextOffset), damagedRecord === records.length - 1 ? -1 : ends[damagedRecord], `byte ${index} bit ${bit}`);
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

  test('bytes that are no record are corrupt: implausible lengths and a checksum over something else than a record', () => {
    const tooLong = Buffer.alloc(16);
    tooLong.writeUInt32LE(RECORD_BYTES_MAX + 1);
    assert.deepEqual(readSegment(tooLong, 0), { records: [], nextOffset: 0, torn: false, corrupt: true });
    for (const payload of ['null', '[]', '{"type":"other"}', '{"type":', '["a"]', '["b",[]]', '["t",[]]', '["t",[],{}]']) {
      const buffer = Buffer.alloc(256);
      const end = putFramed(buffer, 0, payload);
      assert.equal(readSegment(buffer.subarray(0, end), 0).corrupt, true, payload);
    }
  });
});
