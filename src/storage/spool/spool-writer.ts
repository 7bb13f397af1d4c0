// Writes a gateway process's append-only spool: one synchronous write per append, fdatasync in the background, a new
// segment when one is full.
//
//   <directory>/<epoch>/owner.json       written first: the process that may write here
//   <directory>/<epoch>/00000001.spool   complete when 00000002.spool exists, or the owner has ended
//   <directory>/<epoch>/reserve          disk space for the terminal records of open executions
//   <directory>/<epoch>/closed           written last: the owner has finished
//
// A fault stops admission (`healthy`) but not the recording of open executions, and the writer recovers by itself:
//   disk full         the reserve is deleted and the write continues; admission resumes when there is room again and
//                     the reserve was created again
//   fdatasync failed  the kernel may have dropped what it could not write, and would report success next time. The
//                     descriptor is therefore never trusted again: everything that no successful sync has covered is
//                     written again to a fresh segment, and admission waits for a sync of that one
//   name not synced   a power cut may remove the segment itself, whatever its own syncs reported: handled the same way
//   write failed      the torn bytes are cut off, and the records go to a fresh segment in the same way
// A record can therefore be in the spool twice. That is harmless, since an execution is posted once, by its id.

import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../platform/assert.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { RecordBatch } from '../../records/record-batch.ts';
import { makeDirectoryDurably, syncDirectory, writeFileDurably } from './durable-file.ts';
import { FreeBatches } from './free-batches.ts';
import { CLOSED_FILE, OWNER_FILE, ownerNow, segmentFileName } from './spool-directory.ts';
import { SpoolFault } from './spool-fault.ts';
import { nodeFileSystem, type SpoolFileSystem } from './spool-file-system.ts';
import { writeHeaders } from './spool-format.ts';
import { SpoolReserve } from './spool-reserve.ts';
import { UnsyncedRuns, type WrittenRun } from './unsynced-runs.ts';

export interface SpoolWriterOptions {
  /** The directory of all spools; this spool has a subdirectory named after its epoch. */
  readonly directory: string;
  readonly epoch: number;
  readonly segmentBytesMax: number;
  readonly fsyncIntervalMs: number;
  readonly log: Log;
  readonly clock: Clock;
  /** With less free space than this, nothing is admitted; absent: no threshold. */
  readonly freeBytesMin?: number;
  /** Size of the reserve; absent: no reserve. */
  readonly reserveFileBytes?: number;
  readonly fileSystem?: SpoolFileSystem;
}

