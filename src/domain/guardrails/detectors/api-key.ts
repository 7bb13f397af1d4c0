// Finds keys of well-known APIs by the issuer's prefix, characters and length, and by enough entropy to be no
// placeholder.

import { classOf, holdByClass, isDigit, isWithin, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';
import { KEY_FORMS, type KeyForm, type KeyPart } from './key-forms.ts';

/** The least entropy of the characters after the prefix; `xxxx…`, `0123…` and words have less. */
const ENTROPY_BITS_MIN = 3;

/** Forms by the pair of their anchor. */
const formsByPair: (readonly KeyForm[] | undefined)[] = Array.from({ length: 65_536 });
for (const form of KEY_FORMS) {
  const prefix = (form.parts[0] as KeyPart).literal as Buffer;
  const pair = pairOf(prefix[form.anchorAt] as number, prefix[form.anchorAt + 1] as number);
  formsByPair[pair] = [...(formsByPair[pair] ?? []), form];
}

function findApiKey(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const forms = formsByPair[pairOf(bytes[at - 1] as number, bytes[at] as number)];
  if (forms === undefined) return false;
  for (const form of forms) {
    const from = at - 1 - form.anchorAt;
    if (from < start) continue;
    const keyStart = form.issuer === 'telegram' ? startOfTelegram(bytes, from, start) : startOfKey(bytes, from);
    if (keyStart === -1) continue;
    const keyEnd = endOfForm(bytes, from, end, form);
    if (keyEnd === -1) continue;
    hit.start = keyStart;
    hit.end = keyEnd;
    hit.isOpen = false;
    return true;
  }
  return false;
}

/** -1: it is the middle of a longer word. */
function startOfKey(bytes: Uint8Array, from: number): number {
  return isWithin(WORD, bytes, from) ? -1 : from;
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

/** Telegram's keys begin with the bot's number, before the colon; -1: there is no such number. */
function startOfTelegram(bytes: Uint8Array, colon: number, start: number): number {
  let place = colon;
  while (place > start && place > colon - 11 && isDigit(bytes[place - 1] as number)) place -= 1;
  const count = colon - place;
  if (count < 8 || count > 10) return -1;
  return isWithin(WORD, bytes, place) ? -1 : place;
}

/** How often each byte occurs; all 0 between two keys. */
const counts = new Uint16Array(256);
const LONGEST = Math.max(...KEY_FORMS.map(({ longest }) => longest)) + 1;
/** By how often a byte occurs: what it subtracts from the entropy, before dividing by the length. */
const COUNT_BITS = Float64Array.from({ length: LONGEST }, (_, count) => (count === 0 ? 0 : count * Math.log2(count)));
const EXAMPLE = Buffer.from('EXAMPLE');

/** Whether the entropy is too low, or the key ends in EXAMPLE, as AWS's examples do. */
function isPlaceholder(bytes: Uint8Array, from: number, to: number): boolean {
  if (endOfLiteral(bytes, Math.max(from, to - EXAMPLE.length), to, EXAMPLE) !== -1) return true;
  for (let place = from; place < to; place += 1) {
    const byte = bytes[place] as number;
    counts[byte] = (counts[byte] as number) + 1;
  }
  let repeated = 0;
  for (let place = from; place < to; place += 1) {
    const byte = bytes[place] as number;
    repeated += COUNT_BITS[counts[byte] as number] as number;
    counts[byte] = 0;
  }
  return Math.log2(to - from) - repeated / (to - from) < ENTROPY_BITS_MIN;
}

export const apiKey: Detector = {
  entity: 'api_key',
  anchors: formsByPair.flatMap((forms, pair) => (forms === undefined ? [] : [pair])),
  find: findApiKey,
  hold: holdByClass(classOf('A-Za-z0-9_.+/=:~\u002d'), classOf('A-Za-z0-9'), LONGEST),
};
