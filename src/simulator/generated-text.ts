// Text that looks random and is not: the tokens a simulated model "says" follow from a seed, so the same input gets the
// same answer.

import { createHash } from 'node:crypto';

// Each entry is exactly one token of both o200k_base and cl100k_base wherever it stands, so that a reply's token count
// is also what a tokenizer counts in its text. A fifth of them are not ASCII: two-, three- and four-byte characters for
// relays to split.
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

/** A reply's first token has no space before it. */
const OPENINGS: readonly string[] = ['The', 'A', 'Every', 'Where', 'After', 'Before', 'Number', 'Paper'];

/** A seed for `generateTokens` from any bytes. */
export function seedFrom(bytes: Uint8Array): number {
  return createHash('sha256').update(bytes).digest().readUInt32LE(0);
}

/** An endless row of tokens fixed by its seed (mulberry32: 32 bits of state are plenty for word choice). */
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
