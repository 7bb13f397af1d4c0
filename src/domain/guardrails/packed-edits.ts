// Edits on their way from a worker thread: ten thousand of them as two arrays, since the event loop would take tens of
// milliseconds to read ten thousand objects.

import { Buffer } from 'node:buffer';
import type { TextEdit } from './body-screen.ts';

export interface PackedEdits {
  /** For each edit: its start and end in the body, and the end of its replacement in `text`. */
  readonly places: Uint32Array;
  readonly text: Uint8Array;
}

const NUMBERS = 3;

export function packEdits(edits: readonly TextEdit[]): PackedEdits {
  const text = new Uint8Array(edits.reduce((sum, { replacement }) => sum + replacement.length, 0));
  const places = new Uint32Array(edits.length * NUMBERS);
  let textEnd = 0;
  for (const [index, { start, end, replacement }] of edits.entries()) {
    text.set(replacement, textEnd);
    textEnd += replacement.length;
    places.set([start, end, textEnd], index * NUMBERS);
  }
  return { places, text };
}

export function unpackEdits({ places, text }: PackedEdits): TextEdit[] {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  let textEnd = 0;
  return Array.from({ length: places.length / NUMBERS }, (_, index) => {
    const [start = 0, end = 0, to = 0] = places.subarray(index * NUMBERS, (index + 1) * NUMBERS);
    const replacement = bytes.subarray(textEnd, to);
    textEnd = to;
    return { start, end, replacement };
  });
}
