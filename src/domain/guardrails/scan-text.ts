// Scans one text: a single pass over its bytes, in which a table of byte pairs says where a detector looks closer.
// Linear: what a detector reads around an anchor is bounded.

import {
  type AtAnchor,
  type CompiledDetector,
  type CompiledPatterns,
  type CompiledPolicy,
  type CompiledRule,
  isAllowedValue,
  stageOf,
} from './compile-policy.ts';
import { DIGIT, runEnd } from './detectors/characters.ts';
import { type Hit, pairOf, textOf } from './detectors/detector.ts';
import { DIGITS_MAX, forgetDigitGroups } from './detectors/digit-groups.ts';
import { OWN_ENTITIES } from './entities.ts';
import { FINDINGS_MAX, type Finding } from './finding.ts';
import type { Stage } from './policy.ts';

const BLANK = 0x20;
const hit: Hit = { start: 0, end: 0, isOpen: false };

/**
 * Appends what is found in bytes[start, end), overlaps included: `resolveOverlaps` says which count. `textStart`: where
 * what is there of the text begins, if before `start`. What lies between has been scanned: it decides findings, and
 * none of them begins there. A stream keeps CONTEXT_BYTES of it, or all that it has. The byte before `textStart` is
 * read as well. False: there are more than `findingsMax`, and the rest is not scanned.
 */
export function scanText(
  compiled: CompiledPolicy,
  stage: Stage,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: Finding[],
  textStart = start,
  findingsMax = FINDINGS_MAX,
): boolean {
  const rules = stageOf(compiled, stage);
  if (rules === null) return true;
  if (rules.patterns !== null && !findPatterns(rules.patterns, bytes, start, end, findings, findingsMax)) return false;
  forgetDigitGroups();
  const { anchors, atAnchor } = rules;
  for (let at = nextAnchor(anchors, bytes, start, end); at < end; at = nextAnchor(anchors, bytes, at + 1, end)) {
    const before = at > 0 ? (bytes[at - 1] as number) : BLANK;
    const entry = anchors[pairOf(before, bytes[at] as number)] as number;
    const { detectors, numbers } = atAnchor[entry] as AtAnchor;
    if (detectors.length > 0) detectAt(detectors, bytes, at, textStart, start, end, findings);
    if (numbers !== null) {
      // Most are dates, versions and counts, whose first group is no number's.
      const digits = runEnd(DIGIT, bytes, at, end, DIGITS_MAX + 1) - at;
      detectAt(numbers[digits] as readonly CompiledDetector[], bytes, at, textStart, start, end, findings);
    }
    if (findings.length > findingsMax) return false;
  }
  return true;
}

/**
 * The hot loop: the first place from `from` on whose byte and the one before are an anchor; `end`: none. Four at a time
 * take two thirds of the time of one.
 */
function nextAnchor(anchors: Uint8Array, bytes: Uint8Array, from: number, end: number): number {
  let before = from > 0 ? (bytes[from - 1] as number) : BLANK;
  let at = from;
  for (; at + 4 <= end; at += 4) {
    const one = bytes[at] as number;
    const two = bytes[at + 1] as number;
    const three = bytes[at + 2] as number;
    const four = bytes[at + 3] as number;
    const first = (anchors[(before << 8) | one] as number) | (anchors[(one << 8) | two] as number);
    if ((first | (anchors[(two << 8) | three] as number) | (anchors[(three << 8) | four] as number)) !== 0) break;
    before = four;
  }
  for (; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (anchors[(before << 8) | byte] !== 0) return at;
    before = byte;
  }
  return end;
}

function detectAt(
  detectors: readonly CompiledDetector[],
  bytes: Uint8Array,
  at: number,
  textStart: number,
  start: number,
  end: number,
  findings: Finding[],
): void {
  for (const { detector, rules } of detectors) {
    if (!detector.find(bytes, at, textStart, end, hit) || hit.start < start) continue;
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
  findingsMax: number,
): boolean {
  set.find(bytes, start, end, (match) => {
    const compiled = ruleOf[match.index] as CompiledRule;
    hit.start = match.start;
    hit.end = match.end;
    if (!isAllowed(compiled, OWN_ENTITIES.pattern, bytes)) {
      const { start: from, end: to } = match;
      findings.push({ rule: compiled.rule, entity: OWN_ENTITIES.pattern, start: from, end: to, isOpen: false });
    }
    return findings.length <= findingsMax;
  });
  return findings.length <= findingsMax;
}

/** The policy of the rule lets the value of the last hit through. */
function isAllowed(compiled: CompiledRule, entity: string, bytes: Uint8Array): boolean {
  const { allowedValues, allowedEmailDomains } = compiled;
  if (allowedValues.size === 0 && allowedEmailDomains.size === 0) return false;
  return isAllowedValue(compiled, entity, textOf(bytes, hit.start, hit.end));
}
