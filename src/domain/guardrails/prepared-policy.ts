// What is made of one version of a policy, once, for every stage, API and principal that it is for: its words, its
// patterns, and what it lets through.

import { PatternSet } from './detectors/patterns.ts';
import { type WordTable, wordTableInSlices } from './detectors/word-table.ts';
import { WordSearch } from './detectors/words.ts';
import type { Policy, Rule } from './policy.ts';

/** A rule with what its policy lets through. */
export interface CompiledRule {
  readonly rule: Rule;
  readonly allowedValues: ReadonlySet<string>;
  readonly allowedEmailDomains: ReadonlySet<string>;
}

/** The words of one policy. */
export interface CompiledWords {
  readonly search: WordSearch;
  /** By the rule's place in its policy. */
  readonly rules: readonly CompiledRule[];
}

/** The patterns of one policy. */
export interface CompiledPatterns {
  readonly set: PatternSet;
  /** By the pattern's index in the set. */
  readonly ruleOf: readonly CompiledRule[];
}

export class PreparedPolicy {
  /** All of the policy's, in its order. */
  readonly rules: readonly CompiledRule[];
  private readonly table: WordTable | null;
  /** By the places of the rules: a policy has one or two such sets. */
  private readonly words = new Map<string, CompiledWords>();
  private readonly patterns = new Map<string, CompiledPatterns>();

  constructor(policy: Policy, table: WordTable | null) {
    const allowedValues = new Set(policy.allowedValues);
    const allowedEmailDomains = new Set(policy.allowedEmailDomains);
    this.rules = policy.rules.map((rule) => ({ rule, allowedValues, allowedEmailDomains }));
    this.table = table;
  }

  /** Of the rules at these places; null: none has words. */
  wordsOf(places: readonly number[]): CompiledWords | null {
    const { table } = this;
    const withWords = places.filter((place) => table?.wordRules.includes(place));
    if (table === null || withWords.length === 0) return null;
    return remembered(this.words, withWords, () => ({
      search: new WordSearch(table, withWords),
      rules: this.rules,
    }));
  }

  /** Of the rules at these places; null: none has patterns. */
  patternsOf(places: readonly number[]): CompiledPatterns | null {
    const withPatterns = places.filter((place) => (this.rules[place]?.rule.patterns.length ?? 0) > 0);
    if (withPatterns.length === 0) return null;
    return remembered(this.patterns, withPatterns, () => {
      const found = withPatterns
        .map((place) => this.rules[place] as CompiledRule)
        .flatMap((compiled) => compiled.rule.patterns.map((pattern) => ({ compiled, pattern })));
      return {
        set: new PatternSet(found.map(({ pattern }) => pattern)),
        ruleOf: found.map(({ compiled }) => compiled),
      };
    });
  }
}

function remembered<Made>(known: Map<string, Made>, places: readonly number[], make: () => Made): Made {
  const name = places.join(' ');
  const made = known.get(name) ?? make();
  known.set(name, made);
  return made;
}

const prepared = new WeakMap<Policy, PreparedPolicy>();

/** In one go where it has not been made before. */
export function preparedOf(policy: Policy): PreparedPolicy {
  const known = prepared.get(policy);
  if (known !== undefined) return known;
  const slices = preparedInSlices(policy);
  let slice = slices.next();
  while (slice.done !== true) slice = slices.next();
  return slice.value;
}

/** Makes it a slice of about a millisecond at a time. */
export function* preparedInSlices(policy: Policy): Generator<void, PreparedPolicy> {
  const made = prepared.get(policy) ?? new PreparedPolicy(policy, yield* wordTableInSlices(policy.rules));
  prepared.set(policy, made);
  return made;
}
