// The words of a policy's rules as bytes, sorted, each with the rules that look for it. Made once for each version of a
// policy, a slice at a time: ten thousand words take tens of milliseconds.

import type { Rule } from '../policy.ts';
import { isWithin, WORD } from './characters.ts';
import { pairOf } from './detector.ts';

/** ASCII letters in lower case, every other byte as it is. */
export const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));
/** Words are looked up by their first two bytes, so shorter ones cannot be found. */
export const WORD_BYTES_MIN = 2;
const ASCII = /^\p{ASCII}*$/u;
/** How many words are spelt, and how many spellings are measured, and sorted or copied, before the generator pauses. */
const SPELT_AT_ONCE = 64;
const MEASURED_AT_ONCE = 256;
const SORTED_AT_ONCE = 1_024;

/** Plain data, in memory that all threads share: ten thousand words with accents are more than a megabyte. */
export interface WordTable {
  /** Every spelling in lower case, sorted and concatenated. */
  readonly bytes: Uint8Array;
  /** Where each spelling begins, and the end of the last. */
  readonly starts: Int32Array;
  /** The rules that look for each spelling, by their indexes in the policy, concatenated. */
  readonly rules: Uint16Array;
  /** Where the rules of each spelling begin, and the end of the last. */
  readonly ruleStarts: Int32Array;
  /** The rules that have words. */
  readonly wordRules: readonly number[];
  /** Pairs of bytes with which words begin, in upper and lower case. */
  readonly pairs: Uint16Array;
  readonly longest: number;
  /**
   * The most often that a byte of a text is looked at: once for every word that can begin within another one (more
   * often the more words there are to search), and once for each rule whose words begin alike.
   */
  readonly looksPerByte: number;
}

/** null: no rule has words. */
export function* wordTableInSlices(rules: readonly Rule[]): Generator<void, WordTable | null> {
  const rulesOf = yield* spellings(rules);
  if (rulesOf.size === 0) return null;
  const sorted = yield* sortedInSlices([...rulesOf.keys()]);
  const bytesOfAll = sorted.reduce((sum, spelling) => sum + spelling.length, 0);
  const rulesOfAll = sorted.reduce((sum, spelling) => sum + (rulesOf.get(spelling) as number[]).length, 0);
  const bytes = Buffer.from(new SharedArrayBuffer(bytesOfAll));
  const starts = sharedInt32(sorted.length + 1);
  const found = new Uint16Array(new SharedArrayBuffer(rulesOfAll * Uint16Array.BYTES_PER_ELEMENT));
  const ruleStarts = sharedInt32(sorted.length + 1);
  for (const [index, spelling] of sorted.entries()) {
    const own = rulesOf.get(spelling) as number[];
    bytes.write(spelling, starts[index] as number, 'latin1');
    found.set(own, ruleStarts[index]);
    starts[index + 1] = (starts[index] as number) + spelling.length;
    ruleStarts[index + 1] = (ruleStarts[index] as number) + own.length;
    if (index % SORTED_AT_ONCE === 0) yield;
  }
  const pairs = pairsOf(bytes, starts);
  const wordRules = rules.flatMap(({ words }, index) => (words.length > 0 ? [index] : []));
  const table = { bytes: new Uint8Array(bytes.buffer), starts, rules: found, ruleStarts, wordRules, pairs };
  return { ...table, ...(yield* measured(table)) };
}

function sharedInt32(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
}

/** Each spelling, its bytes as a latin1 string, with the rules that look for it. */
function* spellings(rules: readonly Rule[]): Generator<void, Map<string, number[]>> {
  const rulesOf = new Map<string, number[]>();
  let spelt = 0;
  for (const [rule, { words }] of rules.entries())
    for (const word of words) {
      for (const spelling of spellingsOf(word)) {
        const name = loweredBytes(spelling).toString('latin1');
        if (name.length < WORD_BYTES_MIN) continue;
        const known = rulesOf.get(name);
        if (known === undefined) rulesOf.set(name, [rule]);
        else if (known.at(-1) !== rule) known.push(rule);
      }
      spelt += 1;
      if (spelt % SPELT_AT_ONCE === 0) yield;
    }
  return rulesOf;
}

/**
 * The spellings of a word that are looked for. A byte table cannot fold the case of letters beyond ASCII, and accents
 * may be characters of their own, so such words get several.
 */
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

