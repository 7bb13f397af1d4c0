// Screens an event stream: whole events wait in one queue and leave in order, each once all of its text is decided.
// Events without findings leave as the provider's own bytes. A finding is replaced in the event where it begins, and
// cut from the events after it.

import { Buffer } from 'node:buffer';
import type { BodyRules, TextEdit } from '../../domain/guardrails/body-screen.ts';
import { withoutOverlaps } from '../../domain/guardrails/body-screen.ts';
import { DecodedText, escapeText } from '../../domain/guardrails/decoded-text.ts';
import { EventScreen, type Piece, type ScreenedEvent } from '../../domain/guardrails/event-screen.ts';
import { ExternalTexts } from '../../domain/guardrails/external-texts.ts';
import { type Finding, resolveOverlaps } from '../../domain/guardrails/finding.ts';
import type { LargeEvent } from '../../domain/guardrails/screen-event-task.ts';
import type { NotScanned } from '../../domain/guardrails/screening-report.ts';
import type { PlaceNode } from '../../domain/guardrails/text-places.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import { type EventBytes, EventLines, eventOf } from './event-lines.ts';
import type { ExternalAnswer } from './external-detectors.ts';
import { mustAnswer, refusesUnscreened, refusesWithoutAnswer } from './screen-and-ask.ts';
import { inlineBytesMax } from './screen-body.ts';
import { type LaneEdit, type LaneRules, StreamLane } from './stream-lane.ts';

/** The most bytes of waiting events together, large ones not counted. */
const QUEUE_BYTES_MAX = 65_536;
/** The most bytes of one event, which may repeat a whole reply, and of the large events that wait. */
const EVENT_BYTES_MAX = 8_388_608;
/** A text that pauses is not waited for after this many events of other texts of its choice. */
const IDLE_EVENTS_MAX = 8;
const LANES_MAX = 1_024;

interface QueuedPiece {
  readonly piece: Piece;
  readonly lane: StreamLane;
  /** Offsets in the lane. */
  readonly start: number;
  readonly end: number;
}

interface QueuedEvent {
  readonly event: EventBytes;
  readonly pieces: readonly QueuedPiece[];
  readonly edits: readonly TextEdit[];
  readonly repeats: readonly TextEdit[];
}

export type StreamEndedBy = 'finding' | 'unscreened' | null;

/** The decoded text of one piece, until the next is decoded. A lane copies what it takes. */
const decoded = new DecodedText();

export class StreamScreen implements LaneRules {
  readonly compiled: BodyRules['compiled'];
  readonly values: BodyRules['values'];
  readonly external: ExternalTexts | null;
  /** What has ended the stream; null: it goes on. */
  endedBy: StreamEndedBy = null;
  private readonly screen: EventScreen;
  private readonly node: PlaceNode;
  private readonly lines = new EventLines();
  private readonly lanes = new Map<string, StreamLane>();
  private queue: QueuedEvent[] = [];
  private queuedBytes = 0;
  private largeBytes = 0;
  /** Events that are not screened yet. If the first is large, it is screened by a worker. */
  private unread: EventBytes[] = [];
  /** The client has left. */
  hasClientLeft = false;
  private readonly inlineBytesMax: number;

  constructor(rules: BodyRules, node: PlaceNode) {
    this.compiled = rules.compiled;
    this.values = rules.values;
    this.external = (rules.compiled.output?.externals.length ?? 0) > 0 ? new ExternalTexts(null) : null;
    this.screen = new EventScreen({ ...rules, external: this.external });
    this.node = node;
    this.inlineBytesMax = inlineBytesMax(rules.compiled, 'output');
  }

  /** The large event that a worker must screen before the stream goes on; null: there is none. */
  get large(): EventBytes | null {
    const [event] = this.unread;
    return event !== undefined && this.isLarge(event) ? event : null;
  }

  /** Whether some events are not screened yet. */
  get isWaiting(): boolean {
    return this.unread.length > 0;
  }

  /** Whether an incomplete event has more bytes than an event may have. */
  get isEventTooLarge(): boolean {
    return this.lines.restBytes > EVENT_BYTES_MAX;
  }

  get tally(): EventScreen['tally'] {
    return this.screen.tally;
  }