/** A sync that does not finish stops admission too, since everything unsynced is kept in memory until it does. */
const UNSYNCED_BYTES_MAX = 64 * 1024 * 1024;
/** After a fault a fresh segment is tried at once, then at growing intervals. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;
const FULL_CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

export class SpoolWriter {
  readonly directory: string;
  private readonly options: SpoolWriterOptions;
  private readonly files: SpoolFileSystem;
  private readonly reserve: SpoolReserve;
  private readonly freeBatches = new FreeBatches();
  private segment = 0;
  private fd = -1;
  private segmentBytes = 0;
  private closed = false;
  private dirty = false;
  private syncing = false;
  /** The present segment may end in part of a frame, so nothing can be appended to it. */
  private torn = false;
  /** A sync of the present segment, or of its name, has failed. */
  private distrusted = false;
  /** No sync has succeeded since the last fault. */
  private unproven = false;
  private retryAtMs = 0;
  private retryWaitMs = RETRY_FIRST_MS;
  private readonly unsynced = new UnsyncedRuns(this.freeBatches);
  /** Descriptors that a background fdatasync may still be using. */
  private readonly retired: number[] = [];
  private readonly timer: NodeJS.Timeout;
  private onSyncEnd: (() => void) | null = null;
  /** Totals since opening, for metrics. */
  recordsAppended = 0;
  bytesAppended = 0;

  static open(options: SpoolWriterOptions): SpoolWriter {
    return new SpoolWriter(options);
  }

  private constructor(options: SpoolWriterOptions) {
    this.options = options;
    this.files = options.fileSystem ?? nodeFileSystem;
    this.directory = join(options.directory, String(options.epoch));
    createOwnedDirectory(options, this.directory);
    this.openNextSegment();
    const { freeBytesMin = 0, reserveFileBytes: fileBytes = 0, log } = options;
    this.reserve = new SpoolReserve({
      directory: options.directory,
      path: join(this.directory, 'reserve'),
      fileBytes,
      freeBytesMin,
      files: this.files,
      log,
    });
    // One timer for the writer's life, armed only while something is unsynced, so that an idle process is not woken.
    this.timer = setTimeout(() => this.syncInBackground(), options.fsyncIntervalMs);
  }

  /** False stops admission. Records of admitted executions must still be appended. */
  get healthy(): boolean {
    return (
      !this.torn &&
      !this.distrusted &&
      !this.unproven &&
      this.reserve.hasRoom &&
      this.unsynced.bytes <= UNSYNCED_BYTES_MAX
    );
  }

  /** Checks the free space, and retries after a fault; must be called about once a second. */
  check(): void {
    if (this.closed) return;
    this.reserve.check();
    if ((this.torn || this.distrusted) && this.mayRetry()) this.tryFreshSegment();
  }

  /** Returns an empty batch to fill and pass to `appendBatch`. */
  takeBatch(): RecordBatch {
    return this.freeBatches.take();
  }

  /**
   * Writes the records of a batch at once. After this they survive the death of the process; a power cut can still lose
   * what was written since the last sync. The batch belongs to the spool from here on, even when this throws.
   */
  appendBatch(batch: RecordBatch): void {
    assert(!this.closed, 'spool: append after close');
    batch.endFrame();
    if (batch.ends.length === 0) return;
    writeHeaders(batch);
    const records = batch.records - batch.refused.size;
    try {
      if ((this.torn || this.distrusted) && this.mayRetry()) this.startFreshSegment();
      if (this.torn) throw new SpoolFault('the spool cannot be written', 0);
      const { hasRoom } = batch;
      this.write(batch.bytes, batch.start, batch.ends, hasRoom ? null : batch);
      if (hasRoom) this.freeBatches.continueBehind(batch);
      this.recordsAppended += records;
    } catch (error) {
      if (error instanceof SpoolFault) {
        error.recordsWritten = batch.recordsIn(error.framesWritten);
        this.recordsAppended += error.recordsWritten;
      }
      throw error;
    }
  }

  /**
   * Syncs, then marks the spool as finished, so that jobs can ship its end and close the epoch. Faults do not prevent
   * closing.
   */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    if (this.syncing) await new Promise<void>((resolve) => (this.onSyncEnd = resolve));
    // The last records may need the reserve's room.
    this.reserve.close();
    try {
      if (this.torn || this.distrusted) this.startFreshSegment();
      this.files.fdatasyncSync(this.fd);
    } catch (error) {
      this.report('sync at the end', error);
    }
    this.files.close(this.fd);
    writeFileDurably(join(this.directory, CLOSED_FILE), '');
  }

  /** Writes the frames that end at `ends`. `batch` is set if no further frames will follow in the batch's memory. */
  private write(bytes: Buffer, start: number, ends: readonly number[], batch: RecordBatch | null): void {
    const end = ends.at(-1) ?? start;
    if (this.segmentBytes > 0 && this.segmentBytes + end - start > this.options.segmentBytesMax) this.rotate();
    const fault = this.writeBytes(bytes, start, end);
    if (fault === null) {
      this.keep({ bytes, start, end, batch });
      return;
    }
    const whole = this.cutBack(start, fault.written, ends);
    const wholeEnd = ends[whole - 1] ?? start;
    if (whole > 0) this.keep({ bytes, start, end: wholeEnd, batch: null });
    if (fault.full) throw new SpoolFault('the spool is full', whole, { cause: fault.cause });
    this.report('write', fault.cause);
    this.distrusted = true;
    if (!this.mayRetry()) throw new SpoolFault('the spool cannot be written', whole, { cause: fault.cause });
    // A fresh segment, with a descriptor of its own, may work.
    try {
      this.startFreshSegment();
      this.write(bytes, wholeEnd, ends.slice(whole), null);
    } catch (error) {
      throw new SpoolFault(
        'the spool cannot be written',
        whole + (error instanceof SpoolFault ? error.framesWritten : 0),
        { cause: error },
      );
    }
  }

  /**
   * Returns null if everything was written. When the disk is full, the reserve is released and the write continues
   * where it stopped.
   */
  private writeBytes(
    bytes: Buffer,
    start: number,
    end: number,
  ): { written: number; full: boolean; cause: unknown } | null {
    let at = start;
    for (;;) {
      let cause: unknown = null;
      try {
        const count = this.files.write(this.fd, bytes, at, end - at);
        at += count;
        if (at === end) return null;
        if (count > 0) continue;
      } catch (error) {
        cause = error;
        if (!isFull(error)) return { written: at - start, full: false, cause };
      }
      if (!this.reserve.release())
        return { written: at - start, full: true, cause: cause ?? new Error(`short write: ${at - start} bytes`) };
    }
  }

  /** Cuts off a torn frame. Returns the number of whole frames, which stay: jobs may have read them already. */
  private cutBack(start: number, written: number, ends: readonly number[]): number {
    const whole = ends.filter((end) => end - start <= written).length;
    const wholeBytes = (ends[whole - 1] ?? start) - start;
    try {
      this.files.ftruncate(this.fd, this.segmentBytes + wholeBytes);
    } catch (error) {
      this.torn = true;
      this.report('cutting a torn frame off', error);
    }
    return whole;
  }

  /** Keeps a run that is in the segment but not covered by a sync yet. */
  private keep(run: WrittenRun): void {
    const bytes = run.end - run.start;
    this.segmentBytes += bytes;
    this.bytesAppended += bytes;
    this.unsynced.add(run);
    if (this.dirty) return;
    this.dirty = true;
    if (!this.syncing && !this.closed) this.timer.refresh();
  }

  /** The old segment is durable before the new one exists, so only the last segment can lose its end in a power cut. */
  private rotate(): void {
    if (this.distrusted) return this.startFreshSegment();
    try {
      this.files.fdatasyncSync(this.fd);
    } catch (error) {
      this.distrust(error);
      return this.startFreshSegment();
    }
    // The kernel reports an error of a file to one sync only. While a background sync runs, its result is unknown, and
    // the runs stay until it ends.
    if (this.syncing) this.unsynced.joinSync();
    else this.unsynced.clear();
    const before = this.fd;
    try {
      this.openNextSegment();
    } catch (error) {
      // Without a new segment, the present one grows beyond its size, which is harmless. If the new segment was opened
      // but its name may not be on the disk, `distrusted` makes the writer leave it as soon as possible.
      if (this.fd !== before) this.distrusted = true;
      this.report('beginning a segment', error);
      this.reserve.release();
    }
  }

  /**
   * Leaves a segment that cannot be trusted, and writes the runs that no sync has covered again to a fresh segment.
   * Throws a SpoolFault when that fails, and then keeps all runs.
   */
  private startFreshSegment(): void {
    const { clock } = this.options;
    this.retryAtMs = clock.monotonicMs() + this.retryWaitMs;
    this.retryWaitMs = Math.min(RETRY_MAX_MS, this.retryWaitMs * 2);
    this.unproven = true;
    try {
      this.openNextSegment();
    } catch (error) {
      if (isFull(error)) this.reserve.release();
      throw new SpoolFault('the spool cannot begin a segment', 0, { cause: error });
    }
    this.torn = false;
    this.distrusted = false;
    const again = this.unsynced.takeWritten();
    for (const [index, run] of again.entries()) {
      const fault = this.writeAgain(run);
      if (fault === null) continue;
      for (const left of again.slice(index)) this.unsynced.add(left);
      this.torn = true;
      throw new SpoolFault('the spool cannot be written', 0, { cause: fault });
    }
    // Only a sync proves that the segment works, even if there was nothing to write.
    this.dirty = true;
    if (!this.syncing && !this.closed) this.timer.refresh();
  }

  private writeAgain(run: WrittenRun): unknown {
    const fault = this.writeBytes(run.bytes, run.start, run.end);
    if (fault === null) this.keep(run);
    else this.cutBack(0, 0, []); // A torn frame would pass for damage, since another segment follows this one.
    return fault === null ? null : fault.cause;
  }

  /** The new segment exists before the old one is closed. */
  private openNextSegment(): void {
    const fd = this.files.open(join(this.directory, segmentFileName(this.segment + 1)));
    this.segment++;
    if (this.fd !== -1) {
      if (this.syncing) this.retired.push(this.fd);
      else this.files.close(this.fd);
    }
    this.fd = fd;
    this.segmentBytes = 0;
    this.files.syncDirectory(this.directory);
  }

  private syncInBackground(): void {
    // Another sync of a segment whose sync failed would report success although the first one dropped data.
    if (!this.dirty || this.syncing || this.closed || this.distrusted || this.torn) return;
    this.dirty = false;
    this.syncing = true;
    const fd = this.fd;
    this.unsynced.joinSync();
    this.files.fdatasync(fd, (error) => {
      this.syncing = false;
      for (const retired of this.retired.splice(0)) this.files.close(retired);
      if (error === null) this.onSynced(fd);
      else this.distrust(error);
      this.unsynced.endSync();
      if (this.distrusted && !this.closed && this.mayRetry()) this.tryFreshSegment();
      if (this.dirty && !this.closed) this.timer.refresh();
      this.onSyncEnd?.();
    });
  }

  private onSynced(fd: number): void {
    // If another segment began during the sync, only a sync of that segment proves it, even if it has no frames yet.
    if (fd !== this.fd) this.dirty ||= this.unproven;
    if (fd !== this.fd || this.distrusted || this.torn) return;
    if (this.unproven) this.options.log.info({ epoch: this.options.epoch }, 'spool: can be written again');
    this.unproven = false;
    this.retryWaitMs = RETRY_FIRST_MS;
  }

  /** Puts back the runs of the failed sync, so that they are written again before later ones. */
  private distrust(cause: unknown): void {
    this.report('fdatasync', cause);
    this.unsynced.failSync();
    this.distrusted = true;
  }

  private tryFreshSegment(): void {
    try {
      this.startFreshSegment();
    } catch (error) {
      this.report('a fresh segment', error);
    }
  }

  private mayRetry(): boolean {
    return this.options.clock.monotonicMs() >= this.retryAtMs;
  }

  private report(operation: string, cause: unknown): void {
    this.options.log.error(
      { err: cause, epoch: this.options.epoch, operation },
      'spool: fault; nothing is admitted until it can be written again',
    );
  }
}

function isFull(error: unknown): boolean {
  return FULL_CODES.has((error as { code?: unknown }).code);
}

/** The directory gets its name only with its owner file, so that no reader meets a spool with an unknown owner. */
function createOwnedDirectory(options: SpoolWriterOptions, directory: string): void {
  assert(!existsSync(directory), `spool: epoch ${options.epoch} has a spool already`);
  const partial = `${directory}.partial-${process.pid}`;
  makeDirectoryDurably(partial);
  const owner = ownerNow(options.epoch, options.clock.nowMs());
  writeFileDurably(join(partial, OWNER_FILE), `${JSON.stringify(owner)}\n`);
  renameSync(partial, directory);
  syncDirectory(options.directory);
}
