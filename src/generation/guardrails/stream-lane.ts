// Screens one text of a stream that grows from event to event. The part that may still become a finding is held back,
// so the findings are the same as in the whole text.
//
//   base      context              decided                     end
//     |----------|--------------------|---------------------------|
//      (dropped)   read as context      held: may still change

import { Buffer } from 'node:buffer';
import { looksLikeJson, placeInArguments } from '../../domain/guardrails/body-screen.ts';
import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';
import { DecodedText, escapeText } from '../../domain/guardrails/decoded-text.ts';
import { CONTEXT_BYTES } from '../../domain/guardrails/detectors/detector.ts';
import type { ExternalTexts } from '../../domain/guardrails/external-texts.ts';
import { type Finding, resolveOverlaps } from '../../domain/guardrails/finding.ts';
import { holdFrom, tailOf } from '../../domain/guardrails/hold-from.ts';
import type { FoundPlaceholder, RestorableValues } from '../../domain/guardrails/placeholders.ts';
import { scanText } from '../../domain/guardrails/scan-text.ts';

/** Replaces the text from `start` to `end` of the lane by `text`, as it is written within a JSON string. */
export interface LaneEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface LaneRules {
  readonly compiled: CompiledPolicy;
  /** The texts that external detectors are asked about; null: none. */
  readonly external: ExternalTexts | null;
  /** null: the request has made no placeholders. */
  readonly values: RestorableValues | null;
  /** Decides about a finding: its replacement; null: it stays. May end the stream. */
  decide(finding: Finding, isRewritable: boolean): string | null;
  /** Called for text shaped like a placeholder that the request has not made. */
  onUnknownPlaceholder(): void;
  onTooMany(): void;
}

const FIRST_BYTES = 512;
/**
 * The decoded text of the lane that is being screened. The next lane overwrites it, and nothing refers to it
 * afterwards: edits and decided places are offsets in the lane.
 */
const inner = new DecodedText();

export class StreamLane {
  /** The indexes by which an event that ends texts selects this lane; -1: there is no such index. */
  readonly indexes: readonly [number, number];
  /** Everything before this offset is decided. Offsets count the text as written in the JSON string around it. */
  decided = 0;
  end = 0;
  /** Decided edits whose text is, at least in part, in an event that still waits. */
  edits: LaneEdit[] = [];
  /** How many events of other texts of the same choice have come since this lane's last event. */
  idleEvents = 0;
  /** The whole text, if external detectors are to be asked about it; null: they are not. */
  readonly whole: Buffer[] | null;
  private readonly rules: LaneRules;
  private readonly isRewritable: boolean;
  /** Whether the text is JSON; null: its first character has not come. */
  private isJson: boolean | null;
  private bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  /** The offset of the first kept byte in the lane. */
  private base = 0;
  /** How many bytes of the decoded text are decided already and read only as context. */
  private contextBytes = 0;
  /** How many unescaped quotes come before `base`. */
  private quotes = 0;
  /** A decided finding whose text may continue; null: there is none. */
  private open: { readonly finding: Finding; readonly isCut: boolean } | null = null;

  constructor(rules: LaneRules, as: 'text' | 'fragile' | 'arguments', indexes: readonly [number, number]) {
    this.rules = rules;
    this.whole = rules.external === null ? null : [];
    this.isRewritable = as !== 'fragile';
    this.isJson = as === 'arguments' ? null : false;
    this.indexes = indexes;
  }

  append(source: Buffer, start: number, end: number): void {
    this.idleEvents = 0;
    this.whole?.push(Buffer.from(source.subarray(start, end)));
    const kept = this.end - this.base;
    if (kept + end - start > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow((kept + end - start) * 2);
      this.bytes.copy(larger, 0, 0, kept);
      this.bytes = larger;
    }
    source.copy(this.bytes, kept, start, end);
    this.end += end - start;
    if (this.isJson === null && hasCharacter(source, start, end))
      this.isJson = looksLikeJson(this.bytes, 0, this.end - this.base);
  }

  /** Screens what has come. `isLast`: nothing follows, or the rest is not waited for. */
  advance(isLast: boolean): void {
    if (this.decided === this.end) return;
    const { isJson } = this;
    const length = this.end - this.base;
    if (isJson === true) inner.decode(this.bytes, 0, length, !isLast);
    const text = isJson === true ? inner.bytes : this.bytes;
    const to = isJson === true ? inner.length : length;
    const reached = this.screen(text, this.contextBytes, to, isLast);
    this.keepFrom(reached, to, isLast);
  }