  /** Returns what may go on now. `hasTime` is called after each event; if false, the others wait for `goOn`. */
  feed(chunk: Buffer, hasTime: () => boolean): Buffer[] {
    return this.takeAll(this.lines.take(chunk), hasTime);
  }

  /** Like `feed`, with the events that wait. */
  goOn(hasTime: () => boolean): Buffer[] {
    return this.takeAll(this.unread, hasTime);
  }

  /** Takes the result of the large event, and returns what may go on. null: the event could not be screened in time. */
  async takeLarge(screened: LargeEvent | null): Promise<Buffer[]> {
    const [event, ...behind] = this.unread;
    if (event === undefined) throw new Error('no event waits for its screening');
    if (screened !== null) {
      this.tally.addReport(screened.report, screened.blocked);
      for (const text of screened.texts) this.external?.collect(text);
      if (screened.isIncomplete && this.external !== null) this.external.isIncomplete = true;
      if (screened.report.not_scanned?.includes('too_large') === true) this.giveUp('too_large');
      await this.queueLarge(event, screened.event);
    } else {
      this.giveUp('timeout');
      this.queueEvent(event, NO_TEXTS);
    }
    this.unread = behind;
    return this.endedBy !== null || this.endIfBlocked() ? NOTHING : this.passedWithinRoom();
  }

  private takeAll(events: readonly EventBytes[], hasTime: () => boolean): Buffer[] {
    this.unread = [];
    for (const [index, event] of events.entries()) {
      if (this.isLarge(event) || (index > 0 && !hasTime())) {
        this.unread = events.slice(index);
        return this.passedWithinRoom();
      }
      this.take(event);
      if (this.endIfBlocked() || this.endedBy !== null) return NOTHING;
    }
    return this.passedWithinRoom();
  }

  private isLarge({ bytes, dataStart }: EventBytes): boolean {
    return dataStart !== -1 && bytes.length > this.inlineBytesMax;
  }

  /** Ends the stream if a finding blocks it. Returns whether one does. */
  private endIfBlocked(): boolean {
    if (this.tally.blocked !== null) this.endedBy = 'finding';
    return this.endedBy === 'finding';
  }

  /**
   * The stream is over: returns the rest. `isWhole`: its last event is complete. If this leaves a large event or
   * waiting events, it must be called again after they are screened.
   */
  end(isWhole: boolean): Buffer[] {
    const rest = this.lines.takeRest();
    // A last event may lack its blank line. If the stream broke off, the rest is no readable event.
    const last = isWhole && rest.length > 0 ? [eventOf(rest)] : [];
    if (this.isWaiting) throw new Error('a stream ends before the events that wait');
    const pieces = this.takeAll(last, () => true);
    return this.large === null && this.endedBy === null ? [...pieces, ...this.endAll()] : pieces;
  }

  /** Ends all texts, and returns what may go on. */
  endAll(): Buffer[] {
    this.endLanes(() => true);
    if (this.tally.blocked !== null) this.endedBy = 'finding';
    return this.passed();
  }

  /** Returns everything that waits, and the bytes of an incomplete event. The rest of the stream bypasses this. */
  passUnscreened(): Buffer[] {
    const pieces = this.endAll();
    if (this.endedBy !== null) return NOTHING;
    const behind = this.unread.map(({ original }) => original);
    this.unread = [];
    return [...pieces, ...behind, this.lines.takeRest()];
  }

  decide(finding: Finding, isRewritable: boolean): string | null {
    const action = this.screen.actionFor(finding, isRewritable);
    this.tally.add(finding, action);
    return action === 'mask' ? this.screen.maskOf(finding) : null;
  }

  onUnknownPlaceholder(): void {
    this.tally.unrestored += 1;
  }

  onTooMany(): void {
    this.giveUp('too_large');
  }

  /** The rest of the stream counts as not screened, which ends the stream if the rules say so. */
  giveUp(reason: NotScanned): void {
    this.tally.miss(reason);
    if (refusesUnscreened(this.compiled, 'output', true)) this.endedBy = 'unscreened';
  }

  private take(event: EventBytes): void {
    const { bytes, dataStart, dataEnd } = event;
    if (dataStart === -1) {
      this.queueEvent(event, NO_TEXTS);
      if (event.isDone) this.endLanes(() => true);
      return;
    }
    const screened = this.screen.event(bytes, dataStart, dataEnd, this.node);
    if (this.screen.isOver) this.giveUp('too_large');
    const grown = this.queueEvent(event, screened);
    for (const lane of grown) lane.advance(false);
    this.afterEvent(screened, grown);
  }

