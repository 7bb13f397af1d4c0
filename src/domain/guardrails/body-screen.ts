// Screens a whole body of a request or a reply: finds its texts, applies the rules in force to them, and collects the
// edits that the body needs. The body itself is not changed here.

import { Buffer } from 'node:buffer';
import { type CompiledPolicy, stageOf } from './compile-policy.ts';
import { DecodedText, escapeText } from './decoded-text.ts';
import { isDigit } from './detectors/characters.ts';
import type { ExternalTexts } from './external-texts.ts';
import { FINDINGS_MAX, type Finding, resolveOverlaps } from './finding.ts';
import { isJson, JsonWalk, type TextVisitor } from './json-walk.ts';
import type { FoundPlaceholder, Placeholders, RestorableValues } from './placeholders.ts';
import type { Action, Stage } from './policy.ts';
import { type ScanLimits, scanText } from './scan-text.ts';
import { StageTally } from './screening-report.ts';
import { KIND, type KindCode, type PlaceNode, TEXT_NODE } from './text-places.ts';

/** Replaces the bytes from `start` to `end` of the body by `replacement`. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

export interface BodyRules {
  readonly compiled: CompiledPolicy;
  readonly stage: Stage;
  /** Makes the placeholders of a request; null: nothing can be cloaked. */
  readonly placeholders: Placeholders | null;
  /** The values of the request's placeholders, which its reply gets back; null: none. */
  readonly values: RestorableValues | null;
  /** Present if external detectors are asked. */
  readonly external?: ExternalTexts | null;
  /** The scan stops after this many hits (findings, and values that a policy allows); default: no limit. */
  readonly hitsMax?: number;
}

export interface ScreenedBytes {
  /** Sorted, and none overlaps another. */
  readonly edits: readonly TextEdit[];
  readonly tally: StageTally;
}

/** The text that is scanned, and how it was decoded from the body: not at all, once, or twice. */
interface Source {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly outer: DecodedText | null;
  readonly inner: DecodedText | null;
  /** The text is JSON and has to stay valid JSON. */
  readonly isArguments: boolean;
  /** How many nested JSON strings a replacement is written into. */
  readonly levels: number;
}

const outerText = new DecodedText();
const innerText = new DecodedText();

/** Screens one JSON value, or one text, of a body. Made anew for each body. */
export class BodyScreen implements TextVisitor {
  readonly tally = new StageTally();
  protected readonly rules: BodyRules;
  /** The body has more findings than allowed, so the rest of it is not scanned. */
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
  /** The number of each masked member name, so that two different names stay different. */
  private readonly names = new Map<string, number>();

  constructor(rules: BodyRules) {
    this.rules = rules;
    this.limits = this.limitsOfOne();
  }

  private limitsOfOne(): ScanLimits {
    return { findings: FINDINGS_MAX, hits: this.rules.hitsMax ?? Number.POSITIVE_INFINITY };
  }

  /** Screens bytes from `start` to `end` as JSON; false: they are not JSON. */
  json(body: Buffer, start: number, end: number, node: PlaceNode): boolean {
    this.body = body;
    this.limits = this.limitsOfOne();
    this.isOver = false;
    const isWhole = this.walk.walk(body, start, end, node);
    for (const [from, to] of outermost(this.ambiguous.splice(0))) this.walk.walk(body, from, to, TEXT_NODE);
    if (!isWhole) this.tally.miss('malformed');
    return isWhole;
  }

  /** Screens a text outside JSON, such as a part of a form. */
  plain(body: Buffer, start: number, end: number): void {
    this.body = body;
    const source = { bytes: body, start, end, outer: null, inner: null, isArguments: false, levels: 0 };
    this.scan(this.sourceWithin(source, KIND.text), true);
  }

  result(): ScreenedBytes {
    return { edits: this.takeEdits(), tally: this.tally };
  }

  /** The edits since the last call. */
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

  /** Base64 cannot be screened and is reported as an attachment. A string that only claims to be base64 is a text. */
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
   * Decodes a text that contains JSON a second time: the arguments of a call and, in a request, texts such as results
   * of tools. Arguments have to stay JSON; the other texts may be rewritten anywhere. Arguments that do not look like
   * JSON are an ordinary text.
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
    // Findings and restored placeholders are each in text order and without overlaps among themselves.
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

  /**
   * What is done about a finding. A finding that may not be rewritten is flagged, or blocked if the policy refuses on
   * failure.
   */
  actionFor({ rule }: Finding, isRewritable: boolean): Action {
    const { action } = rule;
    const { compiled, stage } = this.rules;
    if (action === 'block' || action === 'flag') return action;
    // Only values of a request are cloaked: a value that the model wrote itself has no original to give back.
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

  /** Adds the edit of the body that replaces bytes[from, to) of the source by `text`. */
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
 * Drops the ranges that lie within another. An ambiguous object is read once more as text, together with the ambiguous
 * objects inside it. `ranges` come in the order of their ends.
 */
function outermost(ranges: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  let start = Number.POSITIVE_INFINITY;
  return ranges.toReversed().filter(([from]) => {
    const isOuter = from < start;
    if (isOuter) start = from;
    return isOuter;
  });
}

/** Sorted; of two edits that overlap, only the first stays. */
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
/** A blank, `@`, `.` and `:`. A readable text has at least one of them, and the search takes next to no time. */
const NEVER_IN_BASE64 = [0x20, 0x40, 0x2e, 0x3a];

/**
 * Where a finding lies in arguments. `string`: within one of their strings. `number`: it is a whole number outside
 * strings, which can become a string. `across`: it crosses the edge of a string or a number and cannot be rewritten.
 * `quotes`: the number of quotes before the decoded text.
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

export function looksLikeJson(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && (bytes[at] as number) <= 0x20) at += 1;
  return bytes[at] === 0x7b || bytes[at] === 0x5b || bytes[at] === 0x22;
}
