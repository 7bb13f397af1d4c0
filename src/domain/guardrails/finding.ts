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
   * private key, a long JWT). `tailEnd` says where its rest ends.
   */
  readonly isOpen: boolean;
}

/** No text has more findings than this; the scan stops there, and the text counts as not screened. */
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

/** The findings that count, in the order of the text and without overlaps. */
export function resolveOverlaps(findings: readonly Finding[]): Finding[] {
  if (findings.length < 2) return [...findings];
  const byStart = findings.toSorted((one, other) => one.start - other.start || other.end - one.end);
  const kept: Finding[] = [];
  let cluster: Finding[] = [];
  let clusterEnd = -1;
  for (const finding of byStart) {
    if (finding.start >= clusterEnd && cluster.length > 0) {
      kept.push(...strongestOf(cluster));
      cluster = [];
    }
    cluster.push(finding);
    clusterEnd = Math.max(clusterEnd, finding.end);
  }
  kept.push(...strongestOf(cluster));
  return kept;
}

/** Of findings that overlap in a chain. Chains are short: a long one is cut by the longest form of its entities. */
function strongestOf(cluster: readonly Finding[]): Finding[] {
  if (cluster.length < 2) return [...cluster];
  const kept: Finding[] = [];
  for (const finding of cluster.toSorted(byPrecedence)) {
    if (kept.every((other) => finding.end <= other.start || finding.start >= other.end)) kept.push(finding);
  }
  return kept.toSorted((one, other) => one.start - other.start);
}
