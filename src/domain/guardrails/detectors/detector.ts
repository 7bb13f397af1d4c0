// What a built-in detector is: the byte pairs at which it looks closer, how it decides, and what of a stream's end it
// could still extend.
//
// A detector has no memory: whether there is a finding depends on its own bytes, the one after, and at most
// CONTEXT_BYTES before its anchor. So a text found in pieces has the same findings as the whole.

import type { EntityName } from '../entities.ts';

/** What detectors may read before an anchor: more than the longest local part of an address, and what stands before. */
export const CONTEXT_BYTES = 96;

/** Where the last find() found something; reused, so that a scan allocates for findings only. */
export interface Hit {
  start: number;
  end: number;
  /** See Finding.isOpen. */
  isOpen: boolean;
}

/**
 * How many digits the first group of a number has, and the one behind it after one separator (0: there is none; `any`:
 * whatever follows).
 */
export type Opening = readonly [first: number, second: number | 'any'];

export interface Detector {
  readonly entity: EntityName;
  /**
   * How many bytes before a finding its anchor can be: a password is one because of the URL before it. Left out: the
   * anchor is within.
   */
  readonly lookBehind?: number;
  /**
   * Of a detector of numbers, whose anchors are those of all numbers: it is asked about those alone that begin so.
   */
  readonly openings?: readonly Opening[];
  /** Byte pairs, as `pairOf` makes them. */
  readonly anchors: readonly number[];
  /**
   * Whether something is found at an anchor, whose second byte is at `at`, in a text that begins at `start`. Reads
   * bytes[start - 1, end) only, and of those CONTEXT_BYTES before `at` and a bounded number behind it.
   */
  readonly find: (bytes: Uint8Array, at: number, start: number, end: number, hit: Hit) => boolean;
  /** The first byte of a suffix of bytes[start, end) that could still become a finding; `end`: there is none. */
  readonly hold: (bytes: Uint8Array, start: number, end: number) => number;
  /** Of findings that may be open. */
  readonly tailOf?: TailOf;
}

/** Of an open finding, what of bytes[from, end) belongs to it. */
export interface Tail {
  /** The first byte that does not, or not surely. */
  readonly to: number;
  /** It may go on: it is to be asked again from `to` once more has come. */
  readonly isOpen: boolean;
}

export type TailOf = (bytes: Uint8Array, from: number, end: number) => Tail;

/** As two bytes are read at once, the lower one first. */
export function pairOf(first: number, second: number): number {
  return (second << 8) | first;
}

/** The byte at `at`, or a blank outside of the text. The byte before a text is never read at a negative place. */
export function byteAt(bytes: Uint8Array, at: number, end: number): number {
  return at >= 0 && at < end ? (bytes[at] as number) : 0x20;
}

/** For the few places that need a text: after the bytes alone have let it pass. */
export function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8');
}
