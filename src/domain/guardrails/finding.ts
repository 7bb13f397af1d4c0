// What a detector found in a text, and which of overlapping findings count.

import { ACTIONS, type Action, type Rule } from './policy.ts';

export interface Finding {
  readonly rule: Rule;
  /** A built-in entity, `words`, `pattern`, or what an external detector calls it. */
  readonly entity: string;
  /** Byte offsets in the array that was scanned; `end` is the first byte after the finding. */
  readonly start: number;
  readonly end: number;
  /**
   * A stream only: the finding reached the end of what was scanned and is decided already, however it goes on (a
   * private key, a long JWT). `tailOf` says what belongs to it of what comes next.
   */
  readonly isOpen: boolean;
  /** Of an open one that got its end from another: that one's entity. */
  readonly goesOnAs?: string;
}

/** No body has more findings than this; the scan stops there, and the body counts as not screened. */
export const FINDINGS_MAX = 10_000;

export function strengthOf(action: Action): number {
  return ACTIONS.length - ACTIONS.indexOf(action);
}

/** Stronger first, then longer, then leftmost. */
function byPrecedence(one: Finding, other: Finding): number {
  return (
    strengthOf(other.rule.action) - strengthOf(one.rule.action) ||
    other.end - other.start - (one.end - one.start) ||
    one.start - other.start
  );
}

/** Whether what begins inside of a finding is a part of it: a key is replaced as a whole, whatever it looks like. */
export function isWhole({ entity, rule }: Finding): boolean {
  return (entity === 'jwt' || entity === 'private_key') && rule.action !== 'flag';
}

/** Without what begins where a whole one does, or inside of it; in the order of the text. */
export function withoutParts(findings: readonly Finding[]): readonly Finding[] {
  if (findings.length < 2) return findings;
  let wholeEnd = -1;
  return findings
    .toSorted((one, other) => one.start - other.start || wholeFirst(one, other) || other.end - one.end)
    .filter((finding) => {
      if (finding.start < wholeEnd) return false;
      if (isWhole(finding)) wholeEnd = finding.end;
      return true;
    });
}

/** A stream decides a key at its beginning, before it knows what else would begin there and be longer. */
function wholeFirst(one: Finding, other: Finding): number {
  return Number(isWhole(other)) - Number(isWhole(one));
}

/** The findings that count, in the order of the text and without overlaps. */
export function resolveOverlaps(findings: readonly Finding[]): Finding[] {
  if (findings.length < 2) return [...findings];
  const kept: Finding[] = [];
  let cluster: Finding[] = [];
  let clusterEnd = -1;
  for (const finding of withoutParts(findings)) {
    if (finding.start >= clusterEnd && cluster.length > 0) {
      addStrongest(cluster, kept);
      cluster = [];
    }
    cluster.push(finding);
    clusterEnd = Math.max(clusterEnd, finding.end);
  }
  addStrongest(cluster, kept);
  return kept;
}

/**
 * Appends those of a chain of overlapping findings that count. What the others have beside them belongs to them: of an
 * address in which a word is masked, nothing goes on.
 */
function addStrongest(cluster: readonly Finding[], kept: Finding[]): void {
  if (cluster.length < 2) {
    kept.push(...cluster);
    return;
  }
  const chosen: Finding[] = [];
  for (const finding of cluster.toSorted(byPrecedence)) {
    const behind = placeOf(chosen, finding.end - 1);
    let first = placeOf(chosen, finding.start);
    if (first > 0 && (chosen[first - 1] as Finding).end > finding.start) first -= 1;
    if (first === behind) chosen.splice(first, 0, finding);
    else if (finding.rule.action !== 'flag') cover(chosen, first, behind, finding);
  }
  kept.push(...chosen);
}

/** Those of `chosen` from `first` to before `behind` overlap `finding`: together they get all of it. */
function cover(chosen: Finding[], first: number, behind: number, finding: Finding): void {
  for (let index = first; index < behind; index += 1) {
    const one = chosen[index] as Finding;
    const isLast = index === behind - 1;
    const start = index === first ? Math.min(one.start, finding.start) : one.start;
    const end = isLast ? Math.max(one.end, finding.end) : (chosen[index + 1] as Finding).start;
    if (start === one.start && end === one.end) continue;
    // Only what reaches the end of what was scanned is open, and so nothing that is chosen is behind it.
    const goesOn = isLast && finding.isOpen ? { isOpen: true, goesOnAs: finding.entity } : {};
    chosen[index] = { ...one, start, end, ...goesOn };
  }
}

/** How many of the sorted findings begin at `start` or before. */
function placeOf(sorted: readonly Finding[], start: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as Finding).start <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}
