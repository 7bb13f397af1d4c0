// Screens a whole body, of a request or of a reply: finds its texts, what the rules in force say of them, and which
// bytes of the body have to be written instead. Nothing of the body is changed here.

import { Buffer } from 'node:buffer';
import { type CompiledPolicy, stageOf } from './compile-policy.ts';
import { DecodedText, escapeText } from './decoded-text.ts';
import type { ExternalTexts } from './external-texts.ts';
import { FINDINGS_MAX, type Finding, resolveOverlaps } from './finding.ts';
import { isJson, JsonWalk, type TextVisitor } from './json-walk.ts';
import type { FoundPlaceholder, Placeholders, RestorableValues } from './placeholders.ts';
import type { Action, Stage } from './policy.ts';
import { type ScanLimits, scanText } from './scan-text.ts';
import { StageTally } from './screening-report.ts';
import { KIND, type KindCode, type PlaceNode, TEXT_NODE } from './text-places.ts';

/** `replacement` in the place of the bytes from `start` to `end` of the body. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

export interface BodyRules {
  readonly compiled: CompiledPolicy;
  readonly stage: Stage;
  /** Of a request: where its placeholders come from. */
  readonly placeholders: Placeholders | null;
  /** Of a reply: what its request's placeholders stand for. */
  readonly values: RestorableValues | null;
  /** Where external detectors are asked. */
  readonly external?: ExternalTexts | null;
  /** How many hits (findings, and values that a policy allows) are scanned for; default: no limit. */
  readonly hitsMax?: number;
}

export interface ScreenedBytes {
  /** Sorted, and none overlaps another. */
  readonly edits: readonly TextEdit[];
  readonly tally: StageTally;
}

/** How the text that is scanned lies in the body: as it is, decoded once, or decoded twice. */
interface Source {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly outer: DecodedText | null;
  readonly inner: DecodedText | null;
  /** It is JSON that has to stay such. */
  readonly isArguments: boolean;
  /** How many strings are around what is written. */
  readonly levels: number;
}

const outerText = new DecodedText();
const innerText = new DecodedText();

/** One JSON value, or a text, of a body. Made for each body. */
export class BodyScreen implements TextVisitor {
  readonly tally = new StageTally();
  protected readonly rules: BodyRules;
  /** The body has more findings than it may: the rest of it is not scanned. */
  isOver = false;
  private limits: ScanLimits;
  private readonly walk = new JsonWalk(this);
  private body: Buffer = Buffer.alloc(0);
  private readonly edits: TextEdit[] = [];
  private readonly opened: number[] = [];
  private repeats: {
    readonly node: PlaceNode;
    readonly start: number;
    readonly end: number;
    readonly depth: number;
  }[] = [];
  private readonly ambiguous: [number, number][] = [];
  /** By masked name: which one of the body it is, so that no two names become one. */
  private readonly names = new Map<string, number>();

  constructor(rules: BodyRules) {
    this.rules = rules;
    this.limits = this.limitsOfOne();
  }

  private limitsOfOne(): ScanLimits {
    return { findings: FINDINGS_MAX, hits: this.rules.hitsMax ?? Number.POSITIVE_INFINITY };
  }

  /** False: it is no JSON. */
  json(body: Buffer, start: number, end: number, node: PlaceNode): boolean {
    this.body = body;
    this.limits = this.limitsOfOne();
    this.isOver = false;
    const isWhole = this.walk.walk(body, start, end, node);
    for (const [from, to] of outermost(this.ambiguous.splice(0))) this.walk.walk(body, from, to, TEXT_NODE);
    if (!isWhole) this.tally.miss('malformed');
    return isWhole;
  }

  /** A text that stands in the body as it is, as in a part of a form. */
  plain(body: Buffer, start: number, end: number): void {
    this.body = body;
    const source = { bytes: body, start, end, outer: null, inner: null, isArguments: false, levels: 0 };
    this.scan(this.sourceWithin(source, KIND.text), true);
  }

  result(): ScreenedBytes {
    return { edits: this.takeEdits(), tally: this.tally };
  }

  /** Those since they were last taken. */
  takeEdits(): readonly TextEdit[] {
    if (this.edits.length === 0) return NO_EDITS;
    return withoutOverlaps(this.edits.splice(0));
  }

  onString(node: PlaceNode, start: number, end: number, isEscaped: boolean): void {
    const { kind } = node;
    if (start === end) return;
    if ((kind === KIND.url || kind === KIND.base64) && this.isAttachment(kind, start, end)) return;
    const isFree = kind === KIND.text || kind === KIND.arguments || kind === KIND.echo;
    const once = this.sourceOf(start, end, isEscaped);
    this.scan(this.sourceWithin(once, kind), isFree, kind === KIND.echo);
  }

