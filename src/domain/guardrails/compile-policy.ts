// Makes of the policies in force for one principal and one API what the scan needs: the table of anchors, and for each
// entity the rules that look for it, the strongest first. What takes long is of one policy, and made in
// prepared-policy.ts.

import type { ApiName } from '../models/apis.ts';
import type { Detector } from './detectors/detector.ts';
import { DETECTORS } from './detectors/detectors.ts';
import { isOpening, OPENINGS } from './detectors/digit-groups.ts';
import { strengthOf } from './finding.ts';
import type { External, OnFailure, Policy, Stage } from './policy.ts';
import {
  type CompiledPatterns,
  type CompiledRule,
  type CompiledWords,
  type PreparedPolicy,
  preparedOf,
} from './prepared-policy.ts';

export interface CompiledExternal {
  readonly external: External;
  /** null: the platform's own, whose addresses may be private. */
  readonly organizationId: string | null;
  readonly rules: readonly CompiledRule[];
}

/** What looks for one entity, and of each policy the strongest rule that asked for it, the strongest first. */
export interface CompiledDetector {
  readonly detector: Detector;
  readonly rules: readonly CompiledRule[];
}

/** Who looks closer at an anchor. */
export interface AtAnchor {
  readonly detectors: readonly CompiledDetector[];
  /** Those of numbers, by `openingOf` their first two groups; null: none. */
  readonly numbers: readonly (readonly CompiledDetector[])[] | null;
}

export interface CompiledStage {
  /** By `pairOf`: 0, or the index in `atAnchor` of the detectors that look closer there, and AT_WORDS. */
  readonly anchors: Uint8Array;
  readonly atAnchor: readonly AtAnchor[];
  readonly detectors: readonly CompiledDetector[];
  /** Of each policy with rules that have words. */
  readonly words: readonly CompiledWords[];
  /** Of each policy with rules that have patterns. */
  readonly patterns: readonly CompiledPatterns[];
  readonly externals: readonly CompiledExternal[];
  /** Some rule cloaks: replies may have placeholders to be restored. */
  readonly cloaks: boolean;
  /** Some rule changes or blocks. */
  readonly acts: boolean;
}

export interface CompiledPolicy {
  /** Names the versions it was made of and the API; the same for the same rules. */
  readonly key: string;
  readonly policies: readonly Policy[];
  readonly api: ApiName;
  /** null: no rule is for the stage. */
  readonly input: CompiledStage | null;
  readonly output: CompiledStage | null;
  /** `refuse` where any of the policies says so. */
  readonly onFailure: OnFailure;
}

/** `policies`: platform floor, organization, team and key; lower scopes only add. null: no rule is for this API. */
export function compilePolicy(policies: readonly Policy[], api: ApiName): CompiledPolicy | null {
  const input = compileStage(policies, api, 'input');
  const output = compileStage(policies, api, 'output');
  if (input === null && output === null) return null;
  return {
    key: [api, ...policies.map(({ id, version }) => `${id}@${version}`)].join(' '),
    policies,
    api,
    input,
    output,
    onFailure: policies.some(({ onFailure }) => onFailure === 'refuse') ? 'refuse' : 'pass',
  };
}

export function stageOf(compiled: CompiledPolicy, stage: Stage): CompiledStage | null {
  return stage === 'input' ? compiled.input : compiled.output;
}

/** Whether the policy of a rule lets a value through. */
export function isAllowedValue(
  { allowedValues, allowedEmailDomains }: CompiledRule,
  entity: string,
  value: string,
): boolean {
  const lower = value.toLowerCase();
  if (allowedValues.has(lower)) return true;
  return entity === 'email' && allowedEmailDomains.has(lower.slice(lower.lastIndexOf('@') + 1));
}

/** What is for a stage of one policy. */
interface PolicyInStage {
  readonly policy: Policy;
  readonly prepared: PreparedPolicy;
  /** By their places in the policy. */
  readonly places: readonly number[];
}

