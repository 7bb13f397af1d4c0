// Screens an event stream: whole events wait in one queue and leave in order, each once all of its text is decided.
// What matched nothing leaves as the provider's own bytes. A finding is replaced in the event where it begins, and cut
// from those that follow.

import { Buffer } from 'node:buffer';
import { DecodedText, escapeText } from '../../domain/guardrails/decoded-text.ts';
import type { Finding } from '../../domain/guardrails/finding.ts';
import type { BodyRules, TextEdit } from '../../domain/guardrails/screen-body.ts';
import { withoutOverlaps } from '../../domain/guardrails/screen-body.ts';
import type { PlaceNode } from '../../domain/guardrails/text-places.ts';
import { type EventBytes, EventLines, eventOf } from './event-lines.ts';
import { EventScreen, type Piece } from './event-screen.ts';
import { type LaneEdit, type LaneRules, StreamLane } from './stream-lane.ts';

/** Of events that wait. */
const QUEUE_BYTES_MAX = 65_536;
/** Of one event, which may repeat a whole reply. */
const EVENT_BYTES_MAX = 8_388_608;
/** A text whose neighbours go on without it for so many events is not waited for. */
const IDLE_EVENTS_MAX = 8;
const LANES_MAX = 1_024;

interface QueuedPiece {
  readonly piece: Piece;
  readonly lane: StreamLane;
  /** In the lane. */
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

const decoded = new DecodedText();

export class StreamScreen implements LaneRules {
  readonly compiled: BodyRules['compiled'];
  readonly values: BodyRules['values'];
  /** What has ended it; null: it goes on. */
  endedBy: StreamEndedBy = null;
  private readonly screen: EventScreen;
  private readonly node: PlaceNode;
  private readonly lines = new EventLines();
  private readonly lanes = new Map<string, StreamLane>();
  private queue: QueuedEvent[] = [];
  private queuedBytes = 0;

  constructor(rules: BodyRules, node: PlaceNode) {
    this.compiled = rules.compiled;
    this.values = rules.values;
    this.screen = new EventScreen(rules);
    this.node = node;
  }

  get tally(): EventScreen['tally'] {
    return this.screen.tally;
  }

  /** What may go on to the client by now. */
  feed(chunk: Buffer): Buffer[] {
    for (const event of this.lines.take(chunk)) {
      this.take(event);
      if (this.tally.blocked !== null) this.endedBy = 'finding';
      if (this.endedBy !== null) return NOTHING;
    }
    const pieces = this.passed();
    if (this.queuedBytes <= QUEUE_BYTES_MAX && this.lines.restBytes <= EVENT_BYTES_MAX) return pieces;
    this.overflow();
    return [...pieces, ...this.passed()];
  }

  /** All that is left: the stream is over. `isWhole`: no event of it is missing its end. */
  end(isWhole: boolean): Buffer[] {
    const rest = this.lines.takeRest();
    // A last event without its blank line is one all the same; where the stream broke off, nobody can read it.
    if (isWhole && rest.length > 0) this.take(eventOf(rest));
    this.endLanes(() => true);
    if (this.tally.blocked !== null) this.endedBy = 'finding';
    return this.passed();
  }

  decide(finding: Finding, isRewritable: boolean): string | null {
    const action = this.screen.actionFor(finding, isRewritable);
    this.tally.add(finding, action);
    return action === 'mask' ? this.screen.maskOf(finding) : null;
  }

  onStranger(): void {
    this.tally.unrestored += 1;
  }

  onTooMany(): void {
    this.tally.miss('too_large');
    if (this.compiled.onFailure === 'refuse') this.endedBy = 'unscreened';
  }

  private take(event: EventBytes): void {
    const { bytes, dataStart, dataEnd } = event;
    this.queuedBytes += bytes.length;
    if (dataStart === -1) {
      this.queue.push({ event, pieces: NO_PIECES, edits: NO_EDITS, repeats: NO_EDITS });
      if (event.isDone) this.endLanes(() => true);
      return;
    }
    const { isWhole, pieces, edits, repeats, ends } = this.screen.event(bytes, dataStart, dataEnd, this.node);
    if (!isWhole && this.compiled.onFailure === 'refuse') this.endedBy = 'unscreened';
    const queued = pieces.map((piece) => this.appendPiece(piece, bytes));
    this.queue.push({ event, pieces: queued, edits, repeats });
    const grown = new Set(queued.map(({ lane }) => lane));
    for (const lane of grown) lane.advance(false);
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
    }
  }

  /** Of one choice a text that pauses while another one goes on: its held end would hold back the other. */
  private passIdle(grown: ReadonlySet<StreamLane>): void {
    for (const lane of this.lanes.values()) {
      if (lane.decided === lane.end || grown.has(lane)) continue;
      for (const { indexes } of grown) if (indexes[0] === lane.indexes[0]) lane.idleEvents += 1;
      if (lane.idleEvents > IDLE_EVENTS_MAX) lane.advance(true);
    }
  }

  /** More waits than there is room for: the rule for what cannot be screened. */
  private overflow(): void {
    this.tally.miss('too_large');
    if (this.compiled.onFailure === 'refuse') this.endedBy = 'unscreened';
    else for (const lane of this.lanes.values()) lane.advance(true);
  }

  /** Takes those off the queue whose text is decided. Nothing that is held goes out once the stream is blocked. */
  private passed(): Buffer[] {
    const pieces: Buffer[] = [];
    if (this.endedBy !== null) return pieces;
    let count = 0;
    for (const queued of this.queue) {
      if (queued.pieces.some(({ lane, end }) => end > lane.decided)) break;
      count += 1;
      this.queuedBytes -= queued.event.bytes.length;
      addBytes(pieces, written(queued));
      for (const { lane, end } of queued.pieces) lane.forgetEdits(end);
    }
    if (count > 0) this.queue = this.queue.slice(count);
    return pieces;
  }
}

const NOTHING: Buffer[] = [];
const NO_PIECES: readonly QueuedPiece[] = [];
const NO_EDITS: readonly TextEdit[] = [];

/** Pieces that lie behind each other in memory become one. */
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

/** What of the lane's edits lies in this piece of it: the text where it begins, and nothing in its place behind. */
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
