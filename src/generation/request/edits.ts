// Applies edits to a body without copying or overwriting it: the result is the pieces between the edits and the
// replacements, in order.

import type { Buffer } from 'node:buffer';

/** Puts `replacement` in the place of the body's bytes from `start` to `end`. */
export interface BodyEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

/** `edits` are sorted by `start` and do not overlap. */
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
