// Screens an event stream as it passes: a few milliseconds at a time in the event loop, a large event in a worker. What
// comes meanwhile is kept. Which bytes may go on is decided in stream-screen.ts.

import { Buffer } from 'node:buffer';
import type { NotScanned, StageTally } from '../../domain/guardrails/screening-report.ts';
import { placeNodes } from '../../domain/guardrails/text-places.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import { withoutLength } from '../reply/transform.ts';
import type { EventBytes } from './event-lines.ts';
import { screenEventInWorker, workMsOf } from './screen-body.ts';
import { KEPT_BYTES_MAX, type ReplyScreen, type ScreenReplyParts, UNREAD } from './screen-reply-parts.ts';
import { StreamScreen } from './stream-screen.ts';

/** How long events are screened at a time. The rest of a read waits while the event loop does other work. */
const AT_ONCE_MS = 4;
const NOTHING: readonly Buffer[] = [];

export class ScreenStreamedReply extends ReplyStage implements ReplyScreen {
  protected readonly next: ReplyHandler;
  isScreening = false;
  private readonly parts: ScreenReplyParts;
  /** null: the rest of the stream passes unscreened. */
  private stream: StreamScreen | null;
  /** The stream has been ended, or the client has left: what still comes is dropped. */
  private isOver = false;
  /** The bytes that came while `isScreening`. */
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  /** How the stream ended while `isScreening`. */
  private ended: { readonly fault: UpstreamFault | null } | null = null;
  /** What may go on is held back until external detectors have been asked about the whole stream. */
  private isHolding: boolean;
  private held: Buffer[] = [];
  private heldBytes = 0;
  private hasAsked = false;
  /** How long the event loop has screened the stream, and how many bytes of it. */
  private workMs = 0;
  private screenedBytes = 0;

  constructor(next: ReplyHandler, parts: ScreenReplyParts) {
    super();
    this.next = next;
    this.parts = parts;
    const { reply, dialect, compiled, screening } = parts;
    reply.isReadByLines = true;
    const rules = { compiled, stage: 'output' as const, placeholders: null, values: screening.values };
    this.stream = new StreamScreen(rules, placeNodes(dialect.texts).event);
    this.isHolding = compiled.output?.externals.some(({ external }) => external.output === 'whole') ?? false;
    if (dialect.unit === 'images') this.stream.tally.miss('image_reply');
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    this.next.onReplyStart(status, withoutLength(headers));
  }

  override onReplyData(chunk: Buffer): void {
    if (this.isOver) return;
    if (this.stream === null) this.next.onReplyData(chunk);
    else if (this.isScreening) this.keepWaiting(this.stream, chunk);
    else this.screenChunk(this.stream, chunk);
  }

  override onReplyPause(): void {
    if (this.isScreening || this.isOver) return;
    const { stream } = this;
    // The record may be written now, with the findings. The connection may stay open after the end of the stream.
    const isEnded = stream !== null && this.parts.reply.progress === 'ended';
    if (isEnded && !this.passLast(stream, stream.endAll())) return;
    this.next.onReplyPause();
  }

  override onReplyEnd(): void {
    this.onEnd(null);
  }

  override onReplyFault(fault: UpstreamFault): void {
    this.onEnd(fault);
  }

  private onEnd(fault: UpstreamFault | null): void {
    if (this.isOver) return;
    if (this.stream === null) this.passEnd(fault);
    else this.endWith(this.stream, fault);
  }

  leave(): void {
    if (this.stream !== null) {
      if (!this.isOver) this.report(this.stream.tally);
      this.stream.hasClientLeft = true;
    }
    this.isOver = true;
    this.waiting = [];
  }

  private get isStillScreened(): boolean {
    return this.stream !== null && !this.isOver;
  }

  private screenChunk(stream: StreamScreen, chunk: Buffer): void {
    this.screenedBytes += chunk.length;
    this.screenSome(stream, (hasTime) => stream.feed(chunk, hasTime));
  }

  private screenSome(stream: StreamScreen, take: (hasTime: () => boolean) => readonly Buffer[]): void {
    const { clock } = this.parts;
    const startedAtMs = clock.monotonicMs();
    const workMaxMs = workMsOf(this.screenedBytes) - this.workMs;
    const pieces = take(() => clock.monotonicMs() - startedAtMs <= Math.min(AT_ONCE_MS, workMaxMs));
    const tookMs = clock.monotonicMs() - startedAtMs;
    this.workMs += tookMs;
    if (tookMs > workMaxMs && stream.endedBy === null) this.giveUp(stream, pieces, 'timeout');
    else this.pass(stream, pieces);
  }

  /** Passes on what may go on, then does what the stream asks for. */
  private pass(stream: StreamScreen, pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.passOrHold(stream, piece);
    if (stream.endedBy !== null) this.endBlocked(stream);
    else if (stream.isEventTooLarge) this.giveUp(stream, NOTHING, 'too_large');
    else if (stream.large !== null) this.screenLarge(stream, stream.large);
    else if (stream.isWaiting) this.screenLater(stream);
  }

  private passOrHold(stream: StreamScreen, piece: Buffer): void {
    if (!this.isHolding) return this.next.onReplyData(piece);
    this.held.push(piece);
    this.heldBytes += piece.length;
    if (this.heldBytes <= KEPT_BYTES_MAX) return;
    // From here on the stream passes unscreened, or ends.
    stream.giveUp('too_large');
    if (stream.endedBy === null) this.passHeld();
  }

  private passHeld(): void {
    const { held } = this;
    this.held = [];
    this.isHolding = false;
    for (const piece of held) this.next.onReplyData(piece);
  }

