// What a spool has written and no successful sync covers yet, kept in memory to be written again if a sync fails.

import type { RecordBatch } from '../../records/record-batch.ts';
import type { FreeBatches } from './free-batches.ts';

/** A run of frames. */
export interface WrittenRun {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /**
   * The batch in whose memory it is the last run: once no sync is wanting for this one, none is for those before it,
   * and the memory may be used again.
   */
  readonly batch: RecordBatch | null;
}

export class UnsyncedRuns {
  readonly #freeBatches: FreeBatches;
  /** What the sync under way covers if it succeeds. */
  #syncing: WrittenRun[] = [];
  /** What came since it began. */
  #written: WrittenRun[] = [];
  /** Of both. */
  bytes = 0;

  constructor(freeBatches: FreeBatches) {
    this.#freeBatches = freeBatches;
  }

  add(run: WrittenRun): void {
    this.#written.push(run);
    this.bytes += run.end - run.start;
  }

  /** A sync begins that covers all that is written, or the one under way is followed by one of another segment. */
  joinSync(): void {
    this.#syncing.push(...this.#written);
    this.#written = [];
  }

  /** The sync is over: what it covered is durable, or `failSync` has put it back. */
  endSync(): void {
    this.bytes -= this.#letGo(this.#syncing);
    this.#syncing = [];
  }

  /** What the sync would have covered is written again, before what came after it. */
  failSync(): void {
    this.#written = [...this.#syncing, ...this.#written];
    this.#syncing = [];
  }

  /** All that is written is durable, and no sync is under way. */
  clear(): void {
    this.bytes -= this.#letGo(this.#written);
    this.#written = [];
  }

  /** What is to be written again; it counts as kept once it is added again. */
  takeWritten(): WrittenRun[] {
    const taken = this.#written;
    this.#written = [];
    for (const { start, end } of taken) this.bytes -= end - start;
    return taken;
  }

  #letGo(runs: readonly WrittenRun[]): number {
    let bytes = 0;
    for (const { start, end, batch } of runs) {
      bytes += end - start;
      if (batch !== null) this.#freeBatches.release(batch);
    }
    return bytes;
  }
}