  /** Base64 cannot be read, and so it is said that it was not. What only claims to be base64 is a text. */
  private isAttachment(kind: KindCode, start: number, end: number): boolean {
    const head = this.body.toString('latin1', start, Math.min(end, start + DATA_HEAD_BYTES));
    const address = DATA_ADDRESS.exec(head);
    if (address === null && kind === KIND.url) return false;
    const encoded = this.body.subarray(start + (address?.[0].length ?? 0), end);
    if (NEVER_IN_BASE64.some((byte) => encoded.includes(byte))) return false;
    this.tally.miss('attachment');
    return true;
  }

  onName(node: PlaceNode, start: number, end: number, isEscaped: boolean): void {
    this.scan(this.sourceOf(start, end, isEscaped), node.kind !== KIND.fragile, false, true);
  }

  /** A number is replaced as a whole, by a string. */
  onNumber(node: PlaceNode, start: number, end: number): void {
    if (node.kind === KIND.echo) return;
    const { body } = this;
    for (const finding of this.find(body, start, end)) {
      const action = this.actionFor(finding, node.kind === KIND.text || node.kind === KIND.arguments);
      this.tally.add(finding, action);
      if (action !== 'mask' && action !== 'cloak') continue;
      const before = body.toString('latin1', start, finding.start);
      const text = before + this.insteadOf(finding, action, body) + body.toString('latin1', finding.end, end);
      this.edits.push({ start, end, replacement: Buffer.from(JSON.stringify(text)) });
      break;
    }
  }

  onIndex(_node: PlaceNode, _value: number): void {}

  onToken(): void {
    this.tally.miss('tokens');
  }

  onEnds(): void {}

  onOpen(_node: PlaceNode): void {
    this.opened.push(this.edits.length);
  }

  onRepeats(node: PlaceNode, start: number, end: number): void {
    this.repeats.push({ node, start, end, depth: this.opened.length });
  }

  onClose(_node: PlaceNode): void {
    const editsBefore = this.opened.pop() ?? 0;
    if (this.repeats.length === 0) return;
    const isChanged = this.edits.length > editsBefore;
    const depth = this.opened.length + 1;
    for (const { node, start, end, depth: of } of this.repeats) {
      if (of >= depth && isChanged) this.edits.push({ start, end, replacement: Buffer.from(node.instead) });
    }
    this.repeats = this.repeats.filter((repeat) => repeat.depth < depth);
  }

  onAmbiguous(start: number, end: number): void {
    this.ambiguous.push([start, end]);
  }

  private sourceOf(start: number, end: number, isEscaped: boolean): Source {
    const source = { inner: null, isArguments: false, levels: 1 };
    if (!isEscaped) return { ...source, bytes: this.body, start, end, outer: null };
    outerText.decode(this.body, start, end);
    return { ...source, bytes: outerText.bytes, start: 0, end: outerText.length, outer: outerText };
  }

  /**
   * Arguments are decoded twice; where a model wrote something else than JSON they are a text as any other. So is a
   * text of a request that is JSON, as results of tools are, but it may be rewritten anywhere.
   */
  private sourceWithin(once: Source, kind: KindCode): Source {
    const { bytes, start, end, outer } = once;
    if (!looksLikeJson(bytes, start, end)) return once;
    const isArguments = kind === KIND.arguments;
    if (!isArguments && (this.rules.stage !== 'input' || kind === KIND.echo || !isJson(bytes, start, end))) return once;
    innerText.decode(bytes, start, end);
    return {
      bytes: innerText.bytes,
      start: 0,
      end: innerText.length,
      outer,
      inner: innerText,
      isArguments,
      levels: isArguments ? 2 : 1,
    };
  }

  private find(bytes: Buffer, start: number, end: number): Finding[] {
    if (this.isOver) return NO_FINDINGS;
    const findings: Finding[] = [];
    const { compiled, stage } = this.rules;
    const isWhole = scanText(compiled, stage, bytes, start, end, findings, start, this.limits);
    if (!isWhole) {
      this.isOver = true;
      this.tally.miss('too_large');
    }
    this.rules.external?.visit(stageOf(compiled, stage)?.externals ?? [], bytes, start, end, findings);
    return findings.length === 0 ? findings : resolveOverlaps(findings);
  }

  private scan(source: Source, isFree: boolean, isEcho = false, isName = false): void {
    const { bytes, start, end } = source;
    const findings = isEcho ? NO_FINDINGS : this.find(bytes, start, end);
    const { values } = this.rules;
    if (findings.length === 0 && values === null) return;
    const restored: FoundPlaceholder[] = [];
    if (values !== null && (isFree || isEcho)) values.find(bytes, start, end, restored);
    for (const finding of findings) this.takeFinding(finding, source, isFree, isName);
    // Both are in the order of the text, and neither overlap among themselves.
    let next = 0;
    for (const { start: from, end: to, value } of restored) {
      while (next < findings.length && (findings[next] as Finding).end <= from) next += 1;
      const finding = findings[next];
      if (value === null) this.tally.unrestored += 1;
      else if (finding === undefined || finding.start >= to) this.edit(source, from, to, value);
    }
  }

