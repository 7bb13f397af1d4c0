// A sorted list of edits of a body. Nothing is copied or written over: what goes out is the pieces between the edits
// and the replacements, in order.

import type { Buffer } from 'node:buffer';

/** `replacement` in the place of the bytes from `start` to `end` of the client's body. */
export interface BodyEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

/** `edits`: sorted by where they begin, and none overlaps another. */
export function applyEdits(body: Buffer, edits: readonly BodyEdit[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end, replacement } of edits) {
    if (start > at) pieces.push(body.subarray(at, start));
    if (replacement.length > 0) pieces.push(replacement);
    at = end;
  }
  if (at < body.length) pieces.push(body.subarray(at));
  return pieces;
}
