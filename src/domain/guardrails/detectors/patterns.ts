// The patterns of rules: regular expressions that RE2 in JavaScript runs in linear time, whatever the pattern and the
// text. One automaton for all patterns says which of them occur at all; only those are then searched for.

import { RE2JS, RE2Set } from 're2js';
import { type ByteClass, holdByClass } from './characters.ts';

/** Codes of the instructions of an RE2 program. */
const OP_EMPTY_WIDTH = 4;
const OP_RUNE = 8;
const OP_RUNE_MAX = 11;
const OP_RUNE_ANY = 10;
const OP_RUNE_ANY_NOT_NL = 11;
/**
 * The bits of an empty-width instruction for `\b` and `\B`. Its other bits are for the begin and end of lines and
 * texts.
 */
const WORD_BOUNDARIES = 0x30;

/** Linear time still grows with the pattern: 16 of `.{1,900}a` took eight seconds over 4 KB. */
const INSTRUCTIONS_MAX = 256;
export const TOO_LARGE = 'is too large: it repeats too much';

interface Instruction {
  readonly op: number;
  readonly runes: Int32Array;
  readonly arg: number;
}

export interface PatternMatch {
  /** The pattern's index in the list that was compiled. */
  readonly index: number;
  readonly start: number;
  readonly end: number;
}

/** An escape with its braces, a class, the opening of a group, a repetition with its counts, or a character. */
const PIECES =
  /\\(?:[pPx]\{[^}]*\}|[^])|\[\^?\]?(?:\\[^]|\[:\^?[a-z]+:\]|[^\]\\])*\]|\((?:\?[^:)]*:?)?|\{(\d+)(?:,(\d*))?\}|[^]/gu;
/** Unicode properties, and ranges that end beyond ASCII: one takes up to 4 ms to compile, any other class a few µs. */
const WIDE_CLASS = /\\[pP]|-(?:\\x|\P{ASCII})/gu;

/**
 * About how many instructions a pattern has once its repetitions are written out. This is known before the pattern is
 * compiled: a thousand characters can become a million instructions, which take a second.
 */
