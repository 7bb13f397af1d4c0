// Which facts are next, when more wait than are kept in memory: every posted fact once, in order, across segments and
// restarts.

import assert from 'node:assert/strict';
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type FactRange, ShippedEpoch } from '../../jobs/shipping/shipped-epoch.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { readEpochSpool, segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import { SpoolReader } from '../../src/storage/spool/spool-reader.ts';
import { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { appendRecords, putRecord } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const LIMITS = { recordsMax: 500, bytesMax: 1 << 20, allBytesMax: 1 << 24 };

function openSpool(directory: string): SpoolWriter {
  const log = createLog({ level: 'silent', process: 'test' });
  return SpoolWriter.open({
    directory,
    epoch: 1,
    segmentBytesMax: 1_000_000,
    fsyncIntervalMs: 50,
    log,
    clock: systemClock,
  });
}

function appendExecutions(writer: SpoolWriter, count: number): string[] {
  const starts = Array.from({ length: count }, () => executionStart());
  for (let index = 0; index < count; index += 100) {
    appendRecords(
      writer,
      ...starts.slice(index, index + 100).flatMap((start) => [admittedRecord(start), terminalRecord(start)]),
    );
  }
  return starts.map((start) => start.id);
}

function postAll(epoch: ShippedEpoch): void {
  for (let batch = epoch.nextPosting(LIMITS); batch !== null; batch = epoch.nextPosting(LIMITS)) epoch.posted(batch);
}

/** Takes facts as an insert would, at most `insertsMax` times. */
function takeFacts(epoch: ShippedEpoch, recordsMax: number, insertsMax = Number.POSITIVE_INFINITY): string[] {
  const ids: string[] = [];
  for (let count = 0; count < insertsMax; count++) {
    const ranges: FactRange[] = epoch.nextFacts({ ...LIMITS, recordsMax });
    if (ranges.length === 0) break;
    ids.push(...ranges.flatMap((range) => range.facts.map((fact) => fact.id)));
    for (const range of ranges) epoch.factsInserted(range);
  }
  return ids;
}

describe('facts of a spool', () => {
  test('none is lost or taken twice while some are kept, some are read again, and more arrive', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [], new SpoolReader());
    const ids = appendExecutions(writer, 22_000);
    postAll(epoch);
    assert.ok(epoch.keptFactsCount < 22_000, 'not everything is kept');
    const taken = takeFacts(epoch, 3_000, 3);
    ids.push(...appendExecutions(writer, 500));
    postAll(epoch);
    taken.push(...takeFacts(epoch, 3_000, 5));
    ids.push(...appendExecutions(writer, 500));
    postAll(epoch);
    taken.push(...takeFacts(epoch, 3_000));
    assert.deepEqual(taken, ids);
    assert.ok(epoch.factsShipped);
    ids.push(...appendExecutions(writer, 300));
    postAll(epoch);
    assert.equal(epoch.keptFactsCount, 300, 'once caught up, facts are kept again');
    assert.deepEqual(takeFacts(epoch, 100), ids.slice(-300));
    await writer.close();
  });

  test('what arrives while an insert runs is not taken for inserted', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [], new SpoolReader());
    const first = appendExecutions(writer, 10);
    postAll(epoch);
    const inserting = epoch.nextFacts(LIMITS);
    const second = appendExecutions(writer, 10);
    postAll(epoch);
    for (const range of inserting) epoch.factsInserted(range);
    assert.deepEqual(
      inserting.flatMap((range) => range.facts.map((fact) => fact.id)),
      first,
    );
    assert.deepEqual(takeFacts(epoch, 100), second);
    await writer.close();
  });

  test('a spool that ends before what its database has posted, as a restored one may, has no facts there', (context) => {
    const directory = temporaryDirectory(context);
    const ids = appendExecutions(openSpool(directory), 100);
    const path = join(directory, '1', segmentFileName(1));
    const endOffset = statSync(path).size + 300_000_000;
    const cursor = { segment: 1, postedOffset: endOffset, factsOffset: 0 };
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [cursor], new SpoolReader());
    const ranges = epoch.nextFacts(LIMITS);
    assert.deepEqual(
      ranges.flatMap(({ facts }) => facts.map(({ id }) => id)),
      ids,
    );
    assert.equal(ranges.at(-1)?.toOffset, endOffset);
    assert.ok(ranges.length < 10, `${ranges.length} ranges`);
  });

  test('no more bytes are kept, or taken at once, than may be, however long records are', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [], new SpoolReader());
    const long = 50_000;
    const records = Array.from({ length: 600 }, () => terminalRecord(executionStart({ tags: ['x'.repeat(long)] })));
    for (const record of records) appendRecords(writer, record);
    postAll(epoch);
    assert.ok(epoch.keptFactsCount > 100 && epoch.keptFactsCount * long <= 1 << 24, `${epoch.keptFactsCount} kept`);
    const taken: string[] = [];
    for (;;) {
      const ranges = epoch.nextFacts({ ...LIMITS, allBytesMax: 1 << 20 });
      if (ranges.length === 0) break;
      const ids = ranges.flatMap((range) => range.facts.map((fact) => fact.id));
      // The last range goes as a whole, and is two reads at most.
      assert.ok(ids.length * long <= 3 << 20, `${ids.length} at once`);
      taken.push(...ids);
      for (const range of ranges) epoch.factsInserted(range);
    }
    assert.deepEqual(
      taken,
      records.map(({ id }) => id),
    );
    await writer.close();
  });

  for (const bytesMax of [1 << 20, 3_000, 100])
    test(`frames in quarantine are none, and all around them are, read by ${bytesMax} bytes`, async (context) => {
      const directory = temporaryDirectory(context);
      const writer = openSpool(directory);
      const path = join(directory, '1', segmentFileName(1));
      const frames = Array.from({ length: 12 }, () => {
        const offset = statSync(path).size;
        const batch = writer.takeBatch();
        const starts = [executionStart(), executionStart()];
        for (const start of starts) putRecord(batch, terminalRecord(start));
        batch.endFrame();
        writer.appendBatch(batch);
        return { offset, ids: starts.map(({ id }) => id) };
      });
      const size = statSync(path).size;
      for (const bad of [[0], [5], [3, 4], [6, 8], [11], [0, 11]]) {
        const posted = [{ segment: 1, postedOffset: size, factsOffset: frames[0]?.offset ?? 0 }];
        const epoch = new ShippedEpoch(readEpochSpool(directory, 1), posted, new SpoolReader());
        for (const index of bad) epoch.quarantined({ epoch: 1, segment: 1, offset: frames[index]?.offset ?? 0 });
        const taken: string[] = [];
        for (let ranges = epoch.nextFacts({ ...LIMITS, bytesMax }); ranges.length > 0; ) {
          taken.push(...ranges.flatMap((range) => range.facts.map((fact) => fact.id)));
          for (const range of ranges) epoch.factsInserted(range);
          ranges = epoch.nextFacts({ ...LIMITS, bytesMax });
        }
        assert.deepEqual(
          taken,
          frames.flatMap(({ ids }, index) => (bad.includes(index) ? [] : ids)),
          `without ${bad.join()}`,
        );
        assert.ok(epoch.factsShipped);
      }
      await writer.close();
    });

  test('begun anew from its cursors it goes on where it was', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const ids = appendExecutions(writer, 3_000);
    const before = new ShippedEpoch(readEpochSpool(directory, 1), [], new SpoolReader());
    postAll(before);
    const segments = readEpochSpool(directory, 1).segments;
    assert.ok(segments.length > 2);
    const [ranges, taken] = [before.nextFacts({ ...LIMITS, recordsMax: 700 }), [] as string[]];
    const factsOffsets = new Map<number, number>();
    for (const range of ranges) {
      taken.push(...range.facts.map((fact) => fact.id));
      factsOffsets.set(range.segment, range.toOffset);
    }
    const reader = new SpoolReader();
    const cursors = segments.map((segment) => ({
      segment,
      postedOffset: reader.segmentBytes(writer.directory, segment),
      factsOffset: factsOffsets.get(segment) ?? 0,
    }));
    const after = new ShippedEpoch(readEpochSpool(directory, 1), cursors, reader);
    postAll(after);
    taken.push(...takeFacts(after, 450));
    assert.deepEqual(taken, ids);
    await writer.close();
  });
});