  /** Screening takes too much of the event loop, by rules that were made to be slow, or too much memory. */
  private giveUp(stream: StreamScreen, pieces: readonly Buffer[], reason: NotScanned): void {
    stream.giveUp(reason);
    const rest = stream.endedBy === null ? stream.passUnscreened() : NOTHING;
    this.pass(stream, [...pieces, ...rest]);
    if (!this.isStillScreened) return;
    this.passHeld();
    this.report(stream.tally);
    this.stream = null;
    const { waiting, ended } = this;
    this.waiting = [];
    for (const chunk of waiting) this.next.onReplyData(chunk);
    if (ended !== null) this.passEnd(ended.fault);
  }

  private keepWaiting(stream: StreamScreen, chunk: Buffer): void {
    this.waiting.push(Buffer.from(chunk));
    this.waitingBytes += chunk.length;
    if (this.waitingBytes <= KEPT_BYTES_MAX) return;
    // If events only wait for their turn, the rules decide about a stream that is faster than its screening.
    if (stream.large === null && !this.hasAsked) {
      this.isScreening = false;
      return this.giveUp(stream, NOTHING, 'too_large');
    }
    stream.tally.miss('too_large');
    stream.endedBy = 'unscreened';
    this.endBlocked(stream);
  }

  private screenLarge(stream: StreamScreen, event: EventBytes): void {
    const { compiled, dialect, workers, relay } = this.parts;
    this.isScreening = true;
    screenEventInWorker(compiled, event, { places: dialect.texts, values: stream.values }, workers)
      .then((screened) => stream.takeLarge(screened))
      .then((pieces) => this.goOn(() => this.pass(stream, pieces)))
      .catch((fault: unknown) => relay.onOwnFault(fault));
  }

  private screenLater(stream: StreamScreen): void {
    this.afterSockets(() => this.screenSome(stream, (hasTime) => stream.goOn(hasTime)));
  }

  private afterSockets(work: () => void): void {
    this.isScreening = true;
    socketsRead()
      .then(() => this.goOn(work))
      .catch((fault: unknown) => this.parts.relay.onOwnFault(fault));
  }

  private asksOf({ texts, external, endedBy }: StreamScreen): boolean {
    return !this.hasAsked && endedBy === null && (texts.length > 0 || external?.isIncomplete === true);
  }

  /** The stream is over, or the bytes that show its end are here: asks the external detectors about its texts. */
  private askOfStream(stream: StreamScreen): void {
    const { screening, relay } = this.parts;
    this.isScreening = true;
    this.hasAsked = true;
    screening
      .askOfReply(stream.texts)
      .then((answer) => {
        if (this.isStillScreened) stream.takeVerdicts(answer);
        this.goOn(() => this.pass(stream, NOTHING));
      })
      .catch((fault: unknown) => relay.onOwnFault(fault));
  }

  /** Continues after a wait with `work`, then with the bytes that came meanwhile, for AT_ONCE_MS at a time. */
  private goOn(work: () => void): void {
    const { clock } = this.parts;
    this.isScreening = false;
    // The client may have left, and the reply's memory may belong to another reply.
    if (!this.isStillScreened) return;
    const startedAtMs = clock.monotonicMs();
    work();
    while (!this.isScreening && !this.isOver && this.stream !== null && this.waiting.length > 0) {
      if (clock.monotonicMs() - startedAtMs > AT_ONCE_MS) return this.afterSockets(() => undefined);
      const chunk = this.waiting.shift() as Buffer;
      this.waitingBytes -= chunk.length;
      this.screenChunk(this.stream, chunk);
    }
    if (this.isScreening || this.isOver) return;
    if (this.hasAsked) this.passHeld();
    if (this.ended === null) this.onReplyPause();
    else if (this.stream !== null) this.endWith(this.stream, this.ended.fault);
  }

  private endWith(stream: StreamScreen, fault: UpstreamFault | null): void {
    this.ended = { fault };
    if (this.isScreening) return;
    if (this.passLast(stream, stream.end(fault === null))) this.passEnd(fault);
  }

  /** Passes on the last of a stream, and reports. False: it waits first, or has been ended or given up by this. */
  private passLast(stream: StreamScreen, pieces: readonly Buffer[]): boolean {
    this.pass(stream, pieces);
    if (this.isScreening || !this.isStillScreened) return false;
    if (this.asksOf(stream)) {
      this.askOfStream(stream);
      return false;
    }
    this.passHeld();
    this.report(stream.tally);
    return true;
  }

  private passEnd(fault: UpstreamFault | null): void {
    if (fault === null) this.next.onReplyEnd();
    else this.next.onReplyFault(fault);
  }

  /** Ends a blocked stream: held bytes are not sent, and the stream ends with the dialect's own failure event. */
  private endBlocked({ tally, endedBy }: StreamScreen): void {
    const { screening, dialect, exchange, reply, relay } = this.parts;
    this.report(tally);
    const blocked = endedBy === 'finding' ? tally.blocked : null;
    const refusal: Refusal = blocked === null ? UNREAD : screening.refusalOf(blocked, 'output');
    this.isOver = true;
    this.waiting = [];
    this.held = [];
    reply.blocked = refusal;
    // The bytes sent from here on show the client the end.
    reply.progress = 'ended';
    const body = exchange.renderRefusal(refusal).body;
    const event = dialect.failedEvent?.(body, reply.bytes.beginning()) ?? `data: ${body}\n\n`;
    relay.abortCall();
    this.next.onReplyData(Buffer.from(event));
    this.next.onReplyEnd();
  }

  private report(tally: StageTally): void {
    this.parts.screening.onOutput(tally.report(), tally.blocked);
  }
}
