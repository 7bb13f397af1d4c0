// Says how much of a stream's text has to wait: the longest suffix that an active detector could still extend.

import { type CompiledPolicy, type CompiledStage, stageOf } from './compile-policy.ts';
import type { Tail } from './detectors/detector.ts';
import { DETECTORS } from './detectors/detectors.ts';
import { type Finding, isWhole, withoutParts } from './finding.ts';
import type { Stage } from './policy.ts';

/** No text of a stream waits with more bytes than this. */
export const HOLD_BYTES_MAX = 512;

/**
 * The first byte of bytes[start, end) that has to wait; `end`: none. Scanning resumes there, with the bytes before it
 * as context. `findings` are those of the same bytes. A finding that reaches beyond the returned place is held as a
 * whole, together with those that overlap it, since a finding in the following bytes can still outweigh it. An open
 * finding is certain and not held; `tailOf` says how it goes on.
 */
export function holdFrom(
  compiled: CompiledPolicy,
  stage: Stage,
  bytes: Uint8Array,
  start: number,
  end: number,
  findings: readonly Finding[],
): number {
  const rules = stageOf(compiled, stage);
  if (rules === null) return end;
  const limit = Math.max(start, end - HOLD_BYTES_MAX);
  let from = earliestHold(rules, bytes, limit, end);
  // A finding that begins inside a whole one belongs to it and need not wait for its own end.
  const counted = withoutParts(findings);
  for (const finding of counted) {
    if (!isWhole(finding) || from < finding.start) continue;
    if (finding.isOpen) return finding.end;
    if (from > finding.start && from < finding.end) from = earliestHold(rules, bytes, finding.end, end);
  }
  // Moving back to one finding may uncover another that overlaps it.
  for (let moved = true; moved; ) {
    moved = false;
    for (const finding of counted) {
      const decidedFrom = finding.start - lookBehindOf(finding.entity);
      if (finding.isOpen || decidedFrom >= from || finding.end <= from) continue;
      from = Math.max(limit, decidedFrom);
      moved = from > limit;
    }
  }
  return from;
}

function earliestHold(
  { detectors, words, patterns }: CompiledStage,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  let from = end;
  for (const { detector } of detectors) from = Math.min(from, detector.hold(bytes, start, end));
  for (const { search } of words) from = Math.min(from, search.hold(bytes, start, end));
  for (const { set } of patterns) from = Math.min(from, set.hold(bytes, start, end));
  return from;
}

/** How much of bytes[from, end) still belongs to an open finding. */
export function tailOf({ entity, goesOnAs = entity }: Finding, bytes: Uint8Array, from: number, end: number): Tail {
  const detector = DETECTORS.find((one) => one.entity === goesOnAs);
  return detector?.tailOf?.(bytes, from, end) ?? { to: from, isOpen: false };
}

function lookBehindOf(entity: string): number {
  return DETECTORS.find((detector) => detector.entity === entity)?.lookBehind ?? 0;
}
