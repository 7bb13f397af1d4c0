// Writes records into a spool as objects with names, a form of older versions, which is read as well; each call is one
// write, each record a frame.

import { jsonAscii } from '../../src/records/ascii-text.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import type { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';

export function appendRecords(writer: SpoolWriter, ...records: readonly ExecutionRecord[]): void {
  appendTexts(
    writer,
    records.map((record) => jsonAscii(record)),
  );
}

/** `texts`: the JSON of a record each, in ASCII. */
export function appendTexts(writer: SpoolWriter, texts: readonly string[]): void {
  const group = writer.takeGroup();
  for (const text of texts) {
    group.beginRecord();
    group.putAscii(text);
    group.endRecord();
    group.endFrame();
  }
  writer.appendGroup(group);
}
