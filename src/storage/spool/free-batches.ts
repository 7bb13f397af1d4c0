// Keeps batches for the ticks to come: memory with room left is filled on, and full memory is filled again once no sync
// has to cover it any more. Fresh memory for each tick cost 7 % of a request, and counts as garbage: some ten kilobytes
// a request made a slow process collect its whole heap twice a second.

import { RecordBatch } from '../../records/record-batch.ts';

/** More than twenty milliseconds of full load take; and none that is longer than this. */
const BATCHES_MAX = 32;
const BATCH_BYTES_MAX = 262_144;

export class FreeBatches {
  readonly #free: RecordBatch[] = [];
  /** Has room behind what it had before. */
  #begun: RecordBatch | null = null;

  take(): RecordBatch {
    const begun = this.#begun;
    if (begun === null) return this.#free.pop() ?? new RecordBatch();
    this.#begun = null;
    return begun;
  }

  /** What it has is written and stays as it lies; the next batch lies behind it. */
  continueBehind(batch: RecordBatch): void {
    batch.continueBehind();
    this.#begun = batch;
  }

  /** Nobody reads or writes it any more, nor what it had before. */
  release(batch: RecordBatch): void {
    if (this.#free.length >= BATCHES_MAX || batch.bytes.length > BATCH_BYTES_MAX) return;
    batch.clear();
    this.#free.push(batch);
  }
}
