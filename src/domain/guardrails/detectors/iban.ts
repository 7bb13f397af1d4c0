// Finds international bank account numbers by country, the country's length, and the check digits (ISO 13616).

import { ALNUM, bytesIn, classOf, DIGIT, holdByClass, isWithin, UPPER } from './characters.ts';
import { mod97 } from './checksums.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';

const LETTER_A = 0x41;
/**
 * Length by country; 0: the country has no IBANs. From the SWIFT registry, with countries that use the form without
 * being in it.
 */
const LENGTHS = new Uint8Array(26 * 26);
for (const row of (
  'AD24 AE23 AL28 AO25 AT20 AZ28 BA20 BE16 BF28 BG22 BH22 BI27 BJ28 BR29 BY28 CF27 CG27 CH21 CI28 CM27 CR22 CV25 ' +
  'CY28 CZ24 DE22 DJ27 DK18 DO28 DZ26 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GA27 GB22 GE22 GF27 GI23 GL18 GP27 GQ27 ' +
  'GR27 GT28 GW25 HN28 HR21 HU28 IE22 IL23 IQ23 IR26 IS26 IT27 JO30 KM27 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 ' +
  'LY25 MA28 MC27 MD24 ME22 MG27 MK19 ML28 MN20 MQ27 MR27 MT31 MU30 MZ25 NC27 NE28 NI28 NL18 NO15 OM23 PF27 PK24 ' +
  'PL28 PM27 PS29 PT25 QA29 RE27 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SN28 SO23 ST25 SV28 TD27 TF27 ' +
  'TG28 TL23 TN24 TR26 UA29 VA22 VG24 WF27 XK20 YE30 YT27'
).split(' '))
  LENGTHS[countryAt(Buffer.from(row), 0)] = Number(row.slice(2));
const SPACE = 0x20;
const DASH = 0x2d;
/** 34 characters in groups of four. */
const BYTES_MAX = 44;
const letters = Buffer.alloc(BYTES_MAX);

/** The anchor is the second letter of the country and the first check digit. */
function findIban(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const from = at - 2;
  if (from < start || UPPER[bytes[from] as number] !== 1 || DIGIT[byteAt(bytes, at + 1, end)] !== 1) return false;
  if (isWithin(ALNUM, bytes, from)) return false;
  const length = LENGTHS[countryAt(bytes, from)] as number;
  if (length === 0) return false;
  const ibanEnd = readCharacters(bytes, from, end, length);
  if (ibanEnd === -1 || ALNUM[byteAt(bytes, ibanEnd, end)] === 1) return false;
  if (mod97(letters, length, 4) !== 1) return false;
  hit.start = from;
  hit.end = ibanEnd;
  hit.isOpen = false;
  return true;
}

/** The two letters as one number, which is outside the table if one of them is no letter. */
function countryAt(bytes: Uint8Array, from: number): number {
  return ((bytes[from] as number) - LETTER_A) * 26 + (bytes[from + 1] as number) - LETTER_A;
}

/** Reads `length` characters into `letters`, without separators; returns the place after the last one, or -1. */
function readCharacters(bytes: Uint8Array, from: number, end: number, length: number): number {
  let place = from;
  for (let count = 0; count < length; count += 1) {
    let byte = byteAt(bytes, place, end);
    if ((byte === SPACE || byte === DASH) && count > 0) {
      place += 1;
      byte = byteAt(bytes, place, end);
    }
    if (DIGIT[byte] !== 1 && UPPER[byte] !== 1) return -1;
    letters[count] = byte;
    place += 1;
  }
  return place;
}

export const iban: Detector = {
  entity: 'iban',
  anchors: bytesIn(UPPER).flatMap((letter) => bytesIn(DIGIT).map((digit) => pairOf(letter, digit))),
  find: findIban,
  hold: holdByClass(classOf('A-Z0-9 \u002d'), UPPER, 34 * 2),
};
