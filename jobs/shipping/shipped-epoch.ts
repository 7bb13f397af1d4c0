// One process's spool on its way: which record is posted next, what becomes of damage, and which facts are still to be
// inserted. It reads files and keeps cursors; what is done with the records is its caller's.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { factOf, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { SpoolCursor } from '../../src/storage/postgres/ledger/spool-cursors.ts';
import { type EpochSpool, segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import type { BatchLimits, SpoolReader } from '../../src/storage/spool/spool-reader.ts';

/**
 * Records of one segment between two offsets, to be posted together with the cursor's move. Without records it is only
 * the move.
 */
export interface PostingBatch {
  readonly epoch: number;
  readonly segment: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly records: readonly ExecutionRecord[];
  /** Bytes that are no records and are passed over: they must be safe in quarantine before the cursor moves. */
  readonly damage: Buffer | null;
  /** What its owner writes next comes behind it: all that could be read is in it. */
  readonly isNewest: boolean;
}

/** Facts of one segment between two offsets. */
export interface FactRange {
  readonly epoch: number;
  readonly segment: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly facts: readonly RequestFact[];
}

interface Cursor {
  posted: number;
  facts: number;
}

/**
 * Facts of posted records are kept to be inserted without reading them again; beyond this many they are read again when
 * their turn comes.
 */
const KEPT_FACTS_MAX = 20_000;
/** Small ranges are joined up to about this many facts, so that hours without ClickHouse do not become a long list. */
const KEPT_RANGE_FACTS = 1_000;

export class ShippedEpoch {
  readonly epoch: number;
  readonly directory: string;
  readonly openedAtMs: number;
  readonly #reader: SpoolReader;
  readonly #cursors = new Map<number, Cursor>();
  /** Complete segments that are posted to their end, and their size. */
  readonly #postedSegments = new Map<number, number>();
  #segments: readonly number[] = [];
  #ended = false;
  #kept: FactRange[] = [];
  #keptCount = 0;
  /** The last kept range is being inserted; what comes next begins a range of its own. */
  #lastKeptIsTaken = false;
  /** The epoch's leases have returned and its pending executions are resolved. */
  settled = false;
  /** What was resolved is in the facts too: nothing of this epoch is left to do. */
  resolvedFactsShipped = false;

  constructor(spool: EpochSpool, cursors: readonly SpoolCursor[], reader: SpoolReader) {
    this.epoch = spool.epoch;
    this.directory = spool.directory;
    this.openedAtMs = spool.openedAtMs;
    this.#reader = reader;
    for (const cursor of cursors)
      this.#cursors.set(cursor.segment, { posted: cursor.postedOffset, facts: cursor.factsOffset });
    this.refresh(spool);
  }

  refresh(spool: EpochSpool): void {
    this.#segments = spool.segments;
    this.#ended = spool.ended;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The next batch to post; null when everything that can be read now is posted. */
  nextPosting(limits: BatchLimits): PostingBatch | null {
    this.#noticeNextSegment();
    for (const segment of this.#segments) {
      if (this.#postedSegments.has(segment)) continue;
      const last = segment === this.#segments.at(-1);
      const complete = !last || this.#ended;
      const fromOffset = this.#cursor(segment).posted;
      const batch = this.#reader.readBatch(this.directory, segment, fromOffset, limits);
      if (batch.records.length > 0) {
        const { records, toOffset, stopped } = batch;
        return {
          epoch: this.epoch,
          segment,
          fromOffset,
          toOffset,
          records,
          damage: null,
          isNewest: stopped === 'end' && !complete,
        };
      }
      if (batch.stopped !== 'end') return this.#passOverDamage(segment, fromOffset, { complete, last });
      if (!complete) return null;
      this.#postedSegments.set(segment, batch.segmentBytes);
    }
    return null;
  }

  /** To be called once the batch and its cursor are committed. */
  posted(batch: PostingBatch): void {
    const cursor = this.#cursor(batch.segment);
    cursor.posted = Math.max(cursor.posted, batch.toOffset);
    this.#keepFacts({ ...batch, facts: factsOf(batch.records) });
  }

  /** Everything that its owner wrote is posted, and it will write no more. */
  get fullyPosted(): boolean {
    return this.#ended && this.#segments.every((segment) => this.#postedSegments.has(segment));
  }

  get factsShipped(): boolean {
    return this.#segments.every((segment) => this.#cursor(segment).facts >= this.#cursor(segment).posted);
  }

  /** Facts that are posted and not yet inserted, oldest first. Facts never run ahead of the ledger. */
  nextFacts(limits: BatchLimits): FactRange[] {
    const ranges: FactRange[] = [];
    const kept = this.#kept[0];
    let count = 0;
    for (const segment of this.#segments) {
      const { posted, facts } = this.#cursor(segment);
      if (facts >= posted) continue;
      if (kept?.segment === segment && kept.fromOffset === facts) break;
      const until = kept?.segment === segment ? kept.fromOffset : posted;
      for (let offset = facts; offset < until && count < limits.recordsMax; ) {
        const range = this.#readFacts(segment, offset, until, limits);
        ranges.push(range);
        count += range.facts.length;
        offset = range.toOffset;
      }
      if (kept?.segment === segment || count >= limits.recordsMax) break;
    }
    if (ranges.length > 0) return ranges;
    this.#lastKeptIsTaken = true;
    for (const range of this.#kept) {
      if (count >= limits.recordsMax) break;
      ranges.push(range);
      count += range.facts.length;
    }
    return ranges;
  }

  /** To be called once the facts are inserted and the cursor is committed. */
  factsInserted(range: FactRange): void {
    const cursor = this.#cursor(range.segment);
    cursor.facts = Math.max(cursor.facts, range.toOffset);
    const inserted = this.#kept.findIndex(
      (kept) => kept.segment > range.segment || (kept.segment === range.segment && kept.toOffset > range.toOffset),
    );
    for (const kept of this.#kept.splice(0, inserted === -1 ? this.#kept.length : inserted))
      this.#keptCount -= kept.facts.length;
  }

  /**
   * Segments that are complete, posted and in the facts: nobody will read them again. Those of an ended spool go with
   * its directory.
   */
  takeRemovableSegments(): number[] {
    if (this.#ended) return [];
    const removable = this.#segments.filter((segment) => {
      const size = this.#postedSegments.get(segment);
      return size !== undefined && this.#cursor(segment).facts >= size;
    });
    this.#segments = this.#segments.filter((segment) => !removable.includes(segment));
    return removable;
  }

  get keptFactsCount(): number {
    return this.#keptCount;
  }

  lagBytes(): { unposted: number; withoutFacts: number } {
    let unposted = 0;
    let withoutFacts = 0;
    for (const segment of this.#segments) {
      const { posted, facts } = this.#cursor(segment);
      const size = this.#postedSegments.get(segment) ?? this.#reader.segmentBytes(this.directory, segment);
      unposted += Math.max(0, size - posted);
      withoutFacts += Math.max(0, posted - facts);
    }
    return { unposted, withoutFacts };
  }

  #cursor(segment: number): Cursor {
    let cursor = this.#cursors.get(segment);
    if (cursor === undefined) {
      cursor = { posted: 0, facts: 0 };
      this.#cursors.set(segment, cursor);
    }
    return cursor;
  }

  /**
   * Between two listings of the directory the owner may have begun segments; looking for the next one is a single
   * system call.
   */
  #noticeNextSegment(): void {
    let next = (this.#segments.at(-1) ?? 0) + 1;
    for (; existsSync(join(this.directory, segmentFileName(next))); next++) this.#segments = [...this.#segments, next];
  }

  #passOverDamage(
    segment: number,
    fromOffset: number,
    state: { complete: boolean; last: boolean },
  ): PostingBatch | null {
    const damage = this.#reader.readDamage(this.directory, segment, fromOffset);
    // A write that was seen half done has been finished meanwhile: nothing is wrong, and it is read the next time.
    if (damage.isFrame) return null;
    // The owner may be in the middle of a write, or of cutting one back; only frames behind the damage prove that it is
    // damage.
    if (!state.complete && !damage.frameFollows) return null;
    // Only a complete last segment can end in a write that its owner did not live to finish: nobody was told that it
    // was done.
    const tornTail = damage.tornTail && state.last;
    return {
      epoch: this.epoch,
      segment,
      fromOffset,
      toOffset: damage.nextOffset,
      records: [],
      damage: tornTail ? null : damage.bytes,
      isNewest: false,
    };
  }

  #keepFacts(range: FactRange): void {
    if (!this.#followsKept(range) || this.#keptCount + range.facts.length > KEPT_FACTS_MAX) return;
    this.#keptCount += range.facts.length;
    const last = this.#kept.at(-1);
    if (
      last !== undefined &&
      last.segment === range.segment &&
      !this.#lastKeptIsTaken &&
      last.facts.length < KEPT_RANGE_FACTS
    ) {
      this.#kept[this.#kept.length - 1] = { ...last, toOffset: range.toOffset, facts: [...last.facts, ...range.facts] };
      return;
    }
    this.#kept.push(range);
    this.#lastKeptIsTaken = false;
  }

  /** What is kept is one unbroken run; after a gap nothing is kept until the facts cursor has passed it. */
  #followsKept(range: FactRange): boolean {
    const last = this.#kept.at(-1);
    if (last === undefined) {
      const earlierDone = this.#segments.every(
        (segment) => segment >= range.segment || this.#cursor(segment).facts >= this.#cursor(segment).posted,
      );
      return earlierDone && this.#cursor(range.segment).facts === range.fromOffset;
    }
    if (last.segment === range.segment) return last.toOffset === range.fromOffset;
    return (
      last.segment === range.segment - 1 &&
      range.fromOffset === 0 &&
      last.toOffset === this.#postedSegments.get(last.segment)
    );
  }

  #readFacts(segment: number, fromOffset: number, posted: number, limits: BatchLimits): FactRange {
    const bytesMax = Math.min(limits.bytesMax, posted - fromOffset);
    const batch = this.#reader.readBatch(this.directory, segment, fromOffset, {
      recordsMax: limits.recordsMax,
      bytesMax,
    });
    const range = { epoch: this.epoch, segment, fromOffset };
    if (batch.records.length > 0) return { ...range, toOffset: batch.toOffset, facts: factsOf(batch.records) };
    // What posting passed over is passed over here.
    const { nextOffset } = this.#reader.readDamage(this.directory, segment, fromOffset);
    return { ...range, toOffset: Math.min(Math.max(nextOffset, fromOffset + 1), posted), facts: [] };
  }
}

function factsOf(records: readonly ExecutionRecord[]): RequestFact[] {
  return records.flatMap((record) => (record.type === 'terminal' ? [factOf(record)] : []));
}
