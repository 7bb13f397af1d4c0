// The spool writer: what it wrote is readable at once, rotation, group commit, and every fault of the file system.

import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { FRAME_RECORDS } from '../../src/records/record-batch.ts';
import {
  CLOSED_FILE,
  listEpochs,
  readEpochSpool,
  removeEpochSpool,
  segmentFileName,
} from '../../src/storage/spool/spool-directory.ts';
import { SpoolFault } from '../../src/storage/spool/spool-fault.ts';
import { nodeFileSystem, type SpoolFileSystem } from '../../src/storage/spool/spool-file-system.ts';
import { SpoolReader } from '../../src/storage/spool/spool-reader.ts';
import { SpoolWriter, type SpoolWriterOptions } from '../../src/storage/spool/spool-writer.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { appendRecords, frameBytesOf, frameTexts, putRecord } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const LIMITS = { recordsMax: 10_000, bytesMax: 1 << 20 };
const EPOCH = 7;

function openWriter(directory: string, overrides: Partial<SpoolWriterOptions> = {}): SpoolWriter {
  const log = createLog({ level: 'silent', process: 'test' });
  return SpoolWriter.open({
    directory,
    epoch: EPOCH,
    segmentBytesMax: 1 << 20,
    fsyncIntervalMs: 1,
    log,
    clock: systemClock,
    ...overrides,
  });
}

function readAll(directory: string): ExecutionRecord[] {
  const spool = readEpochSpool(directory, EPOCH);
  const reader = new SpoolReader();
  return spool.segments.flatMap((segment) => reader.readBatch(spool.directory, segment, 0, LIMITS).records);
}

