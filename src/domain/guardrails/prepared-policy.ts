// Prepares one version of a policy once for all stages, APIs and principals: its words, its patterns, and the values
// that it allows.

import { deserialize, serialize } from 'node:v8';
import { API_NAMES, type ApiName } from '../models/apis.ts';
import { PatternSet } from './detectors/patterns.ts';
import { type WordTable, wordTableInSlices } from './detectors/word-table.ts';
import { WordSearch } from './detectors/words.ts';
import { strengthOf } from './finding.ts';
import type { Policy, Rule, Stage } from './policy.ts';

/** A rule with the values that its policy allows. */
export interface CompiledRule {
  readonly rule: Rule;
  readonly allowedValues: ReadonlySet<string>;
  readonly allowedEmailDomains: ReadonlySet<string>;
}

/** The words of one policy. */
export interface CompiledWords {
  readonly search: WordSearch;
  /** By the rule's index in its policy. */
  readonly rules: readonly CompiledRule[];
}

/** The patterns of one policy. */
export interface CompiledPatterns {
  readonly set: PatternSet;
  /** By the pattern's index in the set. */
  readonly ruleOf: readonly CompiledRule[];
}

/** The part of a policy that is for a stage of an API. */
export interface PolicyInStage {
  readonly policy: Policy;
  readonly rules: readonly CompiledRule[];
  /**
   * For each entity, the strongest rule that asks for it. Weaker rules never count, since the values that a policy
   * allows are allowed in all of its rules.
   */
  readonly strongest: ReadonlyMap<string, CompiledRule>;
  /** null: none of the rules has words. */
  readonly words: CompiledWords | null;
  /** null: none of the rules has patterns. */
  readonly patterns: CompiledPatterns | null;
}

export class PreparedPolicy {
  /** All rules of the policy, in its order. */
  private readonly rules: readonly CompiledRule[];
  private readonly policy: Policy;
  private readonly table: WordTable | null;
  private packedBytes: PackedPolicy | null = null;
  private readonly stages = new Map<string, PolicyInStage>();
  /** By the indexes of the rules that apply: a policy has one or two such sets. */
  private readonly words = new Map<string, CompiledWords>();
  private readonly patterns = new Map<string, CompiledPatterns>();

  constructor(policy: Policy, table: WordTable | null) {
    const allowedValues = new Set(policy.allowedValues);
    const allowedEmailDomains = new Set(policy.allowedEmailDomains);
    this.rules = policy.rules.map((rule) => ({ rule, allowedValues, allowedEmailDomains }));
    this.policy = policy;
    this.table = table;
  }

  /** The policy for worker threads, which then have nothing to prepare. */
  get packed(): PackedPolicy {
    this.packedBytes ??= pack(this.policy, this.table);
    return this.packedBytes;
  }

  for(api: ApiName, stage: Stage): PolicyInStage {
    const name = `${api} ${stage}`;
    const known = this.stages.get(name) ?? this.make(api, stage);
    this.stages.set(name, known);
    return known;
  }

  private make(api: ApiName, stage: Stage): PolicyInStage {
    const places = [...this.policy.rules.entries()].flatMap(([place, { stages, apis }]) =>
      stages.includes(stage) && (apis === null || apis.has(api)) ? [place] : [],
    );
    const rules = places.map((place) => this.rules[place] as CompiledRule);
    return {
      policy: this.policy,
      rules,
      strongest: strongestByEntity(rules),
      words: this.wordsOf(places),
      patterns: this.patternsOf(places),
    };
  }

  private wordsOf(places: readonly number[]): CompiledWords | null {
    const { table } = this;
    const withWords = places.filter((place) => table?.wordRules.includes(place));
    if (table === null || withWords.length === 0) return null;
    return remembered(this.words, withWords, () => ({
      search: new WordSearch(table, withWords),
      rules: this.rules,
    }));
  }

  private patternsOf(places: readonly number[]): CompiledPatterns | null {
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

/** A policy in memory that all threads share, so that nothing is copied when a thread gets it. */
export interface PackedPolicy {
  /** Serialized, without its words. */
  readonly policy: Uint8Array<SharedArrayBuffer>;
  readonly table: WordTable | null;
}

function pack(policy: Policy, table: WordTable | null): PackedPolicy {
  const rules = policy.rules.map((rule) => ({ ...rule, words: [] }));
  const bytes = serialize({ ...policy, rules });
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return { policy: shared, table };
}

export function unpackPolicy(packed: PackedPolicy): Policy {
  const policy = deserialize(Buffer.from(packed.policy)) as Policy;
  prepared.set(policy, new PreparedPolicy(policy, packed.table));
  return policy;
}

export function strongestFirst(one: CompiledRule, other: CompiledRule): number {
  return strengthOf(other.rule.action) - strengthOf(one.rule.action);
}

function strongestByEntity(rules: readonly CompiledRule[]): ReadonlyMap<string, CompiledRule> {
  const strongest = new Map<string, CompiledRule>();
  for (const compiled of rules.toSorted(strongestFirst))
    for (const entity of compiled.rule.detect) if (!strongest.has(entity)) strongest.set(entity, compiled);
  return strongest;
}

function remembered<Made>(known: Map<string, Made>, places: readonly number[], make: () => Made): Made {
  const name = places.join(' ');
  const made = known.get(name) ?? make();
  known.set(name, made);
  return made;
}

const prepared = new WeakMap<Policy, PreparedPolicy>();

/** The prepared policy. If it is not prepared yet, all of the work is done at once. */
export function preparedOf(policy: Policy): PreparedPolicy {
  const known = prepared.get(policy);
  if (known !== undefined) return known;
  const slices = preparedInSlices(policy);
  let slice = slices.next();
  while (slice.done !== true) slice = slices.next();
  return slice.value;
}

/** Prepares a policy in slices of some tenths of a millisecond. */
function* preparedInSlices(policy: Policy): Generator<void, PreparedPolicy> {
  const known = prepared.get(policy);
  if (known !== undefined) return known;
  const made = new PreparedPolicy(policy, yield* wordTableInSlices(policy.rules));
  prepared.set(policy, made);
  return made;
}

/** Prepares a policy in slices; if it has words or patterns, for all stages and APIs, and packed. */
export function* preparedForUse(policy: Policy): Generator<void, void> {
  if (prepared.has(policy)) return;
  const made = yield* preparedInSlices(policy);
  if (policy.rules.every(({ words, patterns }) => words.length + patterns.length === 0)) return;
  for (const api of API_NAMES)
    for (const stage of ['input', 'output'] as const) {
      made.for(api, stage);
      yield;
    }
  void made.packed;
}