  private takeFinding(finding: Finding, source: Source, isFree: boolean, isName: boolean): void {
    const { inner, isArguments } = source;
    const isAcross = isArguments && inner !== null && placeInArguments(inner, finding) === 'across';
    const isRewritable = isFree && !isAcross;
    const action = this.actionFor(finding, isRewritable);
    this.tally.add(finding, action);
    if (action !== 'mask' && action !== 'cloak') return;
    const text = this.insteadOf(finding, action, source.bytes);
    this.edit(
      source,
      finding.start,
      finding.end,
      isName && action === 'mask' ? this.nameOf(text, finding, source.bytes) : text,
    );
  }

  /** What is done about a finding. What may not be rewritten is told, or refused. */
  actionFor({ rule }: Finding, isRewritable: boolean): Action {
    const { action } = rule;
    const { compiled, stage } = this.rules;
    if (action === 'block' || action === 'flag') return action;
    // What a model writes by itself is nothing that its reader has to be given back.
    if (action === 'cloak' && stage === 'output') return 'flag';
    if (isRewritable) return action;
    this.tally.unrewritten += 1;
    return compiled.onFailure === 'refuse' ? 'block' : 'flag';
  }

  insteadOf(finding: Finding, action: 'mask' | 'cloak', bytes: Buffer): string {
    if (action === 'mask') return this.maskOf(finding);
    const { rule, entity, start, end } = finding;
    const { placeholders } = this.rules;
    if (placeholders === null) throw new Error('a value is cloaked where nothing is');
    return placeholders.of(entity, bytes.toString('utf8', start, end), rule.cloak);
  }

  maskOf({ rule, entity }: Finding): string {
    return rule.label ?? `[${entity}]`;
  }

  private nameOf(mask: string, { start, end }: Finding, bytes: Buffer): string {
    const name = bytes.toString('utf8', start, end);
    const number = this.names.get(name) ?? this.names.size + 1;
    this.names.set(name, number);
    return `${mask}#${number}`;
  }

  /** The edit of the body for `text` in the place of bytes[from, to) of the source. */
  private edit(source: Source, from: number, to: number, text: string): void {
    const { outer, inner, isArguments, levels } = source;
    let [start, end, around, inserted] = [from, to, levels, text];
    if (inner !== null) {
      if (isArguments && inner.quotesBefore(from) % 2 === 0) [around, inserted] = [1, JSON.stringify(text)];
      [start, end] = [inner.sourceStart(from), inner.sourceAfter(to)];
    }
    if (outer !== null) [start, end] = [outer.sourceStart(start), outer.sourceAfter(end)];
    this.edits.push({ start, end, replacement: Buffer.from(escapeText(inserted, around)) });
  }
}

const NO_FINDINGS: Finding[] = [];
const NO_EDITS: readonly TextEdit[] = [];

/**
 * Without those that lie within another: an object is read once more as text with all that it holds, however many of
 * its own objects name two types. They come in the order of their ends.
 */
function outermost(ranges: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  let start = Number.POSITIVE_INFINITY;
  return ranges.toReversed().filter(([from]) => {
    const isOuter = from < start;
    if (isOuter) start = from;
    return isOuter;
  });
}

/** Sorted; of two that overlap, the first. */
export function withoutOverlaps(edits: readonly TextEdit[]): readonly TextEdit[] {
  const sorted = edits.toSorted((one, other) => one.start - other.start || other.end - one.end);
  let reached = 0;
  return sorted.filter(({ start, end }) => {
    const isFree = start >= reached;
    if (isFree) reached = end;
    return isFree;
  });
}
const DATA_ADDRESS = /^data:[^,]{0,96};base64,/i;
const DATA_HEAD_BYTES = 128;
/** A blank, `@`, `.` and `:`. A text that somebody could read has one of them; searching takes next to no time. */
const NEVER_IN_BASE64 = [0x20, 0x40, 0x2e, 0x3a];

/**
 * Where something lies in arguments: within one of their strings, or it is a whole number beside them, which becomes a
 * string; what reaches from one into the other cannot be rewritten. `quotes`: how many stand before the decoded text.
 */
export function placeInArguments(
  text: DecodedText,
  { start, end }: { readonly start: number; readonly end: number },
  quotes = 0,
): 'string' | 'number' | 'across' {
  const before = text.quotesBefore(start);
  if (before !== text.quotesBefore(end)) return 'across';
  if ((quotes + before) % 2 === 1) return 'string';
  const { bytes, length } = text;
  for (let at = start; at < end; at++) if (!isDigit(bytes[at] as number)) return 'across';
  return isNumberByte(bytes, start - 1, length) || isNumberByte(bytes, end, length) ? 'across' : 'number';
}

function isNumberByte(bytes: Buffer, at: number, end: number): boolean {
  if (at < 0 || at >= end) return false;
  const byte = bytes[at] as number;
  return isDigit(byte) || byte === 0x2d || byte === 0x2b || byte === 0x2e || (byte | 0x20) === 0x65;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

export function looksLikeJson(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && (bytes[at] as number) <= 0x20) at += 1;
  return bytes[at] === 0x7b || bytes[at] === 0x5b || bytes[at] === 0x22;
}
