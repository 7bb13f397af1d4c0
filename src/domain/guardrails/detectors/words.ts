// The detector of a rule's own words: whole words, in upper or lower case.

import { OWN_ENTITIES } from '../entities.ts';
import { WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';

/** ASCII letters in lower case, every other byte as it is. */
const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));
export const WORD_BYTES_MIN = 2;

/** `words`: each of at least two bytes. */
export function wordsDetector(words: readonly string[]): Detector {
  const lowered = words.map((word) => Buffer.from(word).map((byte) => LOWER[byte] as number));
  // The longest first: `Falcon Heavy` before `Falcon`.
  const sorted = lowered.toSorted((one, other) => other.length - one.length);
  const byPair = new Map<number, Uint8Array[]>();
  for (const word of sorted) {
    const pair = pairOf(word[0] as number, word[1] as number);
    byPair.set(pair, [...(byPair.get(pair) ?? []), word]);
  }
  return {
    entity: OWN_ENTITIES.words,
    anchors: [...byPair.keys()].flatMap(pairsInAnyCase),
    find: (bytes, at, start, end, hit) => {
      const from = at - 1;
      if (from < start) return false;
      const pair = pairOf(LOWER[bytes[from] as number] as number, LOWER[bytes[at] as number] as number);
      return findWord(byPair.get(pair) ?? [], bytes, from, end, hit);
    },
    hold: (bytes, start, end) => holdWords(sorted, bytes, start, end),
  };
}

function pairsInAnyCase(pair: number): number[] {
  const cases = (byte: number) => (byte >= 0x61 && byte <= 0x7a ? [byte, byte - 0x20] : [byte]);
  return cases(pair >> 8).flatMap((first) => cases(pair & 0xff).map((second) => pairOf(first, second)));
}

function findWord(words: readonly Uint8Array[], bytes: Uint8Array, from: number, end: number, hit: Hit): boolean {
  if (!isBoundary(bytes, from, from > 0 ? (bytes[from - 1] as number) : 0x20)) return false;
  for (const word of words) {
    const to = from + word.length;
    if (to > end || matchedBytes(word, bytes, from, end) < word.length) continue;
    if (!isBoundary(bytes, to - 1, byteAt(bytes, to, end))) continue;
    hit.start = from;
    hit.end = to;
    hit.isOpen = false;
    return true;
  }
  return false;
}

/** Whether the byte beside the word's first or last one lets it end there. */
function isBoundary(bytes: Uint8Array, edge: number, beside: number): boolean {
  return WORD[bytes[edge] as number] !== 1 || WORD[beside] !== 1;
}

function matchedBytes(word: Uint8Array, bytes: Uint8Array, from: number, end: number): number {
  const limit = Math.min(word.length, end - from);
  let matched = 0;
  while (matched < limit && LOWER[bytes[from + matched] as number] === word[matched]) matched += 1;
  return matched;
}

/** A whole word at the very end waits too: the next byte says whether it ends there. */
function holdWords(words: readonly Uint8Array[], bytes: Uint8Array, start: number, end: number): number {
  for (let from = Math.max(start, end - (words[0]?.length ?? 0)); from < end; from += 1) {
    if (words.some((word) => end - from <= word.length && matchedBytes(word, bytes, from, end) === end - from))
      return from;
  }
  return end;
}