function compileStage(policies: readonly Policy[], api: ApiName, stage: Stage): CompiledStage | null {
  const found = policies.map((policy): PolicyInStage => {
    const prepared = preparedOf(policy);
    const places = [...policy.rules.entries()].flatMap(([place, { stages, apis }]) =>
      stages.includes(stage) && (apis === null || apis.has(api)) ? [place] : [],
    );
    return { policy, prepared, places };
  });
  const compiled = found.flatMap(rulesIn).toSorted(strongestFirst);
  if (compiled.length === 0) return null;
  const detectors = DETECTORS.map((detector) => ({
    detector,
    rules: oneOfEachPolicy(compiled.filter(({ rule }) => rule.detect.includes(detector.entity))),
  })).filter(({ rules }) => rules.length > 0);
  const words = found.flatMap(({ prepared, places }) => prepared.wordsOf(places) ?? []);
  return {
    ...anchorsOf(detectors, words),
    detectors,
    words,
    patterns: found.flatMap(({ prepared, places }) => prepared.patternsOf(places) ?? []),
    externals: found.flatMap(compileExternals),
    cloaks: compiled.some(({ rule }) => rule.action === 'cloak'),
    acts: compiled.some(({ rule }) => rule.action !== 'flag'),
  };
}

function rulesIn({ prepared, places }: PolicyInStage): CompiledRule[] {
  return places.map((place) => prepared.rules[place] as CompiledRule);
}

function strongestFirst(one: CompiledRule, other: CompiledRule): number {
  return strengthOf(other.rule.action) - strengthOf(one.rule.action);
}

/** What a policy lets through it lets through all of its rules. */
function oneOfEachPolicy(rules: readonly CompiledRule[]): readonly CompiledRule[] {
  const known = new Set<CompiledRule['allowedValues']>();
  return rules.filter(({ allowedValues }) => {
    const isFirst = !known.has(allowedValues);
    known.add(allowedValues);
    return isFirst;
  });
}

function compileExternals(found: PolicyInStage): CompiledExternal[] {
  const { organizationId, externals } = found.policy;
  if (externals.length === 0) return [];
  const sorted = rulesIn(found).toSorted(strongestFirst);
  return externals
    .map((external) => ({
      external,
      organizationId,
      rules: sorted.filter(({ rule }) => rule.external?.name === external.name),
    }))
    .filter(({ rules }) => rules.length > 0);
}

function atAnchorOf(found: readonly CompiledDetector[]): AtAnchor {
  const ofNumbers = found.filter(({ detector }) => detector.openings !== undefined);
  const openings = Array.from({ length: OPENINGS }, (_, opening) =>
    ofNumbers.filter(({ detector }) => detector.openings?.some((one) => isOpening(one, opening))),
  );
  return {
    detectors: found.filter(({ detector }) => detector.openings === undefined),
    numbers: ofNumbers.length === 0 ? null : openings,
  };
}

const PAIRS = 256 * 256;
/** Set where words may begin. The detectors have some dozens of entries. */
export const AT_WORDS = 0x80;

/** Pairs with the same detectors share an entry of `atAnchor`. */
function anchorsOf(
  detectors: readonly CompiledDetector[],
  words: readonly CompiledWords[],
): Pick<CompiledStage, 'anchors' | 'atAnchor'> {
  const indexes = new Map<number, number[]>();
  detectors.forEach(({ detector }, index) => {
    for (const pair of new Set(detector.anchors)) {
      const known = indexes.get(pair);
      if (known === undefined) indexes.set(pair, [index]);
      else known.push(index);
    }
  });
  const anchors = new Uint8Array(PAIRS);
  const atAnchor: AtAnchor[] = [{ detectors: [], numbers: null }];
  const known = new Map<string, number>();
  for (const [pair, found] of indexes) {
    const name = found.join(' ');
    const entry =
      known.get(name) ?? atAnchor.push(atAnchorOf(found.map((index) => detectors[index] as CompiledDetector))) - 1;
    known.set(name, entry);
    anchors[pair] = entry;
  }
  if (atAnchor.length > AT_WORDS) throw new Error('an entry of the anchors has no room for all detectors');
  for (const { search } of words) for (const pair of search.pairs) anchors[pair] = (anchors[pair] as number) | AT_WORDS;
  return { anchors, atAnchor };
}
