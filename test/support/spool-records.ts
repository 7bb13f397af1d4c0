// Writes records into a spool as a gateway does; each call is one write, each record a frame.

import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { RecordBatch } from '../../src/records/record-batch.ts';
import { decodeFrame } from '../../src/records/record-codec.ts';
import type { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';

export function appendRecords(writer: SpoolWriter, ...records: readonly ExecutionRecord[]): void {
  const batch = writer.takeBatch();
  for (const record of records) {
    putRecord(batch, record);
    batch.endFrame();
  }
  writer.appendBatch(batch);
}

export function putRecord(batch: RecordBatch, record: ExecutionRecord): void {
  batch.append(record, record.type === 'terminal' ? record : null);
}

/** The JSON of each frame that these records make in one batch. */
export function frameTexts(...records: readonly ExecutionRecord[]): string[] {
  const batch = new RecordBatch();
  for (const record of records) putRecord(batch, record);
  return textsOf(batch);
}

/** The JSON of each frame of a batch; ends the batch. */
export function textsOf(batch: RecordBatch): string[] {
  batch.endFrame();
  return batch.ends.map((end, index) =>
    batch.bytes.toString('utf8', (batch.ends[index - 1] ?? batch.start) + FRAME_HEADER_BYTES, end),
  );
}

/** The records of a batch; ends the batch. */
export function recordsOf(batch: RecordBatch): ExecutionRecord[] {
  return textsOf(batch).flatMap((text) => decodeFrame(JSON.parse(text)) ?? []);
}

const FRAME_HEADER_BYTES = 8;

/** The size in a segment of a frame with only this record. */
export function frameBytesOf(record: ExecutionRecord): number {
  const [text = ''] = frameTexts(record);
  return FRAME_HEADER_BYTES + Buffer.byteLength(text);
}
