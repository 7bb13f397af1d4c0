// Finds phone numbers: with `+` and country code, or in the spaced form of North America. Each must exist in the
// numbering plan of its country, by libphonenumber's table.

import { bytesIn, classOf, DIGIT, holdByClass, isWithin, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';
import { digitGroupsAt, isEndOfNumber, isGrouped, NUMBER_ANCHORS } from './digit-groups.ts';
import { isNumberInPlan } from './numbering-plans.ts';

/** ITU E.164. */
const DIGITS_MAX = 15;
const DIGITS_MIN = 7;
/** The most bytes of a number, with one or two separators between all groups. */
const BYTES_MAX = 48;
const PLUS = 0x2b;
const OPENING = 0x28;
const CLOSING = 0x29;
const DOT = 0x2e;
const ZERO = 0x30;
const ONE = 0x31;
const SEPARATOR = classOf(' ./()\u002d');

/** The ends of the groups that were read last, and the number of digits up to each end. */
const groupEnds = new Int32Array(DIGITS_MAX + 1);
const groupDigits = new Uint8Array(DIGITS_MAX + 1);
const digits = Buffer.alloc(DIGITS_MAX + 1);

/** Finds the longest run of groups from the first on that is a number; the groups after it may be another number. */
function findInternational(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  if (at - 1 < start || bytes[at - 1] !== PLUS) return false;
  if (isWithin(WORD, bytes, at - 1) || bytes[at - 2] === PLUS) return false;
  for (let group = readGroups(bytes, at, end) - 1; group >= 0; group -= 1) {
    const groupEnd = groupEnds[group] as number;
    const count = groupDigits[group] as number;
    if (count < DIGITS_MIN) return false;
    if (!isEndOfNumber(bytes, groupEnd, end) || !isNumberInPlan(digits, count)) continue;
    hit.start = at - 1;
    hit.end = groupEnd;
    hit.isOpen = false;
    return true;
  }
  return false;
}

/** Reads the groups and returns their number. The zero of `+44 (0)20` is left out, since it is not dialled. */
function readGroups(bytes: Uint8Array, at: number, end: number): number {
  const limit = Math.min(end, at + BYTES_MAX);
  let count = 0;
  let groups = 0;
  let place = at;
  while (place < limit) {
    while (place < limit && DIGIT[bytes[place] as number] === 1) {
      if (count === DIGITS_MAX) return groups;
      digits[count] = bytes[place] as number;
      count += 1;
      place += 1;
    }
    groupEnds[groups] = place;
    groupDigits[groups] = count;
    groups += 1;
    const next = afterSeparators(bytes, place, limit);
    if (next === -1) break;
    place = next;
  }
  return groups;
}

/** The next digit after one or two separators, or `(0)`; -1: none. */
function afterSeparators(bytes: Uint8Array, from: number, limit: number): number {
  let place = from;
  while (place < limit && place < from + 2 && SEPARATOR[bytes[place] as number] === 1) place += 1;
  if (bytes[place - 1] === OPENING && bytes[place] === ZERO && byteAt(bytes, place + 1, limit) === CLOSING) {
    place += 2;
    if (SEPARATOR[byteAt(bytes, place, limit)] === 1) place += 1;
  }
  return place > from && DIGIT[byteAt(bytes, place, limit)] === 1 ? place : -1;
}

function findNorthAmerican(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const before = at > 0 ? (bytes[at - 1] as number) : 0x20;
  // A number after a dot is a decimal fraction or part of a version.
  if (before === DOT || before === PLUS) return false;
  if (before === OPENING) return at > start && findWithBrackets(bytes, at, end, hit);
  const found = digitGroupsAt(bytes, at, end);
  const first = found.lengths[0] === 1 && bytes[at] === ONE && isGrouped(found, [1, 3, 3, 4], ' -.') ? 1 : 0;
  if (first === 0 && !isGrouped(found, [3, 3, 4], ' -.')) return false;
  const last = first + 2;
  const numberEnd = found.ends[last] as number;
  const isLonger = found.separators[last] === found.separators[first];
  if (isLonger || !isEndOfNumber(bytes, numberEnd, end)) return false;
  for (let index = 0; index < 10; index += 1) digits[index + 1] = (found.digits[first + index] as number) + ZERO;
  return isNorthAmerican(at, numberEnd, hit);
}

/** `(415) 555-2671` and `(415)555-2671`. */
function findWithBrackets(bytes: Uint8Array, at: number, end: number, hit: Hit): boolean {
  if (byteAt(bytes, at + 3, end) !== CLOSING) return false;
  const space = SEPARATOR[byteAt(bytes, at + 4, end)] === 1 ? 1 : 0;
  const rest = at + 4 + space;
  if (SEPARATOR[byteAt(bytes, rest + 3, end)] !== 1 || !isEndOfNumber(bytes, rest + 8, end)) return false;
  for (let index = 0; index < 10; index += 1) {
    const byte = byteAt(bytes, index < 3 ? at + index : index < 6 ? rest + index - 3 : rest + index - 2, end);
    if (DIGIT[byte] !== 1) return false;
    digits[index + 1] = byte;
  }
  return isNorthAmerican(at - 1, rest + 8, hit);
}

function isNorthAmerican(from: number, to: number, hit: Hit): boolean {
  digits[0] = ONE;
  // No area code and no exchange begins with 0 or 1.
  if ((digits[1] as number) <= ONE || (digits[4] as number) <= ONE) return false;
  if (!isNumberInPlan(digits, 11)) return false;
  hit.start = from;
  hit.end = to;
  hit.isOpen = false;
  return true;
}

const hold = holdByClass(classOf('0-9+ ./()\u002d'), classOf('0-9+('), BYTES_MAX + 1);

export const internationalPhone: Detector = {
  entity: 'phone',
  anchors: bytesIn(classOf('1-9')).map((digit) => pairOf(PLUS, digit)),
  find: findInternational,
  hold,
};

export const northAmericanPhone: Detector = {
  entity: 'phone',
  // The second opening is for area codes in brackets.
  openings: [
    [3, 3],
    [3, 0],
    [1, 3],
  ],
  anchors: NUMBER_ANCHORS,
  find: findNorthAmerican,
  hold,
};
