// Finds national identifiers of letters and digits by their check characters. Off unless a rule names them.

import type { EntityName } from '../entities.ts';
import { bytesIn, classOf, DIGIT, holdByClass, isWithin, runEnd, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, type Opening, pairOf, textOf } from './detector.ts';
import { NUMBER_ANCHORS } from './digit-groups.ts';

interface CodeForm {
  readonly entity: EntityName;
  /** The characters that it may begin with. */
  readonly first: string;
  /** Where its digits may begin: how many bytes after its beginning the anchor is. */
  readonly digitsAt: readonly number[];
  /** The characters that may come before its digits. */
  readonly before: string;
  readonly digitsMin: number;
  /** The whole identifier as it is written. */
  readonly written: RegExp;
  /** `code` is in upper case and without separators, except that fi_hetu keeps its sign. */
  readonly isValid: (code: string) => boolean;
}

/** More bytes than the longest written form. */
const LONGEST = 20;
const CODE = classOf('0-9A-Za-z +\u002d');

const FORMS: readonly CodeForm[] = [
  {
    entity: 'es_nif',
    first: '0-9',
    digitsAt: [0],
    before: '',
    digitsMin: 7,
    written: /^\d{7,8}-?[A-Z]/i,
    isValid: (code) => isSpanish(code.slice(0, -1), code.slice(-1)),
  },
  {
    entity: 'es_nie',
    first: 'XYZxyz',
    digitsAt: [1],
    before: 'XYZxyz',
    digitsMin: 7,
    written: /^[XYZ]\d{7}-?[A-Z]/i,
    isValid: (code) => isSpanish(`${'XYZ'.indexOf(code.charAt(0))}${code.slice(1, -1)}`, code.slice(-1)),
  },
  {
    entity: 'fi_hetu',
    first: '0-3',
    digitsAt: [0],
    before: '',
    digitsMin: 6,
    written: /^\d{6}[-+ABCDEFYXWVU]\d{3}[0-9A-Y]/i,
    isValid: isHetu,
  },
  {
    entity: 'it_fiscal_code',
    first: 'A-Za-z',
    digitsAt: [6],
    before: 'A-Za-z',
    digitsMin: 1,
    written: /^[A-Z]{6}[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{3}[A-Z]/i,
    isValid: isFiscalCode,
  },
  {
    entity: 'uk_nino',
    first: 'A-Za-z',
    digitsAt: [2, 3],
    before: 'A-Za-z ',
    digitsMin: 2,
    written: /^[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]/i,
    isValid: (code) => /^(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]/.test(code),
  },
];

function isSpanish(number: string, check: string): boolean {
  return 'TRWAGMYFPDXBNJZSQVHLCKE'[Number(number) % 23] === check;
}

/**
 * Day, month, year, the sign of the century, an order from 002 to 899, and the remainder of the number divided by 31.
 */
function isHetu(code: string): boolean {
  const [day, month, year] = [code.slice(0, 2), code.slice(2, 4), code.slice(4, 6)].map(Number) as [
    number,
    number,
    number,
  ];
  const sign = code.charAt(6);
  const century = sign === '+' ? 1800 : '-YXWVU'.includes(sign) ? 1900 : 2000;
  if (day < 1 || day > daysIn(century + year, month)) return false;
  const order = Number(code.slice(7, 10));
  const rest = Number(code.slice(0, 6) + code.slice(7, 10)) % 31;
  return order >= 2 && order <= 899 && '0123456789ABCDEFHJKLMNPRSTUVWXY'[rest] === code.charAt(10);
}

/** 0: there is no such month. */
function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 && isLeap ? 29 : (DAYS[month] ?? 0);
}

const DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

const ODD_VALUES = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];

function isFiscalCode(code: string): boolean {
  let sum = 0;
  for (let index = 0; index < 15; index += 1) {
    const byte = code.charCodeAt(index);
    const value = byte <= 0x39 ? byte - 0x30 : byte - 0x41;
    sum += index % 2 === 0 ? (ODD_VALUES[value] as number) : value;
  }
  return String.fromCharCode(0x41 + (sum % 26)) === code.charAt(15);
}

function detectorOf({ entity, first, digitsAt, before, digitsMin, written, isValid }: CodeForm): Detector {
  const firsts = classOf(first);
  const befores = classOf(before);
  const findFrom = (bytes: Uint8Array, at: number, end: number, hit: Hit): boolean => {
    const to = runEnd(CODE, bytes, at, end, LONGEST);
    if (to - at < 8) return false;
    const match = written.exec(textOf(bytes, at, to))?.[0];
    if (match === undefined) return false;
    const after = byteAt(bytes, at + match.length, end);
    // The sign in Finland's numbers carries the century, so it is kept.
    if (WORD[after] === 1 || !isValid(entity === 'fi_hetu' ? match.toUpperCase() : bare(match))) return false;
    hit.start = at;
    hit.end = at + match.length;
    hit.isOpen = false;
    return true;
  };
  const find = (bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean => {
    if (runEnd(DIGIT, bytes, at, end, digitsMin) - at < digitsMin) return false;
    for (const count of digitsAt) {
      const from = at - count;
      if (from < start || firsts[bytes[from] as number] !== 1) continue;
      if (runEnd(befores, bytes, from, at, count) !== at) continue;
      if (!isWithin(WORD, bytes, from) && findFrom(bytes, from, end, hit)) return true;
    }
    return false;
  };
  // The anchor is the first digit: at the very beginning, or after one of the characters that may come before the
  // digits.
  const hold = holdByClass(CODE, firsts, LONGEST);
  if (digitsAt[0] === 0) {
    const openings: readonly Opening[] = [
      [digitsMin, 'any'],
      [digitsMin + 1, 'any'],
    ];
    return { entity, openings, anchors: NUMBER_ANCHORS, find, hold };
  }
  const anchors = bytesIn(DIGIT).flatMap((byte) => bytesIn(befores).map((before) => pairOf(before, byte)));
  return { entity, anchors, find, hold };
}

function bare(written: string): string {
  return written.replaceAll(/[^0-9A-Za-z]/g, '').toUpperCase();
}

export const nationalCodes: readonly Detector[] = FORMS.map(detectorOf);
