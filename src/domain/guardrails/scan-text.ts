// Scans one text: a single pass over its bytes, in which a table of byte pairs says where a detector looks closer. The
// time is linear, since what a detector reads around an anchor is bounded.

import {
  AT_WORDS,
  type AtAnchor,
  type CompiledDetector,
  type CompiledPolicy,
  isAllowedValue,
  stageOf,
} from './compile-policy.ts';
import { isWithin, WORD } from './detectors/characters.ts';
import { type Hit, pairOf, textOf } from './detectors/detector.ts';
import { forgetDigitGroups, openingAt } from './detectors/digit-groups.ts';
import { OWN_ENTITIES } from './entities.ts';
import { FINDINGS_MAX, type Finding } from './finding.ts';
import type { Stage } from './policy.ts';
import type { CompiledPatterns, CompiledRule, CompiledWords } from './prepared-policy.ts';

const BLANK = 0x20;
/** A DataView costs as much as scanning a hundred bytes. */
const VIEWED_BYTES_MIN = 256;
const hit: Hit = { start: 0, end: 0, isOpen: false };
/** The text of `hit`, read once a policy is asked whether it allows it; null: not read yet. */
let hitText: string | null = null;

/** How many more findings and hits may be found in this body. */
export interface ScanLimits {
  findings: number;
  /** Findings and allowed values: each costs a lookup. */
  hits: number;
}

/**
 * Appends what is found in bytes[start, end), overlaps included: `resolveOverlaps` says which count. `textStart`: where
 * the available text begins, if before `start`. The bytes between have been scanned: they are context for findings, but
 * no finding begins there. A stream keeps CONTEXT_BYTES of context, or all that it has. The byte before `textStart` is
 * read as well. What is found is subtracted from `limits`. False: there is more than `limits` allows, and the rest is
 * not scanned.
 */
export function scanText(
  compiled: CompiledPolicy,
  stage: Stage,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: Finding[],
  textStart = start,
  limits: ScanLimits = { findings: FINDINGS_MAX, hits: Number.POSITIVE_INFINITY },
): boolean {
  const rules = stageOf(compiled, stage);
  if (rules === null) return true;
  for (const patterns of rules.patterns) if (!findPatterns(patterns, bytes, start, end, findings, limits)) return false;
  forgetDigitGroups();
  const { anchors, atAnchor, words } = rules;
  const view = end - start < VIEWED_BYTES_MIN ? null : new DataView(bytes.buffer, bytes.byteOffset, end);
  for (let at = start; (at = nextAnchor(anchors, bytes, view, at, end)) < end; at += 1) {
    const pair = pairOf(at > 0 ? (bytes[at - 1] as number) : BLANK, bytes[at] as number);
    const entry = anchors[pair] as number;
    const { detectors, numbers } = atAnchor[entry & ~AT_WORDS] as AtAnchor;
    if (detectors.length > 0) detectAt(detectors, bytes, at, textStart, start, end, findings, limits);
    if ((entry & AT_WORDS) !== 0 && at > start) findWords(words, bytes, at - 1, end, findings, limits);
    if (numbers !== null && !isWithin(WORD, bytes, at)) {
      // Most numbers are dates, versions and counts, and no number that is looked for begins like them.
      const found = numbers[openingAt(bytes, at, end)] as readonly CompiledDetector[];
      if (found.length > 0) detectAt(found, bytes, at, textStart, start, end, findings, limits);
    }
    if (isOver(limits)) return false;
  }
  return true;
}

/**
 * The first place from `from` on whose byte and the byte before it are an anchor, or `end`. A blank is assumed before
 * the first byte.
 */
function nextAnchor(anchors: Uint8Array, bytes: Uint8Array, view: DataView | null, from: number, end: number): number {
  if (from === 0 && end > 0 && anchors[pairOf(BLANK, bytes[0] as number)] !== 0) return 0;
  let at = Math.max(from, 1);
  if (view !== null) at = nearAnchor(anchors, view, at, end);
  while (at < end && anchors[pairOf(bytes[at - 1] as number, bytes[at] as number)] === 0) at += 1;
  return at;
}

