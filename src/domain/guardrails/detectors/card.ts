// Finds numbers of payment cards by brand, length, grouping and Luhn check; numbers of one repeated digit are left out.

import { classOf, DIGIT, holdByClass } from './characters.ts';
import { passesLuhn } from './checksums.ts';
import type { Detector, Hit } from './detector.ts';
import {
  type DigitGroups,
  digitGroupsAt,
  isEndOfNumber,
  isGrouped,
  isUniform,
  NUMBER_ANCHORS,
} from './digit-groups.ts';

/** Ranges of issuers' first digits (as many as are written, both ends inclusive), and the lengths of their numbers. */
const BRANDS: readonly (readonly [from: number, to: number, lengths: readonly number[]])[] = [
  [4, 4, [13, 16, 19]],
  [51, 55, [16]],
  [2221, 2720, [16]],
  [34, 34, [15]],
  [37, 37, [15]],
  [300, 305, [14, 16]],
  [3095, 3095, [14, 16]],
  [36, 36, [14, 16]],
  [38, 39, [14, 16]],
  [6011, 6011, [16, 19]],
  [644, 649, [16, 19]],
  [65, 65, [16, 19]],
  [3528, 3589, [16, 19]],
  [62, 62, [16, 17, 18, 19]],
  [5018, 5018, [12, 13, 16, 18, 19]],
  [5020, 5020, [12, 13, 16, 18, 19]],
  [5038, 5038, [12, 13, 16, 18, 19]],
  [5893, 5893, [12, 13, 16, 18, 19]],
  [6304, 6304, [12, 13, 16, 18, 19]],
  [6759, 6759, [12, 13, 16, 18, 19]],
  [6761, 6763, [12, 13, 16, 18, 19]],
  [2200, 2204, [16, 17, 18, 19]],
  [60, 60, [16]],
  [81, 81, [16]],
  [5019, 5019, [16]],
];
/** By the first four digits: bit n is set if numbers of n digits are issued. */
const LENGTHS_BY_PREFIX = new Uint32Array(10_000);
for (const [from, to, lengths] of BRANDS) {
  const scale = 10 ** (4 - String(from).length);
  const bits = lengths.reduce((sum, length) => sum | (1 << length), 0);
  for (let prefix = from * scale; prefix < (to + 1) * scale; prefix += 1)
    LENGTHS_BY_PREFIX[prefix] = (LENGTHS_BY_PREFIX[prefix] as number) | bits;
}
const GROUPINGS: readonly (readonly number[])[] = [
  [4, 4, 4, 4, 3],
  [4, 4, 4, 4],
  [4, 6, 5],
  [4, 6, 4],
  [8, 8],
];
const LENGTH_MIN = 12;
const LENGTH_MAX = 19;

function findCard(bytes: Uint8Array, at: number, _start: number, end: number, hit: Hit): boolean {
  const found = digitGroupsAt(bytes, at, end);
  const first = found.lengths[0] as number;
  const groups = first >= LENGTH_MIN && first <= LENGTH_MAX ? 1 : first === 4 || first === 8 ? groupsOf(found) : 0;
  if (groups === 0) return false;
  let count = 0;
  for (let index = 0; index < groups; index += 1) count += found.lengths[index] as number;
  const numberEnd = found.ends[groups - 1] as number;
  if (!isEndOfNumber(bytes, numberEnd, end) || !isOfBrand(found.digits, count)) return false;
  if (isUniform(found.digits, count) || !passesLuhn(found.digits, count)) return false;
  hit.start = at;
  hit.end = numberEnd;
  hit.isOpen = false;
  return true;
}

/** 0: not grouped as cards are. Five or more groups of four are a table of numbers. */
function groupsOf(found: DigitGroups): number {
  for (const grouping of GROUPINGS) {
    if (!isGrouped(found, grouping, ' -')) continue;
    const next = grouping.length;
    const goesOn = found.groups > next && found.separators[next - 1] === found.separators[0];
    return goesOn && found.lengths[next] === 4 ? 0 : next;
  }
  return 0;
}

function isOfBrand(digits: Uint8Array, count: number): boolean {
  let prefix = 0;
  for (let index = 0; index < 4; index += 1) prefix = prefix * 10 + (digits[index] as number);
  return (((LENGTHS_BY_PREFIX[prefix] as number) >> count) & 1) === 1;
}

export const card: Detector = {
  entity: 'card',
  openings: [
    ...GROUPINGS.map(([first = 0, second = 0]) => [first, second] as const),
    ...Array.from({ length: LENGTH_MAX - LENGTH_MIN + 1 }, (_, more) => [LENGTH_MIN + more, 'any'] as const),
  ],
  anchors: NUMBER_ANCHORS,
  find: findCard,
  hold: holdByClass(classOf('0-9 \u002d'), DIGIT, 30),
};
