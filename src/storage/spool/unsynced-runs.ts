// Keeps in memory what a spool has written but no successful sync covers yet, so that it can be written again if a sync
// fails.

import type { RecordBatch } from '../../records/record-batch.ts';
import type { FreeBatches } from './free-batches.ts';

/** A run of frames in a batch's memory. */
export interface WrittenRun {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /**
   * Set if this is the last run in the batch's memory: once it is synced, so are those before it, and the memory can be
   * reused.
   */
  readonly batch: RecordBatch | null;
}

export class UnsyncedRuns {
  private readonly freeBatches: FreeBatches;
  /** What the running sync covers if it succeeds. */
  private syncing: WrittenRun[] = [];
  /** What was written since it began. */
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
   * To be called when a sync begins that covers everything written, or when the running sync is followed by one of
   * another segment.
   */
  joinSync(): void {
    this.syncing.push(...this.written);
    this.written = [];
  }

  /** The sync has ended: what it covered is durable, or `failSync` has put it back. */
  endSync(): void {
    this.bytes -= this.letGo(this.syncing);
    this.syncing = [];
  }

  /** Puts back what the sync would have covered, before what came after it. */
  failSync(): void {
    this.written = [...this.syncing, ...this.written];
    this.syncing = [];
  }

  /** Everything written is durable, and no sync is running. */
  clear(): void {
    this.bytes -= this.letGo(this.written);
    this.written = [];
  }

  /** Takes out what must be written again; it counts as kept once it is added again. */
  takeWritten(): WrittenRun[] {
    const taken = this.written;
    this.written = [];
    for (const { start, end } of taken) this.bytes -= end - start;
    return taken;
  }

  private letGo(runs: readonly WrittenRun[]): number {
    let bytes = 0;
    for (const { start, end, batch } of runs) {
      bytes += end - start;
      if (batch !== null) this.freeBatches.release(batch);
    }
    return bytes;
  }
}
