// Finds national numbers of digits only, by their check digits. Off unless a rule names them, since every tenth number
// passes a single check digit.

import type { EntityName } from '../entities.ts';
import { classOf, DIGIT, holdByClass } from './characters.ts';
import { passesMod11And10, passesVerhoeff, weightedSum } from './checksums.ts';
import type { Detector, Hit, Opening } from './detector.ts';
import { digitGroupsAt, isEndOfNumber, isGrouped, isUniform, NUMBER_ANCHORS } from './digit-groups.ts';

interface NumberForm {
  readonly entity: EntityName;
  /** Lengths of its groups, and the separators that may be between them. */
  readonly groupings: readonly (readonly [lengths: readonly number[], separators: string])[];
  readonly isValid: (digits: Uint8Array) => boolean;
}

const BARE = '';

const FORMS: readonly NumberForm[] = [
  {
    entity: 'br_cpf',
    groupings: [[[11], BARE]],
    isValid: isCpf,
  },
  {
    entity: 'de_tax_id',
    groupings: [
      [[11], BARE],
      [[2, 3, 3, 3], ' '],
    ],
    isValid: (digits) => digits[0] !== 0 && repeatsOnce(digits) && passesMod11And10(digits, 11),
  },
  {
    entity: 'fr_nir',
    groupings: [
      [[15], BARE],
      [[1, 2, 2, 2, 3, 3, 2], ' '],
    ],
    isValid: isNir,
  },
  {
    entity: 'in_aadhaar',
    groupings: [
      [[12], BARE],
      [[4, 4, 4], ' -'],
    ],
    isValid: (digits) => (digits[0] as number) >= 2 && !isUniform(digits, 12) && passesVerhoeff(digits, 12),
  },
  {
    entity: 'pl_pesel',
    groupings: [[[11], BARE]],
    isValid: isPesel,
  },
  {
    entity: 'uk_nhs',
    // Ten digits without separators are too often a timestamp.
    groupings: [[[3, 3, 4], ' -']],
    isValid: (digits) => {
      const check = 11 - (weightedSum(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11);
      return check !== 10 && check % 11 === digits[9];
    },
  },
  {
    entity: 'us_itin',
    groupings: [[[3, 2, 4], '-']],
    isValid: isItin,
  },
];

function isCpf(digits: Uint8Array): boolean {
  if (isUniform(digits, 11)) return false;
  const checkOf = (count: number) => {
    const weights = Array.from({ length: count }, (_, index) => count + 1 - index);
    return ((weightedSum(digits, weights) * 10) % 11) % 10;
  };
  return checkOf(9) === digits[9] && checkOf(10) === digits[10];
}

/** One digit occurs two or three times, all others at most once: the rule by which these numbers are issued. */
function repeatsOnce(digits: Uint8Array): boolean {
  const counts = new Uint8Array(10);
  for (const digit of digits.subarray(0, 10)) counts[digit] = (counts[digit] as number) + 1;
  const repeated = [...counts].filter((count) => count > 1);
  return repeated.length === 1 && (repeated[0] as number) <= 3;
}

/**
 * Sex, year, month, département, commune, order; the key is 97 minus the remainder of the thirteen digits divided by
 * 97.
 */
function isNir(digits: Uint8Array): boolean {
  const sex = digits[0] as number;
  const month = (digits[3] as number) * 10 + (digits[4] as number);
  if ((sex !== 1 && sex !== 2) || month < 1 || month > 12) return false;
  const number = Number(digits.subarray(0, 13).join(''));
  return 97 - (number % 97) === (digits[13] as number) * 10 + (digits[14] as number);
}

function isPesel(digits: Uint8Array): boolean {
  if (isUniform(digits, 11)) return false;
  const month = ((digits[2] as number) * 10 + (digits[3] as number)) % 20;
  const day = (digits[4] as number) * 10 + (digits[5] as number);
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  return (10 - (weightedSum(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10)) % 10 === digits[10];
}

/** 9xx, and a group that the IRS issues. */
function isItin(digits: Uint8Array): boolean {
  const group = (digits[3] as number) * 10 + (digits[4] as number);
  const isGivenOut =
    (group >= 50 && group <= 65) || (group >= 70 && group <= 88) || (group >= 90 && group <= 99 && group !== 93);
  return digits[0] === 9 && isGivenOut;
}

function detectorOf({ entity, groupings, isValid }: NumberForm): Detector {
  const find = (bytes: Uint8Array, at: number, _start: number, end: number, hit: Hit): boolean => {
    const found = digitGroupsAt(bytes, at, end);
    const grouping = groupings.find(([lengths, separators]) => isGrouped(found, lengths, separators));
    if (grouping === undefined) return false;
    const numberEnd = found.ends[grouping[0].length - 1] as number;
    if (!isEndOfNumber(bytes, numberEnd, end) || !isValid(found.digits)) return false;
    hit.start = at;
    hit.end = numberEnd;
    hit.isOpen = false;
    return true;
  };
  const openings = groupings.map(([[first = 0, second]]): Opening => [first, second ?? 'any']);
  return { entity, openings, anchors: NUMBER_ANCHORS, find, hold: holdByClass(classOf('0-9 .\u002d'), DIGIT, 26) };
}

export const nationalNumbers: readonly Detector[] = FORMS.map(detectorOf);
