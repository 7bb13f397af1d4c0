// Compiles the policies in force for one principal and one API into what the scan needs: the table of anchors and, for
// each entity, the rules that look for it, strongest first. The slow work depends on one policy only and is done once
// in prepared-policy.ts.

import type { ApiName } from '../models/apis.ts';
import { anchorGroups, PAIRS } from './detectors/anchor-groups.ts';
import type { Detector } from './detectors/detector.ts';
import { DETECTORS } from './detectors/detectors.ts';
import { isOpening, OPENINGS } from './detectors/digit-groups.ts';
import type { External, OnFailure, Policy, Stage } from './policy.ts';
import {
  type CompiledPatterns,
  type CompiledRule,
  type CompiledWords,
  type PolicyInStage,
  preparedOf,
  strongestFirst,
} from './prepared-policy.ts';

export interface CompiledExternal {
  readonly external: External;
  /** null: the platform's own, whose addresses may be private. */
  readonly organizationId: string | null;
  readonly rules: readonly CompiledRule[];
}

/** The detector of one entity, with each policy's strongest rule for that entity, strongest first. */
export interface CompiledDetector {
  readonly detector: Detector;
  readonly rules: readonly CompiledRule[];
}

/** The detectors that look closer at an anchor. */
export interface AtAnchor {
  readonly detectors: readonly CompiledDetector[];
  /** The detectors of numbers, by `openingAt` of the number's first two groups of digits; null: none. */
  readonly numbers: readonly (readonly CompiledDetector[])[] | null;
}

export interface CompiledStage {
  /**
   * By `pairOf`: the index in `atAnchor` of the detectors that look closer there (0: none), plus AT_WORDS if words may
   * begin there.
   */
  readonly anchors: Uint8Array;
  readonly atAnchor: readonly AtAnchor[];
  readonly detectors: readonly CompiledDetector[];
  /** One for each policy whose rules have words. */
  readonly words: readonly CompiledWords[];
  /** One for each policy whose rules have patterns. */
  readonly patterns: readonly CompiledPatterns[];
  readonly externals: readonly CompiledExternal[];
  /** Some rule cloaks: replies may have placeholders to be restored. */
  readonly cloaks: boolean;
  /** Some rule does more than flag. */
  readonly acts: boolean;
}

export interface CompiledPolicy {
  /** `setKeyOf` its policies and API: equal keys mean equal rules. */
  readonly key: string;
  readonly policies: readonly Policy[];
  readonly api: ApiName;
  /** null: no rule is for the stage. */
  readonly input: CompiledStage | null;
  readonly output: CompiledStage | null;
  /** `refuse` where any of the policies says so. */
  readonly onFailure: OnFailure;
}

/** Names the versions of the policies and the API. */
export function setKeyOf(policies: readonly Policy[], api: ApiName): string {
  return [api, ...policies.map(({ id, version }) => `${id}@${version}`)].join(' ');
}

/** `policies`: platform floor, organization, team and key; lower scopes only add. null: no rule is for this API. */
export function compilePolicy(policies: readonly Policy[], api: ApiName): CompiledPolicy | null {
  const input = compileStage(policies, api, 'input');
  const output = compileStage(policies, api, 'output');
  if (input === null && output === null) return null;
  return {
    key: setKeyOf(policies, api),
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

function compileStage(policies: readonly Policy[], api: ApiName, stage: Stage): CompiledStage | null {
  const found = policies.map((policy) => preparedOf(policy).for(api, stage));
  const compiled = found.flatMap(({ rules }) => rules);
  if (compiled.length === 0) return null;
  const detectors = DETECTORS.map((detector) => ({
    detector,
    rules: found.flatMap(({ strongest }) => strongest.get(detector.entity) ?? []).toSorted(strongestFirst),
  })).filter(({ rules }) => rules.length > 0);
  const words = found.flatMap((one) => one.words ?? []);
  return {
    ...anchorsOf(detectors, words),
    detectors,
    words,
    patterns: found.flatMap((one) => one.patterns ?? []),
    externals: found.flatMap(compileExternals),
    cloaks: compiled.some(({ rule }) => rule.action === 'cloak'),
    acts: compiled.some(({ rule }) => rule.action !== 'flag'),
  };
}

function compileExternals({ policy, rules }: PolicyInStage): CompiledExternal[] {
  const { organizationId, externals } = policy;
  if (externals.length === 0) return [];
  const sorted = rules.toSorted(strongestFirst);
  return externals
    .map((external) => ({
      external,
      organizationId,
      rules: sorted.filter(({ rule }) => rule.external?.name === external.name),
    }))
    .filter(({ rules }) => rules.length > 0);
}

const NONE: readonly CompiledDetector[] = [];

function atAnchorOf(found: readonly CompiledDetector[]): AtAnchor {
  const detectors = found.filter(({ detector }) => detector.openings === undefined);
  if (detectors.length === found.length) return { detectors, numbers: null };
  const numbers = Array.from({ length: OPENINGS }, () => NONE);
  for (const compiled of found)
    for (const opening of openingsOf(compiled.detector)) numbers[opening] = [...(numbers[opening] ?? NONE), compiled];
  return { detectors, numbers };
}

const openingsKnown = new Map<Detector, readonly number[]>();

/** The values of `openingAt` for numbers that the detector looks for. */
function openingsOf(detector: Detector): readonly number[] {
  const made =
    openingsKnown.get(detector) ??
    [...Array(OPENINGS).keys()].filter((opening) => detector.openings?.some((one) => isOpening(one, opening)));
  openingsKnown.set(detector, made);
  return made;
}

/**
 * The bit of an anchor that is set where words may begin. The detectors have some dozens of entries and need the lower
 * bits only.
 */
export const AT_WORDS = 0x80;

/** Pairs with the same detectors share an entry of `atAnchor`. */
function anchorsOf(
  detectors: readonly CompiledDetector[],
  words: readonly CompiledWords[],
): Pick<CompiledStage, 'anchors' | 'atAnchor'> {
  const { groupOf, detectors: ofGroups } = anchorGroups();
  const active = new Map(detectors.map((found) => [found.detector, found]));
  const atAnchor: AtAnchor[] = [{ detectors: [], numbers: null }];
  const known = new Map([['', 0]]);
  const entries = ofGroups.map((places) => {
    const found = places.filter((place) => active.has(DETECTORS[place] as Detector));
    const name = found.join(' ');
    const ofGroup = () => found.map((place) => active.get(DETECTORS[place] as Detector) as CompiledDetector);
    const entry = known.get(name) ?? atAnchor.push(atAnchorOf(ofGroup())) - 1;
    known.set(name, entry);
    return entry;
  });
  if (atAnchor.length > AT_WORDS) throw new Error('an entry of the anchors has no room for all detectors');
  const anchors = new Uint8Array(PAIRS);
  if (detectors.length > 0)
    for (let pair = 0; pair < PAIRS; pair += 1) anchors[pair] = entries[groupOf[pair] ?? 0] ?? 0;
  for (const { search } of words) for (const pair of search.pairs) anchors[pair] = (anchors[pair] as number) | AT_WORDS;
  return { anchors, atAnchor };
}
