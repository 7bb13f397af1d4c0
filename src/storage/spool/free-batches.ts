// A pool of record batches. A batch with room left is continued, and a full one is reused once no sync has to cover it
// any more. Allocating for each tick cost 7 % of a request's CPU, and the garbage (some ten kilobytes a request) made a
// slow process collect its whole heap twice a second.

import { RecordBatch } from '../../records/record-batch.ts';

/** More batches than twenty milliseconds of full load need; larger ones are not kept. */
const BATCHES_MAX = 32;
const BATCH_BYTES_MAX = 262_144;

export class FreeBatches {
  private readonly free: RecordBatch[] = [];
  /** A batch that has room after the records that it already wrote. */
  private begun: RecordBatch | null = null;

  take(): RecordBatch {
    const begun = this.begun;
    if (begun === null) return this.free.pop() ?? new RecordBatch();
    this.begun = null;
    return begun;
  }

  /** The batch's records are written and stay in its memory; the next batch continues after them. */
  continueBehind(batch: RecordBatch): void {
    batch.continueBehind();
    this.begun = batch;
  }

  /** To be called when nobody reads or writes any of the batch's memory any more. */
  release(batch: RecordBatch): void {
    if (this.free.length >= BATCHES_MAX || batch.bytes.length > BATCH_BYTES_MAX) return;
    batch.clear();
    this.free.push(batch);
  }
}
