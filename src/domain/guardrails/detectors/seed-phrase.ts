// Finds seed phrases of wallets: 12 to 24 English words of BIP-39 in a row, with their checksum. Off unless a rule
// names them, since every word of a text is looked up.

import { hash } from 'node:crypto';
import { bytesIn, classOf, complementOf, LETTER, runEnd, runStart, WORD } from './characters.ts';
import { byteAt, type Detector, type Hit, pairOf } from './detector.ts';
import { SEED_WORDS } from './seed-words.ts';

/** The numbers of words that a phrase can have. A word has eleven bits; one bit in 33 belongs to the checksum. */
const COUNTS = [24, 21, 18, 15, 12];
const WORD_BITS = 11;
/**
 * How many words of the surrounding sentence, before and after a phrase, may look like words of the phrase; the finding
 * includes them.
 */
const WORDS_AROUND_MAX = 2;
/** A longer row is a list. */
const WORDS_MAX = 24 + 2 * WORDS_AROUND_MAX;
const WORD_BYTES_MIN = 3;
const WORD_BYTES_MAX = 8;
const SEPARATOR = classOf(' ,\t\r\n');
const SEPARATOR_BYTES_MAX = 3;

/** Keyed by the first four letters, five bits each. */
const indexByLetters = new Map(SEED_WORDS.map((word, index) => [keyOf(Buffer.from(word), 0, word.length), index]));

function keyOf(bytes: Uint8Array, from: number, to: number): number {
  let key = 0;
  for (let at = from; at < from + 4; at += 1) key = key * 32 + (at < to ? (bytes[at] as number) & 31 : 0);
  return key;
}

/** The BIP-39 index of the word bytes[from, to); -1: it is not on the list. */
function wordAt(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < WORD_BYTES_MIN || to - from > WORD_BYTES_MAX) return -1;
  const index = indexByLetters.get(keyOf(bytes, from, to));
  if (index === undefined) return -1;
  const word = SEED_WORDS[index] as string;
  if (word.length !== to - from) return -1;
  for (let at = 0; at < word.length; at += 1)
    if (((bytes[from + at] as number) | 0x20) !== word.charCodeAt(at)) return -1;
  return index;
}

const indexes = new Uint16Array(WORDS_MAX + 1);
let lastEnd = 0;

/** Reads the words in a row from `at` on into `indexes` and `lastEnd`; returns their number, at most WORDS_MAX + 1. */
function readWords(bytes: Uint8Array, at: number, end: number): number {
  let count = 0;
  for (let from = at; count <= WORDS_MAX; count += 1) {
    const to = runEnd(LETTER, bytes, from, end, WORD_BYTES_MAX + 1);
    const index = WORD[byteAt(bytes, to, end)] === 1 ? -1 : wordAt(bytes, from, to);
    if (index === -1) break;
    indexes[count] = index;
    lastEnd = to;
    from = runEnd(SEPARATOR, bytes, to, end, SEPARATOR_BYTES_MAX);
    // No separator follows, so there is no next word.
    if (from === to) return count + 1;
  }
  return count;
}

/** Where the word before `to` and its separator begins; -1: there is no word of the list. */
function wordBefore(bytes: Uint8Array, to: number, start: number): number {
  const wordEnd = runStart(SEPARATOR, bytes, to, start, SEPARATOR_BYTES_MAX);
  if (wordEnd === to) return -1;
  const from = runStart(LETTER, bytes, wordEnd, start, WORD_BYTES_MAX + 1);
  if (from > start && WORD[bytes[from - 1] as number] === 1) return -1;
  return wordAt(bytes, from, wordEnd) === -1 ? -1 : from;
}

/** `at` must be the first word of a row. */
function findSeedPhrase(bytes: Uint8Array, at: number, start: number, end: number, hit: Hit): boolean {
  const firstEnd = runEnd(LETTER, bytes, at, end, WORD_BYTES_MAX + 1);
  if (wordAt(bytes, at, firstEnd) === -1 || wordBefore(bytes, at, start) !== -1) return false;
  const found = readWords(bytes, at, end);
  if (found > WORDS_MAX || !COUNTS.some((count) => hasPhrase(found, count))) return false;
  hit.start = at;
  hit.end = lastEnd;
  hit.isOpen = false;
  return true;
}

/** Whether `count` of the `found` words are a phrase. */
function hasPhrase(found: number, count: number): boolean {
  const around = found - count;
  for (let first = Math.max(0, around - WORDS_AROUND_MAX); first <= Math.min(around, WORDS_AROUND_MAX); first += 1)
    if (hasChecksum(first, count)) return true;
  return false;
}

/** The bits of up to 24 words, and one more byte for the bits that do not fill a byte. */
const packed = Buffer.alloc((24 * WORD_BITS) / 8 + 1);

/** Whether the last bits of the words are the first bits of the SHA-256 of the others. */
function hasChecksum(first: number, count: number): boolean {
  let to = 0;
  let bits = 0;
  let left = 0;
  for (let at = first; at < first + count; at += 1) {
    bits = (bits << WORD_BITS) | (indexes[at] as number);
    left += WORD_BITS;
    for (; left >= 8; to += 1) {
      left -= 8;
      packed[to] = bits >> left;
    }
    bits &= (1 << left) - 1;
  }
  packed[to] = bits << (8 - left);
  const checksumBits = count / 3;
  const entropyBytes = (count / 3) * 4;
  const sum = hash('sha256', packed.subarray(0, entropyBytes), 'buffer')[0] as number;
  return sum >> (8 - checksumBits) === (packed[entropyBytes] as number) >> (8 - checksumBits);
}

/** Holds from the beginning of the row of words at the end, whose last word may be incomplete. */
function holdSeedPhrase(bytes: Uint8Array, start: number, end: number): number {
  const begun = runStart(LETTER, bytes, end, start, WORD_BYTES_MAX + 1);
  if (end - begun > WORD_BYTES_MAX || (begun > start && begun < end && WORD[bytes[begun - 1] as number] === 1))
    return end;
  let from = begun;
  for (let count = 0; count <= WORDS_MAX; count += 1) {
    const before = wordBefore(bytes, from, start);
    if (before === -1) return from;
    from = before;
  }
  // A row this long is a list, not a phrase.
  return end;
}

const BEFORE = bytesIn(complementOf(WORD));

export const seedPhrase: Detector = {
  entity: 'seed_phrase',
  anchors: bytesIn(LETTER).flatMap((letter) => BEFORE.map((before) => pairOf(before, letter))),
  find: findSeedPhrase,
  hold: holdSeedPhrase,
};
