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
   * In a stream: the finding reaches the end of the scanned bytes and is certain already, however it goes on (a private
   * key, a long JWT). `tailOf` says how much of the following bytes belongs to it.
   */
  readonly isOpen: boolean;
  /** Set if an open finding was extended by another one: the entity of the other, whose detector finds the tail. */
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

/**
 * Whether findings that begin inside this one are a part of it: a key is replaced as a whole, whatever its parts look
 * like.
 */
export function isWhole({ entity, rule }: Finding): boolean {
  return (entity === 'jwt' || entity === 'private_key') && rule.action !== 'flag';
}

/** Drops findings that begin inside a whole one or at its start. The result is in text order. */
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

/**
 * Whole findings come first, since a stream decides on a key at its beginning, before it can know of a longer finding
 * there.
 */
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
 * Appends the findings of an overlapping chain that count. They are extended over the rest of the findings that do not:
 * if a word of an address is masked, no other part of the address is passed on.
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

/**
 * Extends the chosen findings from `first` to before `behind`, which overlap `finding`, so that together they cover all
 * of it.
 */
function cover(chosen: Finding[], first: number, behind: number, finding: Finding): void {
  for (let index = first; index < behind; index += 1) {
    const one = chosen[index] as Finding;
    const isLast = index === behind - 1;
    const start = index === first ? Math.min(one.start, finding.start) : one.start;
    const end = isLast ? Math.max(one.end, finding.end) : (chosen[index + 1] as Finding).start;
    if (start === one.start && end === one.end) continue;
    // An open finding reaches the end of the scanned bytes, so no chosen finding lies after it.
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
