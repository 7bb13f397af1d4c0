// Finds social security numbers of the United States, written with dashes: areas and groups that are issued, without
// numbers known from advertisements.

import { classOf, DIGIT, holdByClass } from './characters.ts';
import type { Detector, Hit } from './detector.ts';
import { type DigitGroups, digitGroupsAt, isEndOfNumber, isGrouped, NUMBER_ANCHORS } from './digit-groups.ts';

/**
 * Numbers that were printed in wallets and brochures, or that are common examples:
 * https://www.ssa.gov/history/ssn/misused.html.
 */
const KNOWN_FAKES: ReadonlySet<string> = new Set(['078051120', '219099999', '123456789', '457555462', '987654321']);

const DASH = 0x2d;

function findSsn(bytes: Uint8Array, at: number, _start: number, end: number, hit: Hit): boolean {
  const found = digitGroupsAt(bytes, at, end);
  if (!isGrouped(found, [3, 2, 4], '-')) return false;
  const numberEnd = found.ends[2] as number;
  if (!isEndOfNumber(bytes, numberEnd, end) || found.separators[2] === DASH || !isGivenOut(found)) return false;
  hit.start = at;
  hit.end = numberEnd;
  hit.isOpen = false;
  return true;
}

function isGivenOut({ digits }: DigitGroups): boolean {
  const number = digits.subarray(0, 9).join('');
  const area = number.slice(0, 3);
  if (area === '000' || area === '666' || area >= '900') return false;
  if (number.slice(3, 5) === '00' || number.slice(5) === '0000') return false;
  return !KNOWN_FAKES.has(number) && new Set(number).size > 1;
}

export const usSsn: Detector = {
  entity: 'us_ssn',
  openings: [[3, 2]],
  anchors: NUMBER_ANCHORS,
  find: findSsn,
  hold: holdByClass(classOf('0-9\u002d'), DIGIT, 13),
};
