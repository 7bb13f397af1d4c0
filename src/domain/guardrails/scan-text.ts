// Scans one text: a single pass over its bytes, in which a table of byte pairs says where a detector looks closer.
// Linear: what a detector reads around an anchor is bounded.

import {
  type CompiledDetector,
  type CompiledPatterns,
  type CompiledPolicy,
  type CompiledRule,
  stageOf,
} from './compile-policy.ts';
import { type Hit, textOf } from './detectors/detector.ts';
import { forgetDigitGroups } from './detectors/digit-groups.ts';
import { OWN_ENTITIES } from './entities.ts';
import { FINDINGS_MAX, type Finding } from './finding.ts';
import type { Stage } from './policy.ts';

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
  let before = start > 0 ? (bytes[start - 1] as number) : 0x20;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    const entry = anchors[(before << 8) | byte] as number;
    before = byte;
    if (entry === 0) continue;
    detectAt(atAnchor[entry] as readonly CompiledDetector[], bytes, at, start, end, findings);
    if (findings.length > FINDINGS_MAX) return false;
  }
  return true;
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
function isAllowed({ allowedValues, allowedEmailDomains }: CompiledRule, entity: string, bytes: Uint8Array): boolean {
  if (allowedValues.size === 0 && allowedEmailDomains.size === 0) return false;
  const value = textOf(bytes, hit.start, hit.end).toLowerCase();
  if (allowedValues.has(value)) return true;
  return entity === 'email' && allowedEmailDomains.has(value.slice(value.lastIndexOf('@') + 1));
}
