// Keeps in memory the frames that a spool has written and no successful sync covers yet, so that they can be written
// again if a sync fails.

import type { RecordBatch } from '../../records/record-batch.ts';
import type { FreeBatches } from './free-batches.ts';

/** A run of frames in a batch's memory. */
export interface WrittenRun {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /**
   * Set if this is the last run in the batch's memory. Once the last run is synced, so are the runs before it, and the
   * memory can be reused.
   */
  readonly batch: RecordBatch | null;
}

export class UnsyncedRuns {
  private readonly freeBatches: FreeBatches;
  /** Runs that the running sync covers if it succeeds. */
  private syncing: WrittenRun[] = [];
  /** Runs that were written since that sync began. */
  private written: WrittenRun[] = [];
  /** The number of bytes in both lists. */
  bytes = 0;

  constructor(freeBatches: FreeBatches) {
    this.freeBatches = freeBatches;
  }

  add(run: WrittenRun): void {
    this.written.push(run);
    this.bytes += run.end - run.start;
  }

  /**
   * To be called when a sync begins that covers everything written, or when a new segment begins while a sync runs: the
   * result of that sync then decides about all runs of the old segment.
   */
  joinSync(): void {
    this.syncing.push(...this.written);
    this.written = [];
  }

  /** The sync has ended. Its runs are durable, or `failSync` has put them back. */
  endSync(): void {
    this.bytes -= this.releaseRuns(this.syncing);
    this.syncing = [];
  }

  /** Puts the runs of the failed sync back, before those that were written later. */
  failSync(): void {
    this.written = [...this.syncing, ...this.written];
    this.syncing = [];
  }

  /** Everything written is durable, and no sync is running. */
  clear(): void {
    this.bytes -= this.releaseRuns(this.written);
    this.written = [];
  }

  /** Takes out all runs that must be written again. They are no longer kept until they are added again. */
  takeWritten(): WrittenRun[] {
    const taken = this.written;
    this.written = [];
    for (const { start, end } of taken) this.bytes -= end - start;
    return taken;
  }

  private releaseRuns(runs: readonly WrittenRun[]): number {
    let bytes = 0;
    for (const { start, end, batch } of runs) {
      bytes += end - start;
      if (batch !== null) this.freeBatches.release(batch);
    }
    return bytes;
  }
}
