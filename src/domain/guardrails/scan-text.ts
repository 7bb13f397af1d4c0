// Scans one text: a single pass over its bytes, in which a table of byte pairs says where a detector looks closer.
// Linear: what a detector reads around an anchor is bounded.

import {
  type AtAnchor,
  anchorIndex,
  type CompiledDetector,
  type CompiledPatterns,
  type CompiledPolicy,
  type CompiledRule,
  isAllowedValue,
  placeOf,
  stageOf,
} from './compile-policy.ts';
import { type Hit, textOf } from './detectors/detector.ts';
import { digitGroupsAt, forgetDigitGroups } from './detectors/digit-groups.ts';
import { OWN_ENTITIES } from './entities.ts';
import { FINDINGS_MAX, type Finding } from './finding.ts';
import type { Stage } from './policy.ts';

const BLANK = 0x20;
const hit: Hit = { start: 0, end: 0, isOpen: false };

/**
 * Appends what is found in bytes[start, end), overlaps included: `resolveOverlaps` says which count. The byte before
 * `start` is read as the text's context. False: the text has more findings than FINDINGS_MAX and counts as not
 * screened.
 */
export function scanText(
  compiled: CompiledPolicy,
  stage: Stage,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: Finding[],
): boolean {
  const rules = stageOf(compiled, stage);
  if (rules === null) return true;
  if (rules.patterns !== null && !findPatterns(rules.patterns, bytes, start, end, findings)) return false;
  forgetDigitGroups();
  const { anchors, atAnchor } = rules;
  for (let at = nextAnchor(anchors, bytes, start, end); at < end; at = nextAnchor(anchors, bytes, at + 1, end)) {
    const before = at > 0 ? (bytes[at - 1] as number) : BLANK;
    const entry = anchors[anchorIndex(before, bytes[at] as number)] as number;
    const { detectors, numbers } = atAnchor[entry] as AtAnchor;
    if (detectors.length > 0) detectAt(detectors, bytes, at, start, end, findings);
    if (numbers !== null) {
      const digits = digitGroupsAt(bytes, at, end).lengths[0] as number;
      detectAt(numbers[digits] as readonly CompiledDetector[], bytes, at, start, end, findings);
    }
    if (findings.length > FINDINGS_MAX) return false;
  }
  return true;
}

/** The hot loop: the first place from `from` on whose byte and the one before may be an anchor; `end`: none. */
function nextAnchor(anchors: Uint8Array, bytes: Uint8Array, from: number, end: number): number {
  let before = from > 0 ? placeOf(bytes[from - 1] as number) : BLANK;
  for (let at = from; at < end; at += 1) {
    const byte = placeOf(bytes[at] as number);
    if (anchors[(before << 7) | byte] !== 0) return at;
    before = byte;
  }
  return end;
}

function detectAt(
  detectors: readonly CompiledDetector[],
  bytes: Uint8Array,
  at: number,
  start: number,
  end: number,
  findings: Finding[],
): void {
  for (const { detector, rules } of detectors) {
    if (!detector.find(bytes, at, start, end, hit)) continue;
    const rule = rules.find((one) => !isAllowed(one, detector.entity, bytes));
    if (rule === undefined) continue;
    const { start: from, end: to } = hit;
    // What is only flagged stays where it is, so that nothing has to be known of its rest.
    const isOpen = hit.isOpen && rule.rule.action !== 'flag';
    findings.push({ rule: rule.rule, entity: detector.entity, start: from, end: to, isOpen });
  }
}

/** False: there are too many. */
function findPatterns(
  { set, ruleOf }: CompiledPatterns,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: Finding[],
): boolean {
  set.find(bytes, start, end, (match) => {
    const compiled = ruleOf[match.index] as CompiledRule;
    hit.start = match.start;
    hit.end = match.end;
    if (!isAllowed(compiled, OWN_ENTITIES.pattern, bytes)) {
      const { start: from, end: to } = match;
      findings.push({ rule: compiled.rule, entity: OWN_ENTITIES.pattern, start: from, end: to, isOpen: false });
    }
    return findings.length <= FINDINGS_MAX;
  });
  return findings.length <= FINDINGS_MAX;
}

/** The policy of the rule lets the value of the last hit through. */
function isAllowed(compiled: CompiledRule, entity: string, bytes: Uint8Array): boolean {
  const { allowedValues, allowedEmailDomains } = compiled;
  if (allowedValues.size === 0 && allowedEmailDomains.size === 0) return false;
  return isAllowedValue(compiled, entity, textOf(bytes, hit.start, hit.end));
}
