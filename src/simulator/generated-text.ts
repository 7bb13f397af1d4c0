// Generates text that looks random but follows from a seed, so the same input gets the same answer.

import { createHash } from 'node:crypto';

// Each entry is exactly one token of both o200k_base and cl100k_base in any position, so a tokenizer counts in a
// reply's text exactly its tokens. A fifth of the entries are not ASCII, so that relays have two-, three- and four-byte
// characters to split.
const VOCABULARY: readonly string[] = [
  ' the',
  ' a',
  ' of',
  ' and',
  ' gate',
  ' road',
  ' price',
  ' river',
  ' light',
  ' water',
  ' open',
  ' small',
  ' count',
  ' after',
  ' before',
  ' every',
  ' number',
  ' paper',
  ' ledger',
  ' coin',
  ' bridge',
  ' stone',
  ' answer',
  ' question',
  ' morning',
  ' north',
  ' winter',
  ' where',
  ' under',
  ' again',
  ' quiet',
  ' garden',
  ' window',
  ' café',
  ' été',
  ' mañana',
  ' très',
  ' déjà',
  ' это',
  ' что',
  ' как',
  ' の',
  ' €',
  ' —',
  ' →',
  ' 😀',
  ' 😉',
  ' 🙂',
];

/** The first token of a reply has no leading space. */
const OPENINGS: readonly string[] = ['The', 'A', 'Every', 'Where', 'After', 'Before', 'Number', 'Paper'];

/** Derives a seed for `generateTokens` from any bytes. */
export function seedFrom(bytes: Uint8Array): number {
  return createHash('sha256').update(bytes).digest().readUInt32LE(0);
}

/**
 * An endless sequence of tokens that depends only on the seed (mulberry32; 32 bits of state are enough for choosing
 * words).
 */
export function* generateTokens(seed: number): Generator<string, never> {
  let state = seed >>> 0;
  let words = OPENINGS;
  for (;;) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    const fraction = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    yield words[Math.floor(fraction * words.length)] ?? ' the';
    words = VOCABULARY;
  }
}
