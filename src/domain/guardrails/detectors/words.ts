// The detector of a rule's own words: whole words, in upper or lower case. The words are sorted by their bytes, so that
// those which begin as the text does are one range, which each further byte makes smaller: what a text costs grows with
// how far it agrees with some word, and hardly with how many words there are.

import { OWN_ENTITIES } from '../entities.ts';
import { isWithin, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';

/** ASCII letters in lower case, every other byte as it is. */
const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));
export const WORD_BYTES_MIN = 2;
const ASCII = /^\p{ASCII}*$/u;

/** `words`: each of at least two bytes. */
export function wordsDetector(words: readonly string[]): Detector {
  const spellings = new Set(words.flatMap(spellingsOf).map((word) => loweredBytes(word).toString('latin1')));
  const sorted = [...spellings]
    .map((bytes) => Buffer.from(bytes, 'latin1'))
    .toSorted((one, other) => Buffer.compare(one, other));
  const longest = sorted.reduce((bytes, word) => Math.max(bytes, word.length), 0);
  const pairs = new Set(sorted.map((word) => pairOf(word[0] as number, word[1] as number)));
  return {
    entity: OWN_ENTITIES.words,
    anchors: [...pairs].flatMap(pairsInAnyCase),
    find: (bytes, at, start, end, hit) => at - 1 >= start && findWord(sorted, bytes, at - 1, end, hit),
    hold: (bytes, start, end) => holdWords(sorted, bytes, Math.max(start, end - longest), end),
  };
}

/** Letters beyond ASCII have no second case among bytes, and accents may be characters of their own. */
function spellingsOf(word: string): string[] {
  if (ASCII.test(word)) return [word];
  const first = String.fromCodePoint(word.codePointAt(0) as number);
  const cases = [word, word.toLowerCase(), word.toUpperCase(), first.toUpperCase() + word.slice(first.length)];
  return cases.flatMap((spelling) => [spelling.normalize('NFC'), spelling.normalize('NFD'), spelling]);
}

function loweredBytes(word: string): Buffer {
  const bytes = Buffer.from(word);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = LOWER[bytes[at] as number] as number;
  return bytes;
}

function pairsInAnyCase(pair: number): number[] {
  const cases = (byte: number) => (byte >= 0x61 && byte <= 0x7a ? [byte, byte - 0x20] : [byte]);
  return cases(pair & 0xff).flatMap((first) => cases(pair >> 8).map((second) => pairOf(first, second)));
}

/** The longest word that begins at `from` and ends where one can. */
function findWord(sorted: readonly Uint8Array[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  if (!isWordStart(bytes, from)) return false;
  let low = 0;
  let high = sorted.length;
  let wordEnd = -1;
  for (let to = from; low < high; to += 1) {
    const length = to - from;
    if (sorted[low]?.length === length) {
      if (isWordEnd(bytes, to, end)) wordEnd = to;
      low += 1;
    }
    if (to === end) break;
    const byte = LOWER[bytes[to] as number] as number;
    low = firstFrom(sorted, low, high, length, byte);
    high = firstFrom(sorted, low, high, length, byte + 1);
  }
  hit.start = from;
  hit.end = wordEnd;
  hit.isOpen = false;
  return wordEnd !== -1;
}

/** A whole word at the very end waits too: the next byte says whether it ends there. */
function holdWords(sorted: readonly Uint8Array[], bytes: Uint8Array, start: number, end: number): number {
  let from = start;
  while (from < end && !(isWordStart(bytes, from) && beginsWord(sorted, bytes, from, end))) from += 1;
  return from;
}

/** Whether bytes[from, end) is a word or the beginning of one. */
function beginsWord(sorted: readonly Uint8Array[], bytes: Uint8Array, from: number, end: number): boolean {
  let low = 0;
  let high = sorted.length;
  for (let to = from; to < end && low < high; to += 1) {
    if (sorted[low]?.length === to - from) low += 1;
    const byte = LOWER[bytes[to] as number] as number;
    low = firstFrom(sorted, low, high, to - from, byte);
    high = firstFrom(sorted, low, high, to - from, byte + 1);
  }
  return low < high;
}

/**
 * The first of sorted[low, high) whose byte at `depth` is `byte` or more; they are the same before it, and all longer.
 */
function firstFrom(sorted: readonly Uint8Array[], low: number, high: number, depth: number, byte: number): number {
  const byteOf = (index: number): number => (sorted[index] as Uint8Array)[depth] as number;
  if (low === high || byteOf(low) >= byte) return low;
  if (byteOf(high - 1) < byte) return high;
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (byteOf(middle) < byte) from = middle + 1;
    else to = middle;
  }
  return from;
}

function isWordStart(bytes: Uint8Array, from: number): boolean {
  return WORD[bytes[from] as number] !== 1 || !isWithin(WORD, bytes, from);
}

function isWordEnd(bytes: Uint8Array, to: number, end: number): boolean {
  return WORD[bytes[to - 1] as number] !== 1 || WORD[byteAt(bytes, to, end)] !== 1;
}
