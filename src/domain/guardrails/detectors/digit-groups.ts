// Reads the groups of digits of a written number, with one separator between two groups. The detectors of numbers share
// the result, since most of them begin at the same digit.

import { ALNUM, bytesIn, classOf, complementOf, DIGIT, runEnd, WORD } from './characters.ts';
import { byteAt, type Opening, pairOf } from './detector.ts';

/** More groups than any number has. */
const GROUPS_MAX = 8;
const DIGITS_MAX = 24;
/** The different counts of digits in one group of an opening: from 0 to DIGITS_MAX, and more. */
const COUNTS = DIGITS_MAX + 2;
/** How many ways there are for a number to begin. */
export const OPENINGS = COUNTS * COUNTS;
const ZERO = 0x30;
const DOT = 0x2e;

export interface DigitGroups {
  /** The place of the first digit. */
  start: number;
  groups: number;
  /** Digits of each group, and the place after it. */
  readonly lengths: Uint8Array;
  readonly ends: Int32Array;
  /** The separator after each group; 0: the last one. */
  readonly separators: Uint8Array;
  readonly digits: Uint8Array;
}

const read: DigitGroups = {
  start: -1,
  groups: 0,
  lengths: new Uint8Array(GROUPS_MAX),
  ends: new Int32Array(GROUPS_MAX),
  separators: new Uint8Array(GROUPS_MAX),
  digits: new Uint8Array(DIGITS_MAX + 1),
};
let readOf: Uint8Array | null = null;
let readEnd = 0;

const SEPARATORS = new Uint8Array(256);
for (const separator of ' -./') SEPARATORS[separator.charCodeAt(0)] = 1;

/**
 * Pairs at which a number may begin: a digit after anything but a letter, digit or underscore, or after the letter of a
 * spelt-out blank (`\n`). Whether the letter belongs to such an escape is checked by the code that looks closer.
 */
export const NUMBER_ANCHORS: readonly number[] = [...bytesIn(complementOf(WORD)), ...bytesIn(classOf('nrt'))].flatMap(
  (before) => bytesIn(DIGIT).map((digit) => pairOf(before, digit)),
);

/** The lengths of the first two groups of the number at `at`, as one index. */
export function openingAt(bytes: Uint8Array, at: number, end: number): number {
  const behind = runEnd(DIGIT, bytes, at, end, COUNTS - 1);
  const first = (behind - at) * COUNTS;
  if (SEPARATORS[byteAt(bytes, behind, end)] !== 1) return first;
  return first + runEnd(DIGIT, bytes, behind + 1, end, COUNTS - 1) - behind - 1;
}

export function isOpening([first, second]: Opening, opening: number): boolean {
  return Math.floor(opening / COUNTS) === first && (second === 'any' || opening % COUNTS === second);
}

/**
 * The groups from the digit at `at` on; valid until the next call. The same place of the same text is read once, since
 * every detector of numbers asks for it.
 */
export function digitGroupsAt(bytes: Uint8Array, at: number, end: number): DigitGroups {
  if (readOf === bytes && read.start === at && readEnd === end) return read;
  readOf = bytes;
  readEnd = end;
  read.start = at;
  let groups = 0;
  let digits = 0;
  let place = at;
  while (groups < GROUPS_MAX) {
    const groupStart = place;
    while (place < end && digits <= DIGITS_MAX && DIGIT[bytes[place] as number] === 1) {
      read.digits[digits] = (bytes[place] as number) - ZERO;
      digits += 1;
      place += 1;
    }
    read.lengths[groups] = place - groupStart;
    read.ends[groups] = place;
    const separator = byteAt(bytes, place, end);
    const goesOn = digits <= DIGITS_MAX && SEPARATORS[separator] === 1 && DIGIT[byteAt(bytes, place + 1, end)] === 1;
    read.separators[groups] = goesOn ? separator : 0;
    groups += 1;
    // No number has two groups of a single digit in a row; a hostile text can have them everywhere.
    const isCounting = groups > 1 && read.lengths[groups - 1] === 1 && read.lengths[groups - 2] === 1;
    if (!goesOn || isCounting) break;
    place += 1;
  }
  read.groups = groups;
  return read;
}

/** Called when the scan of another text begins: a reused buffer has other bytes at the same place. */
export function forgetDigitGroups(): void {
  readOf = null;
}

/** Whether the number ends at `at`: no letter or digit, and no decimal fraction, makes it part of something longer. */
export function isEndOfNumber(bytes: Uint8Array, at: number, end: number): boolean {
  const after = byteAt(bytes, at, end);
  if (WORD[after] === 1) return false;
  return after !== DOT || ALNUM[byteAt(bytes, at + 1, end)] !== 1;
}

/** Whether the first groups have these lengths, with one of `separators` between them, the same throughout. */
export function isGrouped(found: DigitGroups, lengths: readonly number[], separators: string): boolean {
  if (found.lengths[0] !== lengths[0] || found.groups < lengths.length) return false;
  const separator = found.separators[0] as number;
  for (let index = 0; index < lengths.length; index += 1) {
    if (found.lengths[index] !== lengths[index]) return false;
    if (index < lengths.length - 1 && found.separators[index] !== separator) return false;
  }
  return lengths.length === 1 || separators.includes(String.fromCharCode(separator));
}

/** Whether all digits are the same: `4444 4444 4444 4444` is an example of the form and no number of anybody. */
export function isUniform(digits: Uint8Array, count: number): boolean {
  for (let index = 1; index < count; index += 1) if (digits[index] !== digits[0]) return false;
  return true;
}