  /** Queues a large event. Its growing texts are screened a slice at a time, with the event loop free in between. */
  private async queueLarge(event: EventBytes, screened: ScreenedEvent): Promise<void> {
    const grown = new Set<StreamLane>();
    const pieces: QueuedPiece[] = [];
    for (const piece of screened.pieces) {
      const lane = this.laneOf(piece);
      const start = lane.end;
      const text = textOfPiece(piece, event.bytes);
      for (let at = 0; at < text.length; at += this.inlineBytesMax) {
        lane.append(text, at, Math.min(text.length, at + this.inlineBytesMax));
        lane.advance(false);
        await socketsRead();
        if (this.hasClientLeft || this.endedBy !== null) return;
      }
      grown.add(lane);
      pieces.push({ piece, lane, start, end: lane.end });
    }
    this.push({ event, pieces, edits: screened.edits, repeats: screened.repeats });
    this.afterEvent(screened, grown);
  }

  private queueEvent(event: EventBytes, { pieces, edits, repeats }: ScreenedEvent): ReadonlySet<StreamLane> {
    const queued = pieces.map((piece) => this.appendPiece(piece, event.bytes));
    this.push({ event, pieces: queued, edits, repeats });
    return new Set(queued.map(({ lane }) => lane));
  }

  private push(queued: QueuedEvent): void {
    if (this.isLarge(queued.event)) this.largeBytes += queued.event.bytes.length;
    else this.queuedBytes += queued.event.bytes.length;
    this.queue.push(queued);
  }

  private afterEvent({ isWhole, ends }: ScreenedEvent, grown: ReadonlySet<StreamLane>): void {
    if (!isWhole) this.giveUp('malformed');
    for (const [outer, within] of ends)
      this.endLanes(
        ({ indexes }) => (outer === -1 || indexes[0] === outer) && (within === -1 || indexes[1] === within),
      );
    if (grown.size > 0 && this.lanes.size > 1) this.passIdle(grown);
  }

  private appendPiece(piece: Piece, bytes: Buffer): QueuedPiece {
    const lane = this.laneOf(piece);
    const start = lane.end;
    if (piece.isEscaped) {
      decoded.decode(bytes, piece.start, piece.end);
      lane.append(decoded.bytes, 0, decoded.length);
    } else {
      lane.append(bytes, piece.start, piece.end);
    }
    return { piece, lane, start, end: lane.end };
  }

  private laneOf({ lane: name, as, indexes }: Piece): StreamLane {
    const key = `${name} ${indexes[0]} ${indexes[1]}`;
    let lane = this.lanes.get(key);
    if (lane === undefined) {
      if (this.lanes.size >= LANES_MAX) this.endLanes(() => true);
      lane = new StreamLane(this, as, indexes);
      this.lanes.set(key, lane);
    }
    return lane;
  }

  private endLanes(isEnded: (lane: StreamLane) => boolean): void {
    for (const [key, lane] of this.lanes) {
      if (!isEnded(lane)) continue;
      lane.advance(true);
      this.lanes.delete(key);
      if (lane.whole === null || this.external === null) continue;
      const text = Buffer.concat(lane.whole);
      this.external.visit([], text, 0, text.length, []);
    }
  }

  /** The texts to ask external detectors about once everything has come. */
  get texts(): readonly string[] {
    return this.external?.collected ?? [];
  }

  /** External detectors' findings cannot be rewritten any more: they are recorded, or end the stream. */
  takeVerdicts({ verdicts, silent }: ExternalAnswer): void {
    const said = new ExternalTexts(verdicts);
    const externals = this.compiled.output?.externals ?? [];
    for (const text of this.texts) {
      const bytes = Buffer.from(text);
      const findings: Finding[] = [];
      said.visit(externals, bytes, 0, bytes.length, findings);
      for (const finding of resolveOverlaps(findings)) this.tally.add(finding, this.screen.actionFor(finding, false));
    }
    const isIncomplete = this.external?.isIncomplete === true;
    if (silent.length > 0 || isIncomplete) this.tally.miss('external');
    const isUnanswered = silent.some((external) => refusesWithoutAnswer(external, true));
    const isRefused = isUnanswered || (isIncomplete && mustAnswer(this.compiled, 'output', true));
    if (!this.endIfBlocked() && isRefused) this.endedBy = 'unscreened';
  }