/**
 * Its owner's write is half there when a batch is read, and all there when the reader looks what is wrong with the
 * rest.
 */
class ReaderOfAWriteUnderWay extends SpoolReader {
  finishWrite: (() => void) | null = null;

  override readDamage(...place: Parameters<SpoolReader['readDamage']>): ReturnType<SpoolReader['readDamage']> {
    this.finishWrite?.();
    this.finishWrite = null;
    return super.readDamage(...place);
  }
}

describe('a spool that is being written', () => {
  test('a batch is the newest when only its owner can have something to add', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [], new SpoolReader());
    const isNewest = (recordsMax = LIMITS.recordsMax): boolean | undefined => {
      const batch = epoch.nextPosting({ ...LIMITS, recordsMax });
      if (batch !== null) epoch.posted(batch);
      return batch?.isNewest;
    };
    appendExecutions(writer, 200);
    assert.equal(isNewest(100), false, 'more is behind it');
    assert.equal(isNewest(), true);
    assert.equal(isNewest(), undefined);
    // Until a segment is full.
    while (readEpochSpool(directory, 1).segments.length === 1) appendExecutions(writer, 400);
    const seen: (boolean | undefined)[] = [];
    do seen.push(isNewest());
    while (seen.at(-1) !== undefined);
    assert.deepEqual(seen.slice(-2), [true, undefined]);
    assert.ok(!seen.slice(0, -2).includes(true), 'nor is the end of a segment that another follows');
    appendExecutions(writer, 1);
    await writer.close();
    epoch.refresh(readEpochSpool(directory, 1));
    assert.equal(isNewest(), false, 'its owner has ended: its money goes back at once');
  });

  test('records whose write is seen half done at first are no damage', async (context) => {
    const directory = temporaryDirectory(context);
    const writer = openSpool(directory);
    const reader = new ReaderOfAWriteUnderWay();
    const epoch = new ShippedEpoch(readEpochSpool(directory, 1), [], reader);
    const ids = appendExecutions(writer, 1);
    postAll(epoch);
    const path = join(directory, '1', segmentFileName(1));
    const before = statSync(path).size;
    ids.push(...appendExecutions(writer, 3));
    const whole = readFileSync(path);
    for (let bytes = before + 1; bytes < whole.length; bytes += 97) {
      truncateSync(path, bytes);
      reader.finishWrite = () => writeFileSync(path, whole);
      const batch = epoch.nextPosting(LIMITS);
      assert.equal(batch?.damage ?? null, null, `seen up to ${bytes} of ${whole.length}`);
      reader.finishWrite?.();
    }
    postAll(epoch);
    assert.deepEqual(takeFacts(epoch, 100), ids);
    await writer.close();
  });
});