export function writtenSizeOf(regex: string): number {
  const groups: { size: number; last: number }[] = [{ size: 0, last: 0 }];
  for (const [piece, least, most] of regex.matchAll(PIECES)) {
    const group = groups.at(-1) as (typeof groups)[number];
    if (least !== undefined) {
      const times = Math.max(1, Number(least), Number(most ?? 0));
      group.size += group.last * (times - 1);
      group.last *= times;
    } else if (piece.startsWith('(')) {
      groups.push({ size: 1, last: 0 });
    } else if (piece === ')' && groups.length > 1) {
      groups.pop();
      const outer = groups.at(-1) as (typeof groups)[number];
      outer.size += group.size;
      outer.last = group.size;
    } else {
      group.size += 1;
      group.last = 1;
    }
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}

export function countWideClasses(regex: string): number {
  return regex.match(WIDE_CLASS)?.length ?? 0;
}

export interface CheckedPattern {
  /** null: the pattern can be used; otherwise what is wrong with it. */
  readonly problem: string | null;
  /** The number of instructions that it compiles to, which is its cost in the worst text. 0: it does not compile. */
  readonly size: number;
}

/**
 * Compiles the pattern. The caller must have refused, by `writtenSizeOf`, a pattern that is too large for the event
 * loop.
 */
export function checkPattern(regex: string): CheckedPattern {
  try {
    const compiled = RE2JS.compile(regex);
    return { problem: problemOf(compiled), size: compiled.programSize() };
  } catch (fault) {
    const reason = fault instanceof Error ? fault.message : String(fault);
    return { problem: `must be a regular expression of RE2: ${reason}`, size: 0 };
  }
}

function problemOf(compiled: RE2JS): string | null {
  if (compiled.programSize() > INSTRUCTIONS_MAX) return TOO_LARGE;
  if (compiled.test('')) return 'must not match an empty text';
  const isAnchored = instructionsOf(compiled).some(
    ({ op, arg }) => op === OP_EMPTY_WIDTH && (arg & ~WORD_BOUNDARIES) !== 0,
  );
  return isAnchored ? 'must have no ^ or $: a text is screened in pieces' : null;
}

export class PatternSet {
  /** The number of instructions of all patterns, which is their cost in the worst text. */
  readonly size: number;
  private readonly gate = new RE2Set();
  private readonly patterns: readonly {
    readonly regex: RE2JS;
    readonly maxLength: number;
    readonly characters: ByteClass;
  }[];

  /** Each pattern must have passed `checkPattern`. */
  constructor(patterns: readonly { readonly regex: string; readonly maxLength: number }[]) {
    for (const { regex } of patterns) this.gate.add(regex);
    this.gate.compile();
    this.patterns = patterns.map(({ regex, maxLength }) => {
      const compiled = RE2JS.compile(regex);
      return { regex: compiled, maxLength, characters: charactersOf(compiled) };
    });
    this.size = this.patterns.reduce((sum, { regex }) => sum + regex.programSize(), 0);
  }

  /** Calls `onMatch` until it returns false. The byte before `start` is the context of `\b`. */
  find(bytes: Uint8Array, start: number, end: number, onMatch: (match: PatternMatch) => boolean): void {
    const offset = Math.max(0, start - 1);
    const text = bytes.subarray(offset, end);
    for (const index of this.gate.match(text)) {
      const { regex, maxLength } = this.patterns[index] as (typeof this.patterns)[number];
      const matcher = regex.matcher(text);
      for (let isFound = matcher.find(start - offset); isFound; isFound = matcher.find()) {
        const match = { index, start: offset + matcher.start(), end: offset + matcher.end() };
        if (match.end - match.start > maxLength || match.end === match.start) continue;
        if (!onMatch(match)) return;
      }
    }
  }

  /** The first byte of a suffix that could still become a match. */
  hold(bytes: Uint8Array, start: number, end: number): number {
    return this.patterns.reduce(
      (from, { characters, maxLength }) =>
        Math.min(from, holdByClass(characters, characters, maxLength)(bytes, start, end)),
      end,
    );
  }
}

function instructionsOf(regex: RE2JS): readonly Instruction[] {
  return regex.re2().prog.inst as readonly Instruction[];
}

/** Every byte that a match can contain. If it can contain any character beyond ASCII, all bytes beyond ASCII count. */
function charactersOf(regex: RE2JS): ByteClass {
  const characters = new Uint8Array(256);
  for (const { op, runes, arg } of instructionsOf(regex)) {
    if (op < OP_RUNE || op > OP_RUNE_MAX) continue;
    const isAny = op === OP_RUNE_ANY || op === OP_RUNE_ANY_NOT_NL;
    const ranges = isAny ? [0, 0x10ffff] : runes.length === 1 ? [runes[0] as number, runes[0] as number] : [...runes];
    for (let index = 0; index < ranges.length; index += 2) {
      addRange(characters, ranges[index] as number, ranges[index + 1] as number);
    }
    // A letter that is compared without its case may have forms beyond ASCII, too.
    if (arg === 1) addOtherCases(characters);
  }
  return characters;
}

function addRange(characters: ByteClass, from: number, to: number): void {
  for (let rune = from; rune <= Math.min(to, 0x7f); rune += 1) characters[rune] = 1;
  if (to > 0x7f) characters.fill(1, 0x80);
}

function addOtherCases(characters: ByteClass): void {
  characters.fill(1, 0x80);
  for (let upper = 0x41; upper <= 0x5a; upper += 1) {
    if (characters[upper] === 1 || characters[upper + 0x20] === 1) {
      characters[upper] = 1;
      characters[upper + 0x20] = 1;
    }
  }
}
