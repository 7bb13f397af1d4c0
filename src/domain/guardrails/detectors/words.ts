// Looks for the words of a policy's rules: whole words, in upper or lower case. The words are sorted by their bytes, so
// the words that begin like the text are one range, and each further byte of the text makes the range smaller. The cost
// grows with how far the text agrees with some word, and hardly with the number of words or rules.

import { WORD } from './characters.ts';
import { byteAt } from './detector.ts';
import { isWordStart, LOWER, type WordTable } from './word-table.ts';

export class WordSearch {
  /**
   * The result of the last `find`: the rules that have a word, and where each word ends. Only the first entries count,
   * as many as `find` returned.
   */
  readonly foundRules: number[] = [];
  readonly foundEnds: number[] = [];
  private readonly table: WordTable;
  /** By rule: 1 if its words are looked for. */
  private readonly isActive: Uint8Array;
  /** For each spelling, how many of those before it are looked for; null: all are. */
  private readonly activeBefore: Int32Array | null;
  /** By rule: 1 if the search has found a longer word of the rule. */
  private readonly hasLonger: Uint8Array;
  /** The spellings that begin at the place and end where a word can, the shortest first. */
  private readonly ended: number[] = [];

  /** `rules`: the rules whose words are looked for, by their indexes in the policy. */
  constructor(table: WordTable, rules: readonly number[]) {
    this.table = table;
    this.isActive = new Uint8Array(Math.max(...table.wordRules) + 1);
    this.hasLonger = new Uint8Array(this.isActive.length);
    for (const rule of rules) this.isActive[rule] = 1;
    this.activeBefore = table.wordRules.every((rule) => this.isActive[rule] === 1) ? null : this.countActive();
  }

  private countActive(): Int32Array {
    const { rules, ruleStarts } = this.table;
    const before = new Int32Array(ruleStarts.length);
    for (let index = 0; index + 1 < ruleStarts.length; index += 1) {
      let isActive = 0;
      for (let at = ruleStarts[index] as number; at < (ruleStarts[index + 1] as number); at += 1)
        isActive |= this.isActive[rules[at] as number] as number;
      before[index + 1] = (before[index] as number) + isActive;
    }
    return before;
  }

  get looksPerByte(): number {
    return this.table.looksPerByte;
  }

  get pairs(): Uint16Array {
    return this.table.pairs;
  }

  /** Finds each rule's longest whole word that begins at `from`; returns how many rules have one. */
  find(bytes: Uint8Array, from: number, end: number): number {
    if (!isWordStart(bytes, from)) return 0;
    this.ended.length = 0;
    this.agrees(bytes, from, end, this.ended);
    return this.ended.length === 0 ? 0 : this.rulesOfEnded(from);
  }

  private rulesOfEnded(from: number): number {
    const { ended, hasLonger, table } = this;
    if (ended.length > 1) hasLonger.fill(0);
    let count = 0;
    for (let place = ended.length - 1; place >= 0; place -= 1) {
      const index = ended[place] as number;
      const to = from + this.lengthOf(index);
      for (let at = table.ruleStarts[index] as number; at < (table.ruleStarts[index + 1] as number); at += 1) {
        const rule = table.rules[at] as number;
        if (this.isActive[rule] === 0 || (ended.length > 1 && hasLonger[rule] === 1)) continue;
        hasLonger[rule] = 1;
        this.foundRules[count] = rule;
        this.foundEnds[count] = to;
        count += 1;
      }
    }
    return count;
  }

  /**
   * The first byte of a suffix of bytes[start, end) that is a word or the beginning of one. A whole word at the very
   * end waits, too: the next byte says whether it ends there.
   */
  hold(bytes: Uint8Array, start: number, end: number): number {
    let from = Math.max(start, end - this.table.longest);
    while (from < end && !(isWordStart(bytes, from) && this.agrees(bytes, from, end, null))) from += 1;
    return from;
  }

  /**
   * Whether bytes[from, end) is a word or the beginning of one. The whole words found on the way are added to `ended`.
   */
  private agrees(bytes: Uint8Array, from: number, end: number, ended: number[] | null): boolean {
    let low = 0;
    let high = this.table.starts.length - 1;
    let to = from;
    for (; this.isAny(low, high); to += 1) {
      const isWhole = this.lengthOf(low) === to - from;
      if (isWhole && ended !== null && isWordEnd(bytes, to, end)) ended.push(low);
      if (to === end) return true;
      if (isWhole) low += 1;
      const byte = LOWER[bytes[to] as number] as number;
      low = this.firstFrom(low, high, to - from, byte);
      high = this.firstFrom(low, high, to - from, byte + 1);
    }
    return false;
  }

  /** Whether some of the spellings [low, high) are looked for. */
  private isAny(low: number, high: number): boolean {
    const { activeBefore } = this;
    return low < high && (activeBefore === null || activeBefore[low] !== activeBefore[high]);
  }

  private lengthOf(index: number): number {
    return (this.table.starts[index + 1] as number) - (this.table.starts[index] as number);
  }

  /** The first of [low, high) whose byte at `depth` is `byte` or more; they are the same before it, and all longer. */
  private firstFrom(low: number, high: number, depth: number, byte: number): number {
    const { bytes, starts } = this.table;
    if (low === high || (bytes[(starts[low] as number) + depth] as number) >= byte) return low;
    if ((bytes[(starts[high - 1] as number) + depth] as number) < byte) return high;
    let [from, to] = [low, high];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((bytes[(starts[middle] as number) + depth] as number) < byte) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function isWordEnd(bytes: Uint8Array, to: number, end: number): boolean {
  return WORD[bytes[to - 1] as number] !== 1 || WORD[byteAt(bytes, to, end)] !== 1;
}