/**
 * The hot loop. Returns a place from `from` on with no anchor before it, and with an anchor or the end within three
 * bytes. Reading four bytes at once gives three pairs and takes a fifth less time than reading bytes one by one.
 */
function nearAnchor(anchors: Uint8Array, view: DataView, from: number, end: number): number {
  let at = from;
  for (; at + 3 <= end; at += 3) {
    const four = view.getInt32(at - 1, true);
    const first = (anchors[four & 0xffff] as number) | (anchors[(four >>> 8) & 0xffff] as number);
    if ((first | (anchors[four >>> 16] as number)) !== 0) break;
  }
  return at;
}

function detectAt(
  detectors: readonly CompiledDetector[],
  bytes: Uint8Array,
  at: number,
  textStart: number,
  start: number,
  end: number,
  findings: Finding[],
  limits: ScanLimits,
): void {
  for (const { detector, rules } of detectors) {
    if (!detector.find(bytes, at, textStart, end, hit) || hit.start < start) continue;
    limits.hits -= 1;
    setHit(hit.start, hit.end);
    const rule = rules.find((one) => !isAllowed(one, detector.entity, bytes));
    if (rule === undefined) continue;
    const { start: from, end: to } = hit;
    // A value that is only flagged stays where it is, so its rest need not be known.
    const isOpen = hit.isOpen && rule.rule.action !== 'flag';
    limits.findings -= 1;
    findings.push({ rule: rule.rule, entity: detector.entity, start: from, end: to, isOpen });
  }
}

function findWords(
  words: readonly CompiledWords[],
  bytes: Uint8Array,
  from: number,
  end: number,
  findings: Finding[],
  limits: ScanLimits,
): void {
  for (const { search, rules } of words) {
    const count = search.find(bytes, from, end);
    limits.hits -= count;
    for (let place = 0; place < count; place += 1) {
      const compiled = rules[search.foundRules[place] as number] as CompiledRule;
      const to = search.foundEnds[place] as number;
      setHit(from, to);
      if (isAllowed(compiled, OWN_ENTITIES.words, bytes)) continue;
      limits.findings -= 1;
      findings.push({ rule: compiled.rule, entity: OWN_ENTITIES.words, start: from, end: to, isOpen: false });
    }
  }
}

/** False: there are more than `limits` allows. */
function findPatterns(
  { set, ruleOf }: CompiledPatterns,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: Finding[],
  limits: ScanLimits,
): boolean {
  set.find(bytes, start, end, (match) => {
    const compiled = ruleOf[match.index] as CompiledRule;
    limits.hits -= 1;
    setHit(match.start, match.end);
    if (!isAllowed(compiled, OWN_ENTITIES.pattern, bytes)) {
      const { start: from, end: to } = match;
      limits.findings -= 1;
      findings.push({ rule: compiled.rule, entity: OWN_ENTITIES.pattern, start: from, end: to, isOpen: false });
    }
    return !isOver(limits);
  });
  return !isOver(limits);
}

function setHit(start: number, end: number): void {
  hit.start = start;
  hit.end = end;
  hitText = null;
}

/** Whether the policy of the rule allows the value of the last hit. */
function isAllowed(compiled: CompiledRule, entity: string, bytes: Uint8Array): boolean {
  const { allowedValues, allowedEmailDomains } = compiled;
  if (allowedValues.size === 0 && allowedEmailDomains.size === 0) return false;
  hitText ??= textOf(bytes, hit.start, hit.end);
  return isAllowedValue(compiled, entity, hitText);
}

function isOver({ findings, hits }: ScanLimits): boolean {
  return findings < 0 || hits < 0;
}