  private screen(text: Buffer, from: number, to: number, isLast: boolean): number {
    const { open } = this;
    if (open === null) return this.scan(text, from, to, isLast);
    const tail = tailOf(open.finding, text, from, to);
    if (open.isCut && tail.to > from) this.edit(from, tail.to, '');
    if (tail.isOpen && !isLast) return tail.to;
    this.open = null;
    return this.scan(text, tail.to, to, isLast);
  }

  private scan(text: Buffer, from: number, to: number, isLast: boolean): number {
    const { compiled, values } = this.rules;
    const found: Finding[] = [];
    if (!scanText(compiled, 'output', text, from, to, found, 0)) this.rules.onTooMany();
    const findings = resolveOverlaps(found);
    const placeholders: FoundPlaceholder[] = [];
    let reached = isLast ? to : holdFrom(compiled, 'output', text, from, to, found);
    if (values !== null && this.isRewritable) {
      values.find(text, from, to, placeholders);
      if (!isLast)
        reached = beforeAny([...findings, ...placeholders], Math.min(reached, values.holdFrom(text, from, to)));
    }
    for (const finding of findings) {
      if (finding.start >= reached) break;
      reached = Math.min(reached, this.take(finding, isLast) ?? reached);
    }
    for (const { start, end, value } of placeholders) {
      if (end > reached) break;
      if (value === null) this.rules.onUnknownPlaceholder();
      else if (!findings.some((finding) => finding.start < end && finding.end > start)) this.edit(start, end, value);
    }
    return reached;
  }

  /** Takes a finding. Returns where it ends if its text may continue; else null. */
  private take(finding: Finding, isLast: boolean): number | null {
    const isAcross = this.isJson === true && placeInArguments(inner, finding, this.quotes) === 'across';
    const text = this.rules.decide(finding, this.isRewritable && !isAcross);
    if (text !== null) this.edit(finding.start, finding.end, text);
    if (!finding.isOpen || isLast) return null;
    this.open = { finding, isCut: text !== null };
    return finding.end;
  }

  private edit(from: number, to: number, text: string): void {
    const [start, end] = this.inLane(from, to, this.isJson === true);
    const isBare = text !== '' && this.isJson === true && (this.quotes + inner.quotesBefore(from)) % 2 === 0;
    const written = this.isJson !== true ? text : isBare ? JSON.stringify(text) : escapeText(text, 1);
    this.edits.push({ start, end, text: written });
  }

  private inLane(from: number, to: number, isJson: boolean): [number, number] {
    const start = isJson ? inner.sourceStart(from) : from;
    const end = isJson ? inner.sourceAfter(to) : to;
    return [this.base + start, this.base + end];
  }

  /** Drops the bytes that are no longer read. The decoded text is decided up to `reached`. */
  private keepFrom(reached: number, to: number, isLast: boolean): void {
    const isJson = this.isJson === true;
    const sourceOf = (offset: number): number =>
      isJson ? (offset === to ? inner.sourceEnd : inner.sourceStart(offset)) : offset;
    this.decided = isLast ? this.end : this.base + sourceOf(reached);
    const context = Math.max(0, reached - CONTEXT_BYTES);
    // Context begins at a whole character: half of one would be read as another character.
    const first = isJson ? context : characterStart(this.bytes, context);
    const dropped = sourceOf(first);
    if (isJson) this.quotes += inner.quotesBefore(first);
    this.contextBytes = reached - first;
    if (dropped === 0) return;
    this.bytes.copy(this.bytes, 0, dropped, this.end - this.base);
    this.base += dropped;
  }

  /** Forgets edits whose text is in no event that still waits. */
  forgetEdits(before: number): void {
    if (this.edits.length > 0) this.edits = this.edits.filter(({ end }) => end > before);
  }
}

function hasCharacter(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((bytes[at] as number) > 0x20) return true;
  return false;
}

function characterStart(bytes: Buffer, offset: number): number {
  let at = offset;
  while (at > 0 && ((bytes[at] as number) & 0xc0) === 0x80) at -= 1;
  return at;
}

/** The greatest place up to `reached` that is inside none of `places`. */
function beforeAny(
  places: readonly { readonly start: number; readonly end: number; readonly isOpen?: boolean }[],
  reached: number,
): number {
  let place = reached;
  for (let moved = true; moved; ) {
    moved = false;
    for (const { start, end, isOpen } of places) {
      if (isOpen === true || start >= place || end <= place) continue;
      place = start;
      moved = true;
    }
  }
  return place;
}