/** Merge sort: short lists are sorted and then merged two by two. */
function* sortedInSlices(texts: readonly string[]): Generator<void, readonly string[]> {
  let lists: string[][] = [];
  for (let at = 0; at < texts.length; at += SORTED_AT_ONCE) {
    lists.push(texts.slice(at, at + SORTED_AT_ONCE).sort());
    yield;
  }
  while (lists.length > 1) {
    const merged: string[][] = [];
    for (let at = 0; at < lists.length; at += 2)
      merged.push(yield* mergedInSlices(lists[at] as string[], lists[at + 1] ?? []));
    lists = merged;
  }
  return lists[0] ?? [];
}

function* mergedInSlices(one: readonly string[], other: readonly string[]): Generator<void, string[]> {
  const merged: string[] = [];
  let [at, otherAt] = [0, 0];
  while (at < one.length || otherAt < other.length) {
    const isOne = otherAt === other.length || (at < one.length && (one[at] as string) < (other[otherAt] as string));
    merged.push((isOne ? one[at++] : other[otherAt++]) as string);
    if (merged.length % SORTED_AT_ONCE === 0) yield;
  }
  return merged;
}

function pairsOf(bytes: Uint8Array, starts: Int32Array): Uint16Array {
  const pairs = new Set<number>();
  for (const start of starts.subarray(0, -1))
    for (const first of inAnyCase(bytes[start] as number))
      for (const second of inAnyCase(bytes[start + 1] as number)) pairs.add(pairOf(first, second));
  return Uint16Array.from(pairs);
}

function inAnyCase(byte: number): readonly number[] {
  return byte >= 0x61 && byte <= 0x7a ? [byte, byte - 0x20] : [byte];
}

function* measured({
  bytes,
  starts,
  ruleStarts,
  pairs,
}: Pick<WordTable, 'bytes' | 'starts' | 'ruleStarts' | 'pairs'>): Generator<
  void,
  Pick<WordTable, 'longest' | 'looksPerByte'>
> {
  const isBeginning = new Uint8Array(256 * 256);
  for (const pair of pairs) isBeginning[pair] = 1;
  let [longest, begunMax, rulesMax] = [0, 0, 0];
  /** The spellings that are a prefix of the current one, the shortest first. */
  const outer: { readonly start: number; readonly end: number; readonly rules: number }[] = [];
  for (let index = 0; index + 1 < starts.length; index += 1) {
    const [start, end] = [starts[index] as number, starts[index + 1] as number];
    longest = Math.max(longest, end - start);
    begunMax = Math.max(begunMax, begunWithin(bytes, start, end, isBeginning));
    while (outer.length > 0 && !beginsWith(bytes, start, end, outer.at(-1) as (typeof outer)[number])) outer.pop();
    const own = (ruleStarts[index + 1] as number) - (ruleStarts[index] as number);
    outer.push({ start, end, rules: own + (outer.at(-1)?.rules ?? 0) });
    rulesMax = Math.max(rulesMax, outer.at(-1)?.rules ?? 0);
    if (index % MEASURED_AT_ONCE === 0) yield;
  }
  const searches = 1 + Math.log2(starts.length) / 4;
  return { longest, looksPerByte: Math.ceil(begunMax * searches) + rulesMax };
}

/** At how many places within a word another word can begin. */
function begunWithin(bytes: Uint8Array, start: number, end: number, isBeginning: Uint8Array): number {
  let begun = 1;
  for (let at = start + 1; at < end; at += 1) {
    const isLast = at + 1 === end;
    const canBegin = isLast || isBeginning[pairOf(bytes[at] as number, bytes[at + 1] as number)] === 1;
    if (canBegin && isWordStart(bytes, at)) begun += 1;
  }
  return begun;
}

function beginsWith(bytes: Uint8Array, start: number, end: number, outer: { start: number; end: number }): boolean {
  const length = outer.end - outer.start;
  if (length > end - start) return false;
  for (let at = 0; at < length; at += 1) if (bytes[start + at] !== bytes[outer.start + at]) return false;
  return true;
}

export function isWordStart(bytes: Uint8Array, from: number): boolean {
  return WORD[bytes[from] as number] !== 1 || !isWithin(WORD, bytes, from);
}
