// The shipping state of one process's spool: the next records to post, damage, and the facts that are still to be
// inserted. It reads files and keeps cursors. Its caller posts and inserts.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { factOf, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { SpoolCursor } from '../../src/storage/postgres/ledger/spool-cursors.ts';
import { type EpochSpool, type SpoolPlace, segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import type { BatchLimits, SpoolReader } from '../../src/storage/spool/spool-reader.ts';

/**
 * Records of one segment between two offsets, posted together with the move of the cursor. It may hold no records and
 * only move the cursor.
 */
export interface PostingBatch {
  readonly epoch: number;
  readonly segment: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly records: readonly ExecutionRecord[];
  /** Damaged bytes that are skipped. They must be in quarantine before the cursor moves. */
  readonly damage: Buffer | null;
  /** The batch reaches the end of what could be read. */
  readonly isNewest: boolean;
}

/** The facts of one segment between two offsets. */
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

/** The facts for one insert end with the range that reaches `recordsMax` or `allBytesMax`. */
export interface FactLimits extends BatchLimits {
  /** The bytes of all ranges together; `bytesMax` limits one read. */
  readonly allBytesMax: number;
}

/**
 * Facts of posted records are kept in memory until they are inserted, up to this many facts, or facts whose records
 * have this many bytes in the spool. Further facts are read from the spool again. Most executions take 300 to 600 bytes
 * in the spool and ten times as much in memory.
 */
const KEPT_FACTS_MAX = 20_000;
const KEPT_BYTES_MAX = 1 << 24;
/** Small ranges are joined up to about this much, so that the list stays short while ClickHouse is away. */
const KEPT_RANGE_FACTS = 1_000;
const KEPT_RANGE_BYTES = 1 << 20;

export class ShippedEpoch {
  readonly epoch: number;
  readonly directory: string;
  readonly openedAtMs: number;
  private readonly reader: SpoolReader;
  private readonly cursors = new Map<number, Cursor>();
  /** Complete segments that are posted to their end, with their size. */
  private readonly postedSegments = new Map<number, number>();
  /** By segment: the offsets of the frames and the damage whose bytes are in quarantine. */
  private readonly quarantinedOffsets = new Map<number, Set<number>>();
  private segments: readonly number[] = [];
  ended = false;
  private kept: FactRange[] = [];
  private keptCount = 0;
  private keptBytes = 0;
  /** The last kept range is being inserted, so the next facts begin a new range. */
  private lastKeptIsTaken = false;
  /** The epoch's leases have been returned and its pending executions are resolved. */
  settled = false;
  /** The resolved executions are in the facts as well, so the epoch is done. */
  resolvedFactsShipped = false;

  constructor(
    spool: EpochSpool,
    cursors: readonly SpoolCursor[],
    reader: SpoolReader,
    quarantine: readonly SpoolPlace[] = [],
  ) {
    this.epoch = spool.epoch;
    this.directory = spool.directory;
    this.openedAtMs = spool.openedAtMs;
    this.reader = reader;
    for (const cursor of cursors)
      this.cursors.set(cursor.segment, { posted: cursor.postedOffset, facts: cursor.factsOffset });
    for (const place of quarantine) this.quarantined(place);
    this.refresh(spool);
  }

  /** To be called when the bytes of a frame, or damage, are in quarantine. */
  quarantined({ segment, offset }: SpoolPlace): void {
    const offsets = this.quarantinedOffsets.get(segment) ?? new Set();
    this.quarantinedOffsets.set(segment, offsets.add(offset));
  }

  refresh(spool: EpochSpool): void {
    this.segments = spool.segments;
    this.ended = spool.ended;
  }

  /** The next batch to post; null: everything that can be read is posted. */
  nextPosting(limits: BatchLimits): PostingBatch | null {
    this.addNewSegments();
    for (const segment of this.segments) {
      if (this.postedSegments.has(segment)) continue;
      const last = segment === this.segments.at(-1);
      const complete = !last || this.ended;
      const fromOffset = this.cursor(segment).posted;
      const batch = this.reader.readBatch(this.directory, segment, fromOffset, limits);
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
      if (batch.stopped !== 'end') return this.skipDamage(segment, fromOffset, { complete, last });
      if (!complete) return null;
      this.postedSegments.set(segment, batch.segmentBytes);
    }
    return null;
  }

  /** To be called after the batch and its cursor are committed. */
  posted(batch: PostingBatch): void {
    const cursor = this.cursor(batch.segment);
    cursor.posted = Math.max(cursor.posted, batch.toOffset);
    this.keepFacts({ ...batch, facts: factsOf(batch.records) });
  }

  /** Everything that the owner wrote is posted, and the owner writes no more. */
  get fullyPosted(): boolean {
    return this.ended && this.segments.every((segment) => this.postedSegments.has(segment));
  }

  get factsShipped(): boolean {
    return this.segments.every((segment) => this.cursor(segment).facts >= this.cursor(segment).posted);
  }

  /** Facts that are posted and not inserted yet, oldest first. Facts never run ahead of the ledger. */
  nextFacts(limits: FactLimits): FactRange[] {
    const ranges: FactRange[] = [];
    const kept = this.kept[0];
    let count = 0;
    let bytes = 0;
    const isFull = (): boolean => count >= limits.recordsMax || bytes >= limits.allBytesMax;
    const take = (range: FactRange): void => {
      ranges.push(range);
      count += range.facts.length;
      bytes += bytesOf(range);
    };
    for (const segment of this.segments) {
      const { posted, facts } = this.cursor(segment);
      if (facts >= posted) continue;
      if (kept?.segment === segment && kept.fromOffset === facts) break;
      const until = kept?.segment === segment ? kept.fromOffset : posted;
      for (let offset = facts; offset < until && !isFull(); offset = ranges.at(-1)?.toOffset ?? until)
        take(this.readFacts(segment, offset, until, limits));
      if (kept?.segment === segment || isFull()) break;
    }
    if (ranges.length > 0) return ranges;
    this.lastKeptIsTaken = true;
    for (const range of this.kept) {
      if (isFull()) break;
      take(range);
    }
    return ranges;
  }

  /** To be called after the facts are inserted and the cursor is committed. */
  factsInserted(range: FactRange): void {
    const cursor = this.cursor(range.segment);
    cursor.facts = Math.max(cursor.facts, range.toOffset);
    const inserted = this.kept.findIndex(
      (kept) => kept.segment > range.segment || (kept.segment === range.segment && kept.toOffset > range.toOffset),
    );
    for (const kept of this.kept.splice(0, inserted === -1 ? this.kept.length : inserted)) {
      this.keptCount -= kept.facts.length;
      this.keptBytes -= bytesOf(kept);
    }
  }

  /**
   * Segments that are complete, posted and in the facts, so that nobody reads them again. Segments of an ended spool
   * are removed with its directory.
   */
  takeRemovableSegments(): number[] {
    if (this.ended) return [];
    const removable = this.segments.filter((segment) => {
      const size = this.postedSegments.get(segment);
      return size !== undefined && this.cursor(segment).facts >= size;
    });
    this.segments = this.segments.filter((segment) => !removable.includes(segment));
    return removable;
  }

  get keptFactsCount(): number {
    return this.keptCount;
  }

  lagBytes(): { unposted: number; withoutFacts: number } {
    let unposted = 0;
    let withoutFacts = 0;
    for (const segment of this.segments) {
      const { posted, facts } = this.cursor(segment);
      const size = this.postedSegments.get(segment) ?? this.reader.segmentBytes(this.directory, segment);
      unposted += Math.max(0, size - posted);
      withoutFacts += Math.max(0, posted - facts);
    }
    return { unposted, withoutFacts };
  }

  private cursor(segment: number): Cursor {
    let cursor = this.cursors.get(segment);
    if (cursor === undefined) {
      cursor = { posted: 0, facts: 0 };
      this.cursors.set(segment, cursor);
    }
    return cursor;
  }

  /**
   * Adds segments that the owner has begun since the directory was last listed. Checking for the next one is a single
   * system call.
   */
  private addNewSegments(): void {
    let next = (this.segments.at(-1) ?? 0) + 1;
    for (; existsSync(join(this.directory, segmentFileName(next))); next++) this.segments = [...this.segments, next];
  }

  private skipDamage(
    segment: number,
    fromOffset: number,
    state: { complete: boolean; last: boolean },
  ): PostingBatch | null {
    const damage = this.reader.readDamage(this.directory, segment, fromOffset);
    // A half-written frame has been completed meanwhile. It is read the next time.
    if (damage.isFrame) return null;
    // The owner may be writing or truncating. Only frames behind the damage prove that it is damage.
    if (!state.complete && !damage.frameFollows) return null;
    // Only a complete last segment can end in an interrupted write. Nobody was told that this write was done.
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

  private keepFacts(range: FactRange): void {
    const bytes = bytesOf(range);
    if (this.keptCount + range.facts.length > KEPT_FACTS_MAX || this.keptBytes + bytes > KEPT_BYTES_MAX) return;
    if (!this.followsKept(range)) return;
    this.keptCount += range.facts.length;
    this.keptBytes += bytes;
    const last = this.kept.at(-1);
    if (
      last !== undefined &&
      last.segment === range.segment &&
      !this.lastKeptIsTaken &&
      last.facts.length < KEPT_RANGE_FACTS &&
      bytesOf(last) < KEPT_RANGE_BYTES
    ) {
      this.kept[this.kept.length - 1] = { ...last, toOffset: range.toOffset, facts: [...last.facts, ...range.facts] };
      return;
    }
    this.kept.push(range);
    this.lastKeptIsTaken = false;
  }

  /** Kept facts have no gaps. After a gap nothing is kept until the facts cursor has passed it. */
  private followsKept(range: FactRange): boolean {
    const last = this.kept.at(-1);
    if (last === undefined) {
      const earlierDone = this.segments.every(
        (segment) => segment >= range.segment || this.cursor(segment).facts >= this.cursor(segment).posted,
      );
      return earlierDone && this.cursor(range.segment).facts === range.fromOffset;
    }
    if (last.segment === range.segment) return last.toOffset === range.fromOffset;
    return (
      last.segment === range.segment - 1 &&
      range.fromOffset === 0 &&
      last.toOffset === this.postedSegments.get(last.segment)
    );
  }

  /**
   * Reads facts from the spool. No facts are made of a frame in quarantine: the ledger lacks the record that Postgres
   * refused, and ClickHouse may refuse that record together with the rest of the insert. The facts of the frame's other
   * records come from the ledger, through `compare-facts-daily` (three days) or `rebuild-facts` (all).
   */
  private readFacts(segment: number, fromOffset: number, endOffset: number, limits: BatchLimits): FactRange {
    const quarantined = this.quarantinedOffsets.get(segment);
    const isQuarantined = quarantined?.has(fromOffset) === true;
    let untilOffset = endOffset;
    for (const offset of quarantined ?? []) if (offset > fromOffset && offset < untilOffset) untilOffset = offset;
    const batch = this.reader.readBatch(this.directory, segment, fromOffset, {
      recordsMax: isQuarantined ? 1 : limits.recordsMax,
      bytesMax: Math.min(limits.bytesMax, untilOffset - fromOffset),
    });
    const range = { epoch: this.epoch, segment, fromOffset };
    if (batch.records.length > 0)
      return { ...range, toOffset: batch.toOffset, facts: isQuarantined ? [] : factsOf(batch.records) };
    // A restored spool may end before its posted offset. The missing facts come from the ledger.
    if (batch.stopped === 'end') return { ...range, toOffset: endOffset, facts: [] };
    // The damage that posting skipped is skipped here as well.
    const { nextOffset } = this.reader.readDamage(this.directory, segment, fromOffset);
    return { ...range, toOffset: Math.min(Math.max(nextOffset, fromOffset + 1), endOffset), facts: [] };
  }
}

/** The bytes of the range's records in the spool. */
function bytesOf({ fromOffset, toOffset }: FactRange): number {
  return toOffset - fromOffset;
}

function factsOf(records: readonly ExecutionRecord[]): RequestFact[] {
  return records.flatMap((record) => (record.type === 'terminal' ? [factOf(record)] : []));
}
