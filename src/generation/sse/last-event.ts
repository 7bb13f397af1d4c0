// Reads the last event of a stream from its kept end, for dialects whose failing event has no name: the `[DONE]` behind
// it is passed over, and so are comments.

import { Buffer } from 'node:buffer';
import type { JsonObject } from '../../domain/usage/countable-text.ts';
import { matchesAt } from '../../platform/matches-at.ts';
import { DONE_NAME, LINE_FEED } from './terminal-events.ts';
import { EventLine, OBJECT_BYTES_MAX } from './usage-window.ts';

const DATA = Buffer.from('data:');

/** Of the last event, where that names `key` somewhere; null: it does not, is longer than is parsed, or broke off. */
export function lastEventNaming(key: Buffer, end: Buffer): JsonObject | null {
  let to = end.length;
  while (to > 0) {
    const start = end.lastIndexOf(LINE_FEED, to - 1) + 1;
    if (matchesAt(end, start, DATA) && !isDone(end, start, to)) {
      const line = end.subarray(start, to);
      return line.length <= OBJECT_BYTES_MAX && line.includes(key) ? new EventLine(end, start, to).json() : null;
    }
    to = start - 1;
  }
  return null;
}

function isDone(bytes: Buffer, start: number, end: number): boolean {
  const longest = start + DATA.length + DONE_NAME.length * 2;
  return end <= longest && bytes.toString('latin1', start + DATA.length, end).trim() === DONE_NAME;
}
