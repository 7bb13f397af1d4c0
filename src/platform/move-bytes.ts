// Moves and copies a few bytes: of short pieces a native call costs more than the bytes do.

import type { Buffer } from 'node:buffer';

const NATIVE_FROM_BYTES = 64;

/** Moves what lies from `start` to `end` so that it begins at `to`; the two may overlap. */
export function moveWithin(bytes: Buffer, to: number, start: number, end: number): void {
  if (end - start >= NATIVE_FROM_BYTES) bytes.copyWithin(to, start, end);
  else if (to < start) for (let at = start; at < end; at++) bytes[to + at - start] = bytes[at] as number;
  else for (let at = end - 1; at >= start; at--) bytes[to + at - start] = bytes[at] as number;
}

/** Copies all of `piece` to `bytes`, from `at` on. */
export function copyInto(bytes: Buffer, at: number, piece: Buffer): void {
  if (piece.length >= NATIVE_FROM_BYTES) piece.copy(bytes, at);
  else for (let index = 0; index < piece.length; index++) bytes[at + index] = piece[index] as number;
}
