// The contract of a built-in detector: the byte pairs at which it looks closer, how it decides, and how much of a
// stream's end could still become a finding.
//
// A detector has no memory: whether there is a finding depends on its own bytes, the byte after it, and at most
// CONTEXT_BYTES before its anchor. So a text that comes in pieces has the same findings as the whole.

import type { EntityName } from '../entities.ts';

/** How many bytes detectors may read before an anchor: more than the longest local part of an address. */
export const CONTEXT_BYTES = 96;

/** Where the last find() found something; reused, so that a scan allocates for findings only. */
export interface Hit {
  start: number;
  end: number;
  /** See Finding.isOpen. */
  isOpen: boolean;
}

/**
 * How many digits the first group of a number has, and the group after one separator (0: there is none; `any`: any
 * number of digits).
 */
export type Opening = readonly [first: number, second: number | 'any'];

export interface Detector {
  readonly entity: EntityName;
  /**
   * How many bytes before a finding its anchor can be: a password is recognized by the URL before it. Absent: the
   * anchor is within the finding.
   */
  readonly lookBehind?: number;
  /**
   * For a detector of numbers, whose anchors are those of all numbers: it is called only for numbers with one of these
   * openings.
   */
  readonly openings?: readonly Opening[];
  /** Byte pairs, as `pairOf` makes them. */
  readonly anchors: readonly number[];
  /**
   * Whether something is found at an anchor, whose second byte is at `at`, in a text that begins at `start`. It reads
   * only within bytes[start - 1, end), at most CONTEXT_BYTES before `at` and a bounded number of bytes after it.
   */
  readonly find: (bytes: Uint8Array, at: number, start: number, end: number, hit: Hit) => boolean;
  /** The first byte of a suffix of bytes[start, end) that could still become a finding; `end`: there is none. */
  readonly hold: (bytes: Uint8Array, start: number, end: number) => number;
  /** Present if findings may be open. */
  readonly tailOf?: TailOf;
}

/** How much of bytes[from, end) belongs to an open finding. */
export interface Tail {
  /** The first byte that does not belong to it, or not certainly. */
  readonly to: number;
  /** The finding may go on: ask again from `to` on once more bytes have come. */
  readonly isOpen: boolean;
}

export type TailOf = (bytes: Uint8Array, from: number, end: number) => Tail;

/** Two bytes as one number, little-endian, as they are read at once. */
export function pairOf(first: number, second: number): number {
  return (second << 8) | first;
}

/** The byte at `at`, or a blank outside of the text. The byte before a text is never read at a negative place. */
export function byteAt(bytes: Uint8Array, at: number, end: number): number {
  return at >= 0 && at < end ? (bytes[at] as number) : 0x20;
}

/** The bytes as a string, for the few checks that need one after the checks of the bytes have passed. */
export function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8');
}
