// Reads the last event whose data is an object from the kept end of a stream, for dialects whose failing event has no
// name. It skips everything after that event: `[DONE]`, whole or broken off, and comments.

import type { Buffer } from 'node:buffer';
import type { JsonObject } from '../../domain/usage/countable-text.ts';
import { skipSpace } from '../../platform/bytes/json-bytes.ts';
import { matchesAt } from '../../platform/bytes/matches-at.ts';
import { DATA_FIELD, LINE_FEED } from './syntax.ts';
import { EventLine, OBJECT_BYTES_MAX } from './usage-window.ts';

const BRACE = 0x7b;

/** The event's data, if it contains `key` anywhere; null: it does not, is too long to be parsed, or broke off. */
export function lastEventNaming(key: Buffer, end: Buffer): JsonObject | null {
  let to = end.length;
  while (to > 0) {
    const start = end.lastIndexOf(LINE_FEED, to - 1) + 1;
    if (matchesAt(end, start, DATA_FIELD) && end[skipSpace(end, start + DATA_FIELD.length)] === BRACE) {
      const line = end.subarray(start, to);
      return line.length <= OBJECT_BYTES_MAX && line.includes(key) ? new EventLine(end, start, to).json() : null;
    }
    to = start - 1;
  }
  return null;
}