/** The disk takes this many more bytes; then a write is short, and the next one fails. */
function fullDisk(bytesLeft: number): SpoolFileSystem {
  let left = bytesLeft;
  return {
    ...nodeFileSystem,
    write: (fd, buffer, offset, length) => {
      if (left === 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      const count = Math.min(left, length);
      left -= count;
      return nodeFileSystem.write(fd, buffer, offset, count);
    },
  };
}

describe('spool writer', () => {
  test('a record is readable as soon as append returns, and after close too', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openWriter(directory);
    const start = executionStart();
    const written = [admittedRecord(start), terminalRecord(start, { errorCode: 'ключ' })];
    for (const [index, record] of written.entries()) {
      appendRecords(writer, record);
      assert.deepEqual(readAll(directory), written.slice(0, index + 1));
    }
    assert.equal(readEpochSpool(directory, EPOCH).ended, false);
    await writer.close();
    await writer.close();
    assert.equal(readEpochSpool(directory, EPOCH).ended, true);
    assert.deepEqual(readAll(directory), written);
    assert.throws(() => appendRecords(writer, admittedRecord()), /append after close/);
  });

  test('segments rotate at their limit, in order, and none is longer', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openWriter(directory, { segmentBytesMax: 1200 });
    const written = Array.from({ length: 40 }, () => admittedRecord());
    for (const record of written.slice(0, 20)) appendRecords(writer, record);
    for (let index = 20; index < 40; index += 2) appendRecords(writer, ...written.slice(index, index + 2));
    assert.deepEqual(readAll(directory), written);
    const spool = readEpochSpool(directory, EPOCH);
    assert.ok(spool.segments.length >= 10);
    for (const segment of spool.segments)
      assert.ok(statSync(join(spool.directory, segmentFileName(segment))).size <= 1200);
    await writer.close();
  });

  test('a record larger than the buffer and the segment limit still fits', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openWriter(directory, { segmentBytesMax: 1200 });
    const large = admittedRecord(executionStart({ tags: ['x'.repeat(200_000)] }));
    const written = [admittedRecord(), large, admittedRecord()];
    appendRecords(writer, ...written);
    const limits = { recordsMax: 10, bytesMax: 1000 };
    const reader = new SpoolReader();
    const spool = readEpochSpool(directory, EPOCH);
    const read: ExecutionRecord[] = [];
    let batch = reader.readBatch(spool.directory, 1, 0, limits);
    while (batch.records.length > 0) {
      read.push(...batch.records);
      batch = reader.readBatch(spool.directory, 1, batch.toOffset, limits);
    }
    assert.equal(batch.stopped, 'end');
    assert.deepEqual(read, written);
    await writer.close();
  });

  test('an epoch has one spool', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openWriter(directory);
    assert.throws(() => openWriter(directory), /has a spool already/);
    await writer.close();
  });

  test('a removed spool is gone, whatever it held', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openWriter(directory);
    appendRecords(writer, admittedRecord());
    await writer.close();
    removeEpochSpool(directory, EPOCH);
    assert.deepEqual(listEpochs(directory), []);
  });

  test('the disk fills up at every byte of an append: the torn record is cut off and no more is taken', async (context) => {
    const record = admittedRecord();
    const frameBytes = frameBytesOf(record);
    for (let room = 0; room < frameBytes; room += 13) {
      const directory = temporaryDirectory(context);
      const writer = openWriter(directory, { fileSystem: fullDisk(frameBytes + room) });
      appendRecords(writer, record);
      assert.throws(
        () => appendRecords(writer, record),
        (error) => error instanceof SpoolFault && error.recordsWritten === 0,
      );
      assert.equal(writer.healthy, false);
      assert.throws(() => appendRecords(writer, record), SpoolFault);
      assert.deepEqual(readAll(directory), [record]);
      assert.equal(statSync(join(directory, '7', segmentFileName(1))).size, frameBytes);
      assert.deepEqual([writer.recordsAppended, writer.bytesAppended], [1, frameBytes]);
      await writer.close();
    }
  });

  test('the disk fills up inside a write of several: whole records stay and are counted', async (context) => {
    const directory = temporaryDirectory(context);
    const batch = [admittedRecord(), admittedRecord(), admittedRecord()];
    const frameBytes = frameBytesOf(batch[0] as ExecutionRecord);
    const writer = openWriter(directory, { fileSystem: fullDisk(frameBytes * 2 + 5) });
    assert.throws(
      () => appendRecords(writer, ...batch),
      (error) => error instanceof SpoolFault && error.recordsWritten === 2,
    );
    assert.deepEqual(readAll(directory), batch.slice(0, 2));
    await writer.close();
  });

  test('the disk fills up inside a batch of several frames: whole frames stay, and their records are counted', async (context) => {
    const records = Array.from({ length: 40 }, () => admittedRecord());
    const batchBytes = frameTexts(...records).join('').length;
    for (let room = 100; room < batchBytes; room += 997) {
      const directory = temporaryDirectory(context);
      const writer = openWriter(directory, { fileSystem: fullDisk(room) });
      const batch = writer.takeBatch();
      for (const record of records) putRecord(batch, record);
      let written = -1;
      try {
        writer.appendBatch(batch);
      } catch (error) {
        assert.ok(error instanceof SpoolFault);
        written = error.recordsWritten;
      }
      assert.deepEqual(readAll(directory), records.slice(0, written), `room ${room}`);
      assert.equal(writer.recordsAppended, written);
      const hasRoomForFrame = room > (batchBytes * FRAME_RECORDS) / records.length + 1_000;
      if (hasRoomForFrame) assert.ok(written > 0 && written < records.length);
      await writer.close();
    }
  });

  test('a torn record that cannot be cut off stays as a torn tail', async (context) => {
    const directory = temporaryDirectory(context);
    const record = admittedRecord();
    const frameBytes = frameBytesOf(record);
    const fileSystem = {
      ...fullDisk(frameBytes + 100),
      ftruncate: () => {
        throw new Error('EIO');
      },
    };
    const writer = openWriter(directory, { fileSystem });
    appendRecords(writer, record);
    assert.throws(() => appendRecords(writer, record), SpoolFault);
    const batch = new SpoolReader().readBatch(join(directory, '7'), 1, 0, LIMITS);
    assert.deepEqual([batch.records, batch.stopped], [[record], 'torn']);
    await writer.close();
  });

  test('a failed background sync is not tried again: its records go to a fresh segment, and a sync of that one ends the fault', async (context) => {
    const directory = temporaryDirectory(context);
    const synced: number[] = [];
    const proof = Promise.withResolvers<void>();
    const fileSystem: SpoolFileSystem = {
      ...nodeFileSystem,
      fdatasync: (fd, done) => {
        synced.push(fd);
        if (synced.length === 1) return done(new Error('EIO: i/o error'));
        proof.resolve();
        nodeFileSystem.fdatasync(fd, done);
      },
    };
    const writer = openWriter(directory, { fileSystem });
    const records = [admittedRecord(), admittedRecord()];
    appendRecords(writer, ...records);
    await proof.promise;
    assert.equal(writer.healthy, false);
    await waitFor(
      'the proof of the fresh segment',
      () => writer.healthy,
      (healthy) => healthy,
    );
    assert.equal(new Set(synced).size, 2);
    assert.deepEqual(readAll(directory), [...records, ...records]);
    assert.deepEqual(new SpoolReader().readBatch(join(directory, '7'), 2, 0, LIMITS).records, records);
    await writer.close();
    assert.ok(existsSync(join(directory, '7', CLOSED_FILE)));
  });

  test('one background sync covers many appends, and the next begins only after it ended', async (context) => {
    const directory = temporaryDirectory(context);
    const started: (() => void)[] = [];
    let waiting = Promise.withResolvers<void>();
    const fileSystem: SpoolFileSystem = {
      ...nodeFileSystem,
      fdatasync: (_fd, done) => {
        started.push(() => done(null));
        waiting.resolve();
      },
    };
    const writer = openWriter(directory, { fileSystem, segmentBytesMax: 1200 });
    for (let index = 0; index < 10; index++) appendRecords(writer, admittedRecord());
    await waiting.promise;
    waiting = Promise.withResolvers();
    // Rotations while a sync is running must not close the descriptor under it.
    for (let index = 0; index < 10; index++) appendRecords(writer, admittedRecord());
    assert.equal(started.length, 1);
    started[0]?.();
    await waiting.promise;
    assert.equal(started.length, 2);
    const closed = writer.close();
    started[1]?.();
    await closed;
    assert.equal(readAll(directory).length, 20);
    assert.equal(writer.healthy, true);
  });

  test('batches lie behind each other in memory that is used again only when a sync covers all of it', async (context) => {
    const directory = temporaryDirectory(context);
    let syncing = Promise.withResolvers<(fault: Error | null) => void>();
    const fileSystem: SpoolFileSystem = { ...nodeFileSystem, fdatasync: (_fd, done) => syncing.resolve(done) };
    const writer = openWriter(directory, { fileSystem, segmentBytesMax: 1 << 24 });
    const memories = new Set<Buffer>();
    const appendBatches = (batches: number): ExecutionRecord[] =>
      Array.from({ length: batches }, () => {
        const record = admittedRecord();
        const batch = writer.takeBatch();
        memories.add(batch.bytes);
        putRecord(batch, record);
        writer.appendBatch(batch);
        return record;
      });
    let written = appendBatches(500);
    const memoriesOfOneSync = memories.size;
    for (let round = 0; round < 5; round++) {
      const done = await syncing.promise;
      syncing = Promise.withResolvers();
      written = appendBatches(500);
      done(null);
    }
    assert.ok(memoriesOfOneSync <= 10, `500 batches took ${memoriesOfOneSync} pieces of memory`);
    assert.ok(
      memories.size <= 2 * memoriesOfOneSync + 1,
      `${memories.size} pieces of memory, ${memoriesOfOneSync} in the first round`,
    );
    // What the failed sync would have covered and what came since.
    const fail = await syncing.promise;
    syncing = Promise.withResolvers();
    written = [...written, ...appendBatches(500)];
    fail(new Error('EIO: i/o error'));
    const prove = await syncing.promise;
    prove(null);
    assert.equal(writer.healthy, true);
    const batch = new SpoolReader().readBatch(join(directory, String(EPOCH)), 2, 0, {
      recordsMax: 10_000,
      bytesMax: 1 << 24,
    });
    assert.deepEqual(batch.records, written);
    await writer.close();
  });

  test('while no segment can be begun the old one grows, and nothing is admitted', async (context) => {
    const directory = temporaryDirectory(context);
    let opened = 0;
    const fileSystem: SpoolFileSystem = {
      ...nodeFileSystem,
      open: (path) => {
        if (++opened > 1) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
        return nodeFileSystem.open(path);
      },
    };
    const writer = openWriter(directory, { fileSystem, segmentBytesMax: 500 });
    const record = admittedRecord();
    appendRecords(writer, record);
    appendRecords(writer, record);
    assert.equal(writer.healthy, false);
    assert.deepEqual(readAll(directory), [record, record]);
    assert.deepEqual(readEpochSpool(directory, EPOCH).segments, [1]);
    await writer.close();
  });

  test('too little free space stops admission before the disk is full, and more of it starts admission again', async (context) => {
    const directory = temporaryDirectory(context);
    let freeBytes = 1000;
    const fileSystem: SpoolFileSystem = { ...nodeFileSystem, freeBytes: (_path, done) => done(null, freeBytes) };
    const writer = openWriter(directory, { fileSystem, freeBytesMin: 800 });
    const healthyAt = (bytes: number): boolean => {
      freeBytes = bytes;
      writer.check();
      return writer.healthy;
    };
    assert.deepEqual([900, 800, 799, 0].map(healthyAt), [true, true, false, false]);
    appendRecords(writer, admittedRecord());
    assert.equal(readAll(directory).length, 1);
    // A little more than where it stopped: a disk at the threshold does not flap.
    assert.deepEqual([800, 899, 900, 800].map(healthyAt), [false, false, true, true]);
    await writer.close();
  });

  test('on a full disk the reserve makes room for what is under way, and is made again before anything is admitted', async (context) => {
    const directory = temporaryDirectory(context);
    const reserve = join(directory, '7', 'reserve');
    const record = admittedRecord();
    const frameBytes = frameBytesOf(record);
    let left = frameBytes + 100;
    const fileSystem: SpoolFileSystem = {
      ...nodeFileSystem,
      write: (fd, buffer, offset, length) => {
        if (left === 0 && !existsSync(reserve)) left = 3 * frameBytes;
        if (left === 0) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
        const count = nodeFileSystem.write(fd, buffer, offset, Math.min(left, length));
        left -= count;
        return count;
      },
    };
    const writer = openWriter(directory, { fileSystem, reserveFileBytes: 4096 });
    await waitFor(
      'the reserve',
      () => existsSync(reserve) && statSync(reserve).size,
      (size) => size === 4096,
    );
    for (let index = 0; index < 3; index++) appendRecords(writer, record);
    assert.equal(writer.healthy, false);
    assert.equal(existsSync(reserve), false);
    assert.deepEqual(readAll(directory), [record, record, record]);
    left = 1 << 20;
    await waitFor(
      'the reserve to be made again',
      () => {
        writer.check();
        return writer.healthy;
      },
      (healthy) => healthy,
    );
    assert.equal(statSync(reserve).size, 4096);
    await writer.close();
    assert.equal(existsSync(reserve), false);
  });
});