  /** Stops waiting for a text that pauses while another text of the same choice goes on, which it would hold back. */
  private passIdle(grown: ReadonlySet<StreamLane>): void {
    for (const lane of this.lanes.values()) {
      if (lane.decided === lane.end || grown.has(lane)) continue;
      for (const { indexes } of grown) if (indexes[0] === lane.indexes[0]) lane.idleEvents += 1;
      if (lane.idleEvents > IDLE_EVENTS_MAX) lane.advance(true);
    }
  }

  /**
   * Returns the decided events. If more waits than there is room for, everything is treated by the rule for text that
   * cannot be screened.
   */
  private passedWithinRoom(): Buffer[] {
    const pieces = this.passed();
    if (this.queuedBytes <= QUEUE_BYTES_MAX && this.largeBytes <= EVENT_BYTES_MAX) return pieces;
    this.giveUp('too_large');
    if (this.endedBy === null) for (const lane of this.lanes.values()) lane.advance(true);
    return this.endIfBlocked() ? pieces : [...pieces, ...this.passed()];
  }

  /** Takes the decided events off the queue. Once the stream has ended, nothing held goes out. */
  private passed(): Buffer[] {
    const pieces: Buffer[] = [];
    if (this.endedBy !== null) return pieces;
    let count = 0;
    for (const queued of this.queue) {
      if (queued.pieces.some(({ lane, end }) => end > lane.decided)) break;
      count += 1;
      if (this.isLarge(queued.event)) this.largeBytes -= queued.event.bytes.length;
      else this.queuedBytes -= queued.event.bytes.length;
      addBytes(pieces, written(queued));
      for (const { lane, end } of queued.pieces) lane.forgetEdits(end);
    }
    if (count > 0) this.queue = this.queue.slice(count);
    return pieces;
  }
}

const NOTHING: Buffer[] = [];
const NO_TEXTS: ScreenedEvent = { isWhole: true, pieces: [], edits: [], repeats: [], ends: [] };

/** The text of a piece; in memory of its own if it had to be decoded. */
function textOfPiece({ start, end, isEscaped }: Piece, bytes: Buffer): Buffer {
  if (!isEscaped) return bytes.subarray(start, end);
  decoded.decode(bytes, start, end);
  return Buffer.from(decoded.bytes.subarray(0, decoded.length));
}

/** Adds bytes to the pieces; bytes that follow the last piece in memory extend it. */
function addBytes(pieces: Buffer[], bytes: Buffer): void {
  const last = pieces.at(-1);
  if (last !== undefined && last.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset)
    pieces[pieces.length - 1] = Buffer.from(bytes.buffer, last.byteOffset, last.length + bytes.length);
  else pieces.push(bytes);
}

function written({ event, pieces, edits, repeats }: QueuedEvent): Buffer {
  const changed = pieces.flatMap((queued) => editsOf(queued, event.bytes));
  if (changed.length === 0 && edits.length === 0) return event.original;
  const all = withoutOverlaps([...edits, ...changed, ...(changed.length === 0 ? [] : repeats)]);
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end, replacement } of all) {
    parts.push(event.bytes.subarray(at, start), replacement);
    at = end;
  }
  parts.push(event.bytes.subarray(at));
  return Buffer.concat(parts);
}

/** The lane's edits within this piece: the replacement in the piece where an edit begins, and nothing in later ones. */
function editsOf({ piece, lane, start, end }: QueuedPiece, bytes: Buffer): TextEdit[] {
  const own = lane.edits.filter((edit) => edit.start < end && edit.end > start);
  if (own.length === 0) return [];
  if (piece.isEscaped) decoded.decode(bytes, piece.start, piece.end);
  return own.map((edit: LaneEdit) => {
    const from = Math.max(edit.start, start) - start;
    const to = Math.min(edit.end, end) - start;
    return {
      start: piece.isEscaped ? decoded.sourceStart(from) : piece.start + from,
      end: piece.isEscaped ? decoded.sourceAfter(to) : piece.start + to,
      replacement: Buffer.from(edit.start >= start ? escapeText(edit.text, 1) : ''),
    };
  });
}
