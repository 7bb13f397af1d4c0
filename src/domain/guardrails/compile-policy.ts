// Makes of the policies in force for one principal and one API what the scan needs: the table of anchors, and for each
// entity the rules that look for it, the strongest first. Made once a process for each such set of versions.

import { BoundedMap } from '../../platform/bounded-map.ts';
import type { ApiName } from '../models/apis.ts';
import type { Detector } from './detectors/detector.ts';
import { DETECTORS } from './detectors/detectors.ts';
import { isOpening, OPENINGS } from './detectors/digit-groups.ts';
import { PatternSet } from './detectors/patterns.ts';
import { wordsDetector } from './detectors/words.ts';
import { strengthOf } from './finding.ts';
import type { External, OnFailure, Pattern, Policy, Rule, Stage } from './policy.ts';

const PATTERN_SETS_MAX = 64;

/** A rule with what its policy lets through. */
export interface CompiledRule {
  readonly rule: Rule;
  readonly allowedValues: ReadonlySet<string>;
  readonly allowedEmailDomains: ReadonlySet<string>;
}

export interface CompiledExternal {
  readonly external: External;
  /** null: the platform's own, whose addresses may be private. */
  readonly organizationId: string | null;
  readonly rules: readonly CompiledRule[];
}

/** What looks for one entity, and the rules that asked for it, strongest first. */
export interface CompiledDetector {
  readonly detector: Detector;
  readonly rules: readonly CompiledRule[];
}

export interface CompiledPatterns {
  readonly set: PatternSet;
  /** By the pattern's index in the set. */
  readonly ruleOf: readonly CompiledRule[];
}

/** Who looks closer at an anchor. */
export interface AtAnchor {
  readonly detectors: readonly CompiledDetector[];
  /** Those of numbers, by `openingOf` their first two groups; null: none. */
  readonly numbers: readonly (readonly CompiledDetector[])[] | null;
}

export interface CompiledStage {
  /** By `pairOf`: 0, or the index in `atAnchor` of the detectors that look closer there; IN_RARE: see there. */
  readonly anchors: Uint8Array;
  readonly atAnchor: readonly AtAnchor[];
  /** By `pairOf`, where rules have so many words that bytes are too small for the indexes. */
  readonly rareAnchors: ReadonlyMap<number, AtAnchor>;
  readonly detectors: readonly CompiledDetector[];
  /** How many rules have words of their own. */
  readonly wordRules: number;
  /** null: no rule has a pattern. */
  readonly patterns: CompiledPatterns | null;
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

/** Who looks closer at a pair that is an anchor. */
export function detectorsAt({ anchors, atAnchor, rareAnchors }: CompiledStage, pair: number): AtAnchor {
  const entry = anchors[pair] as number;
  return (entry === IN_RARE ? rareAnchors.get(pair) : atAnchor[entry]) as AtAnchor;
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

function compileStage(policies: readonly Policy[], api: ApiName, stage: Stage): CompiledStage | null {
  const rules = policies.flatMap((policy) => {
    const allowed = {
      allowedValues: new Set(policy.allowedValues),
      allowedEmailDomains: new Set(policy.allowedEmailDomains),
    };
    return policy.rules
      .filter((rule) => rule.stages.includes(stage) && (rule.apis === null || rule.apis.has(api)))
      .map((rule) => ({ policy, compiled: { rule, ...allowed } }));
  });
  if (rules.length === 0) return null;
  const sorted = rules.toSorted(
    (one, other) => strengthOf(other.compiled.rule.action) - strengthOf(one.compiled.rule.action),
  );
  const compiled = sorted.map((found) => found.compiled);
  const builtIn = DETECTORS.map((detector) => ({
    detector,
    rules: compiled.filter(({ rule }) => rule.detect.includes(detector.entity)),
  })).filter((found) => found.rules.length > 0);
  const own = compiled
    .filter(({ rule }) => rule.words.length > 0)
    .map((found) => ({ detector: detectorOfWords(found.rule.words), rules: [found] }));
  const detectors = [...builtIn, ...own];
  return {
    ...anchorsOf(detectors),
    detectors,
    wordRules: own.length,
    patterns: compilePatterns(compiled),
    externals: policies
      .flatMap(({ organizationId, externals, id }) =>
        externals.map((external) => ({
          external,
          organizationId,
          rules: sorted
            .filter((found) => found.policy.id === id && found.compiled.rule.external?.name === external.name)
            .map((found) => found.compiled),
        })),
      )
      .filter((found) => found.rules.length > 0),
    cloaks: compiled.some(({ rule }) => rule.action === 'cloak'),
    acts: compiled.some(({ rule }) => rule.action !== 'flag'),
  };
}

function compilePatterns(rules: readonly CompiledRule[]): CompiledPatterns | null {
  const found = rules.flatMap((compiled) => compiled.rule.patterns.map((pattern) => ({ compiled, pattern })));
  if (found.length === 0) return null;
  return { set: setOfPatterns(found.map(({ pattern }) => pattern)), ruleOf: found.map(({ compiled }) => compiled) };
}

/** The same rules are compiled for each stage and API: their words are sorted, and their patterns compiled, once. */
const wordsKnown = new WeakMap<readonly string[], Detector>();
const patternsKnown = new BoundedMap<string, PatternSet>(PATTERN_SETS_MAX);

function detectorOfWords(words: readonly string[]): Detector {
  const known = wordsKnown.get(words) ?? wordsDetector(words);
  wordsKnown.set(words, known);
  return known;
}

function setOfPatterns(patterns: readonly Pattern[]): PatternSet {
  const key = JSON.stringify(patterns);
  const known = patternsKnown.get(key) ?? new PatternSet(patterns);
  patternsKnown.set(key, known);
  return known;
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
const IN_RARE = 255;

/** Pairs with the same detectors share an entry of `atAnchor`. */
function anchorsOf(
  detectors: readonly CompiledDetector[],
): Pick<CompiledStage, 'anchors' | 'atAnchor' | 'rareAnchors'> {
  const indexes = new Map<number, number[]>();
  detectors.forEach(({ detector }, index) => {
    for (const pair of new Set(detector.anchors)) indexes.set(pair, [...(indexes.get(pair) ?? []), index]);
  });
  const anchors = new Uint8Array(PAIRS);
  const atAnchor: AtAnchor[] = [{ detectors: [], numbers: null }];
  const rareAnchors = new Map<number, AtAnchor>();
  const known = new Map<string, number>();
  for (const [pair, found] of indexes) {
    const name = found.join(' ');
    const entry =
      known.get(name) ?? atAnchor.push(atAnchorOf(found.map((index) => detectors[index] as CompiledDetector))) - 1;
    known.set(name, entry);
    anchors[pair] = Math.min(entry, IN_RARE);
    if (entry >= IN_RARE) rareAnchors.set(pair, atAnchor[entry] as AtAnchor);
  }
  return { anchors, atAnchor, rareAnchors };
}
