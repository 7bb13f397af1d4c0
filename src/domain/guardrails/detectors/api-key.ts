// Keys of well-known APIs: the issuer's prefix, characters and length, and enough entropy to be no placeholder.

import { classOf, holdByClass, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';
import { KEY_FORMS, type KeyForm, type KeyPart } from './key-forms.ts';

/** Of the characters after the prefix: `xxxx…`, `0123…` and words have less. */
const ENTROPY_BITS_MIN = 3;

const formsByPair = new Map<number, KeyForm[]>();
for (const form of KEY_FORMS) {
  const prefix = (form.parts[0] as KeyPart).literal as Buffer;
  const pair = pairOf(prefix[form.anchorAt] as number, prefix[form.anchorAt + 1] as number);
  formsByPair.set(pair, [...(formsByPair.get(pair) ?? []), form]);
}

function findApiKey(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const forms = formsByPair.get(pairOf(bytes[at - 1] as number, bytes[at] as number));
  if (forms === undefined) return false;
  for (const form of forms) {
    const from = at - 1 - form.anchorAt;
    if (from < start) continue;
    const keyEnd = endOfForm(bytes, from, end, form);
    if (keyEnd === -1) continue;
    if (form.issuer === 'telegram') {
      const tokenStart = startOfTelegram(bytes, from, start);
      if (tokenStart === -1) continue;
      hit.start = tokenStart;
    } else {
      if (from > 0 && WORD[bytes[from - 1] as number] === 1) continue;
      hit.start = from;
    }
    hit.end = keyEnd;
    hit.isOpen = false;
    return true;
  }
  return false;
}

/** -1: it is not of this form. */
function endOfForm(bytes: Uint8Array, from: number, end: number, { parts }: KeyForm): number {
  let place = from;
  for (const part of parts) {
    place = part.literal === null ? endOfClass(bytes, place, end, part) : endOfLiteral(bytes, place, end, part.literal);
    if (place === -1) return -1;
  }
  if (WORD[byteAt(bytes, place, end)] === 1) return -1;
  const prefixBytes = (parts[0] as KeyPart).max;
  return isPlaceholder(bytes, from + prefixBytes, place) ? -1 : place;
}

function endOfLiteral(bytes: Uint8Array, from: number, end: number, literal: Buffer): number {
  if (from + literal.length > end) return -1;
  for (let index = 0; index < literal.length; index += 1) if (bytes[from + index] !== literal[index]) return -1;
  return from + literal.length;
}

function endOfClass(bytes: Uint8Array, from: number, end: number, { characters, min, max }: KeyPart): number {
  const limit = Math.min(end, from + max);
  let place = from;
  while (place < limit && characters[bytes[place] as number] === 1) place += 1;
  return place - from < min ? -1 : place;
}

/** A bot's number stands before the colon. */
function startOfTelegram(bytes: Uint8Array, colon: number, start: number): number {
  let place = colon;
  while (place > start && place > colon - 11 && isDigit(bytes[place - 1] as number)) place -= 1;
  const count = colon - place;
  if (count < 8 || count > 10) return -1;
  return place > 0 && WORD[bytes[place - 1] as number] === 1 ? -1 : place;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

const counts = new Uint16Array(256);
const EXAMPLE = Buffer.from('EXAMPLE');

/** Too little entropy, or it says itself that it is an example, as AWS's do. */
function isPlaceholder(bytes: Uint8Array, from: number, to: number): boolean {
  if (endOfLiteral(bytes, Math.max(from, to - EXAMPLE.length), to, EXAMPLE) !== -1) return true;
  counts.fill(0);
  for (let place = from; place < to; place += 1) {
    const byte = bytes[place] as number;
    counts[byte] = (counts[byte] as number) + 1;
  }
  let bits = 0;
  for (const count of counts) if (count > 0) bits -= (count / (to - from)) * Math.log2(count / (to - from));
  return bits < ENTROPY_BITS_MIN;
}

export const apiKey: Detector = {
  entity: 'api_key',
  anchors: [...formsByPair.keys()],
  find: findApiKey,
  hold: holdByClass(
    classOf('A-Za-z0-9_.+/=:~\u002d'),
    classOf('A-Za-z0-9'),
    Math.max(...KEY_FORMS.map(({ longest }) => longest)) + 1,
  ),
};
