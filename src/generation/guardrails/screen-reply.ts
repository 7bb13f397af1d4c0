// The stage in which guardrails screen a reply: a stream as it passes, any other reply (a provider's error too) once it
// is complete. Only replies of requests with rules for them pass this stage.

import { Buffer } from 'node:buffer';
import { looksLikeJson } from '../../domain/guardrails/body-screen.ts';
import type { CompiledPolicy } from '../../domain/guardrails/compile-policy.ts';
import { isUnscreened } from '../../domain/guardrails/screen-whole.ts';
import type { NotScanned, StageTally } from '../../domain/guardrails/screening-report.ts';
import { placeNodes } from '../../domain/guardrails/text-places.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type CapturedReply, isEventStream } from '../reply/capture.ts';
import { withoutLength } from '../reply/transform.ts';
import { applyEdits } from '../request/edits.ts';
import type { EventBytes } from './event-lines.ts';
import { type AskedWhole, refusesUnscreened, screenAndAsk } from './screen-and-ask.ts';
import { type ScreeningWorkers, screenEventInWorker, workMsOf } from './screen-body.ts';
import type { Screening } from './screening.ts';
import { StreamScreen } from './stream-screen.ts';

export interface ScreenReplyParts {
  readonly screening: Screening;
  readonly compiled: CompiledPolicy;
  readonly reply: CapturedReply;
  readonly dialect: Dialect;
  readonly exchange: Exchange;
  readonly workers: ScreeningWorkers;
  readonly clock: Clock;
  /** Stops reading the provider for good. */
  abortCall(): void;
  /** The client gets the refusal instead of the reply, once the end is recorded. */
  refuseInstead(refusal: Refusal): void;
  onOwnFault(fault: unknown): void;
}

/** A longer reply is not kept until its end, and so is not screened. */
const WHOLE_BYTES_MAX = 8_388_608;
/** How long events are screened at a time. The rest of a read waits while the event loop does other work. */
const AT_ONCE_MS = 4;
const NOTHING: readonly Buffer[] = [];
const UNREAD: Refusal = { kind: 'guardrail_unread', unread: 'output' };

/** `passing`: unscreened; `whole`: kept until complete; `stream`: event by event; `over`: bytes are dropped. */
type Mode = 'passing' | 'whole' | 'stream' | 'over';

export class ScreenReply extends ReplyStage {
  protected readonly next: ReplyHandler;
  /** A worker screens a whole reply or an event of a stream, or events wait for their turn. */
  isScreening = false;
  private readonly parts: ScreenReplyParts;
  private mode: Mode = 'passing';
  private status = 0;
  private headers: ReplyHeaders = [];
  private chunks: Buffer[] = [];
  private bytes = 0;
  private stream: StreamScreen | null = null;
  /** The stream is held back until external detectors have been asked about it. */
  private isHolding = false;
  private held: Buffer[] = [];
  private heldBytes = 0;
  private hasAsked = false;
  /** How long the event loop has screened the stream, and how many bytes of it. */
  private workMs = 0;
  private streamedBytes = 0;
  /** How the stream ended while an event was being screened; `chunks` has the bytes that came meanwhile. */
  private ended: { readonly fault: UpstreamFault | null } | null = null;

  constructor(next: ReplyHandler, parts: ScreenReplyParts) {
    super();
    this.next = next;
    const { organizationId } = parts.screening;
    this.parts = organizationId === null ? parts : { ...parts, workers: inTurnsOf(parts.workers, organizationId) };
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    const { reply, dialect, compiled, screening } = this.parts;
    if (reply.encoding !== null) return this.onUnreadable(status, headers, 'reply_encoding');
    this.status = status;
    if (reply.isStream) {
      this.mode = 'stream';
      reply.isReadByLines = true;
      const rules = { compiled, stage: 'output' as const, placeholders: null, values: screening.values };
      this.stream = new StreamScreen(rules, placeNodes(dialect.texts).event);
      this.isHolding = compiled.output?.externals.some(({ external }) => external.output === 'whole') ?? false;
      if (dialect.unit === 'images') this.stream.tally.miss('image_reply');
      this.next.onReplyStart(status, withoutLength(headers));
    } else {
      this.mode = 'whole';
      this.headers = headers;
    }
  }

  /** The reply is a provider's error message, which may repeat what the provider was sent. */
  private get isError(): boolean {
    return this.status >= 300;
  }

  private onUnreadable(status: number, headers: ReplyHeaders, reason: NotScanned): void {
    const { screening, compiled } = this.parts;
    screening.onOutput({ action: 'none', not_scanned: [reason] }, null);
    if (refusesUnscreened(compiled, 'output', isEventStream(headers))) this.refuse(UNREAD);
    else this.next.onReplyStart(status, headers);
  }

  override onReplyData(chunk: Buffer): void {
    switch (this.mode) {
      case 'passing':
        return this.next.onReplyData(chunk);
      case 'stream':
        return this.takeOfStream(chunk);
      case 'whole':
        this.chunks.push(chunk);
        this.bytes += chunk.length;
        if (this.bytes > WHOLE_BYTES_MAX) this.onTooLarge();
        return;
      case 'over':
    }
  }

  private takeOfStream(chunk: Buffer): void {
    const { stream } = this;
    if (stream === null) return;
    if (this.isScreening) return this.keep(stream, chunk);
    this.streamedBytes += chunk.length;
    this.screenSome(stream, (hasTime) => stream.feed(chunk, hasTime));
  }

  private screenSome(stream: StreamScreen, take: (hasTime: () => boolean) => readonly Buffer[]): void {
    const { clock } = this.parts;
    const startedAtMs = clock.monotonicMs();
    const workMaxMs = workMsOf(this.streamedBytes) - this.workMs;
    const pieces = take(() => clock.monotonicMs() - startedAtMs <= Math.min(AT_ONCE_MS, workMaxMs));
    const tookMs = clock.monotonicMs() - startedAtMs;
    this.workMs += tookMs;
    if (tookMs > workMaxMs && stream.endedBy === null) this.giveUp(stream, pieces, 'timeout');
    else this.pass(stream, pieces);
  }

  /** Screening takes too much of the event loop, by rules that were made to be slow, or too much memory. */
  private giveUp(stream: StreamScreen, pieces: readonly Buffer[], reason: NotScanned): void {
    stream.giveUp(reason);
    const rest = stream.endedBy === null ? stream.passUnscreened() : NOTHING;
    this.pass(stream, [...pieces, ...rest]);
    if (this.mode !== 'stream') return;
    this.passHeld();
    this.report(stream.tally);
    this.stream = null;
    this.mode = 'passing';
    const { chunks, ended } = this;
    this.chunks = [];
    for (const chunk of chunks) this.next.onReplyData(chunk);
    if (ended === null) return;
    if (ended.fault === null) this.next.onReplyEnd();
    else this.next.onReplyFault(ended.fault);
  }

  private pass(stream: StreamScreen, pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.passOrHold(stream, piece);
    if (stream.endedBy !== null) this.endStream(stream);
    else if (stream.isEventTooLarge) this.giveUp(stream, NOTHING, 'too_large');
    else if (stream.large !== null) this.screenLarge(stream, stream.large);
    else if (stream.isWaiting) this.screenLater(stream);
  }

  private passOrHold(stream: StreamScreen, piece: Buffer): void {
    if (!this.isHolding) return this.next.onReplyData(piece);
    this.held.push(piece);
    this.heldBytes += piece.length;
    if (this.heldBytes <= WHOLE_BYTES_MAX) return;
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

  /** The stream is over, or the bytes that show its end are here: asks the external detectors about its texts. */
  private askOfStream(stream: StreamScreen): void {
    const { screening } = this.parts;
    this.isScreening = true;
    this.hasAsked = true;
    screening
      .askOfReply(stream.texts)
      .then((answer) => {
        if (this.mode === 'stream') stream.takeVerdicts(answer);
        this.onAnswered(stream, NOTHING);
      })
      .catch((fault: unknown) => this.parts.onOwnFault(fault));
  }

  private asksOf({ texts, external, endedBy }: StreamScreen): boolean {
    return !this.hasAsked && endedBy === null && (texts.length > 0 || external?.isIncomplete === true);
  }

  /** Keeps bytes that come while an event is being screened. */
  private keep(stream: StreamScreen, chunk: Buffer): void {
    this.chunks.push(Buffer.from(chunk));
    this.bytes += chunk.length;
    if (this.bytes <= WHOLE_BYTES_MAX) return;
    // If events only wait for their turn, the rules decide about a stream that is faster than its screening.
    if (stream.large === null && !this.hasAsked) {
      this.isScreening = false;
      return this.giveUp(stream, NOTHING, 'too_large');
    }
    stream.tally.miss('too_large');
    stream.endedBy = 'unscreened';
    this.endStream(stream);
  }

  private screenLarge(stream: StreamScreen, event: EventBytes): void {
    const { compiled, dialect, workers } = this.parts;
    this.isScreening = true;
    screenEventInWorker(compiled, event, { places: dialect.texts, values: stream.values }, workers)
      .then((screened) => stream.takeLarge(screened))
      .then((pieces) => this.onAnswered(stream, pieces))
      .catch((fault: unknown) => this.parts.onOwnFault(fault));
  }

  private screenLater(stream: StreamScreen): void {
    this.afterSockets(() => this.screenSome(stream, (hasTime) => stream.goOn(hasTime)));
  }

  private afterSockets(pass: () => void): void {
    this.isScreening = true;
    socketsRead()
      .then(() => this.goOn(pass))
      .catch((fault: unknown) => this.parts.onOwnFault(fault));
  }

  private onAnswered(stream: StreamScreen, pieces: readonly Buffer[]): void {
    this.goOn(() => this.pass(stream, pieces));
  }

  /** Continues with the awaited result, then with the bytes that came meanwhile, for AT_ONCE_MS at a time. */
  private goOn(pass: () => void): void {
    this.isScreening = false;
    // The client may have left, and the reply's memory may belong to another reply.
    if (this.mode !== 'stream') return;
    const startedAtMs = this.parts.clock.monotonicMs();
    pass();
    while (!this.isScreening && this.mode === 'stream' && this.chunks.length > 0) {
      if (this.parts.clock.monotonicMs() - startedAtMs > AT_ONCE_MS) return this.afterSockets(() => undefined);
      const chunk = this.chunks.shift() as Buffer;
      this.bytes -= chunk.length;
      this.takeOfStream(chunk);
    }
    if (this.isScreening || (this.mode as Mode) === 'over') return;
    if (this.hasAsked) this.passHeld();
    if (this.ended === null) this.onReplyPause();
    else if (this.stream !== null) this.endOf(this.stream, this.ended.fault);
  }

  private endOf(stream: StreamScreen, fault: UpstreamFault | null): void {
    this.ended = { fault };
    if (this.isScreening) return;
    this.pass(stream, stream.end(fault === null));
    if (this.isScreening || this.mode !== 'stream') return;
    if (this.asksOf(stream)) return this.askOfStream(stream);
    this.passHeld();
    this.report(stream.tally);
    if (fault === null) this.next.onReplyEnd();
    else this.next.onReplyFault(fault);
  }

  private onTooLarge(): void {
    const { screening, compiled } = this.parts;
    screening.onOutput({ action: 'none', not_scanned: ['too_large'] }, null);
    if (refusesUnscreened(compiled, 'output')) return this.refuse(UNREAD);
    this.mode = 'passing';
    this.passAsItIs();
  }

  private passAsItIs(): void {
    this.next.onReplyStart(this.status, this.headers);
    for (const chunk of this.chunks) this.next.onReplyData(chunk);
    this.chunks = [];
  }

  override onReplyPause(): void {
    if (this.isScreening) return;
    // The record may be written now, with the findings. The connection may stay open after the end of the stream.
    if (this.mode === 'stream' && this.parts.reply.progress === 'ended' && this.stream !== null) {
      this.pass(this.stream, this.stream.endAll());
      if (this.isScreening || this.mode !== 'stream') return;
      if (this.asksOf(this.stream)) return this.askOfStream(this.stream);
      this.passHeld();
      this.report(this.stream.tally);
    }
    if (this.mode === 'passing' || this.mode === 'stream') this.next.onReplyPause();
  }

  override onReplyEnd(): void {
    if (this.mode === 'over') return;
    if (this.mode === 'whole') return this.screenWhole();
    if (this.stream !== null) this.endOf(this.stream, null);
    else this.next.onReplyEnd();
  }

  override onReplyFault(fault: UpstreamFault): void {
    if (this.mode === 'over') return;
    if (this.mode === 'whole') this.next.onReplyStart(this.status, this.headers);
    if (this.stream !== null) this.endOf(this.stream, fault);
    else this.next.onReplyFault(fault);
  }

  /** The client has left: the findings so far are recorded. */
  leave(): void {
    if (this.stream !== null && this.mode === 'stream') this.report(this.stream.tally);
    if (this.stream !== null) this.stream.hasClientLeft = true;
    this.mode = 'over';
    this.chunks = [];
  }

  private report(tally: StageTally): void {
    this.parts.screening.onOutput(tally.report(), tally.blocked);
  }

  /** Ends a blocked stream: held bytes are not sent, and the stream ends with the dialect's own failure event. */
  private endStream({ tally, endedBy }: StreamScreen): void {
    const { screening, dialect, exchange, reply } = this.parts;
    this.report(tally);
    const blocked = endedBy === 'finding' ? tally.blocked : null;
    const refusal: Refusal = blocked === null ? UNREAD : screening.refusalOf(blocked, 'output');
    this.mode = 'over';
    this.chunks = [];
    this.held = [];
    reply.blocked = refusal;
    // The bytes sent from here on show the client the end.
    reply.progress = 'ended';
    const body = exchange.renderRefusal(refusal).body;
    const event = dialect.failedEvent?.(body, reply.bytes.beginning()) ?? `data: ${body}\n\n`;
    this.parts.abortCall();
    this.next.onReplyData(Buffer.from(event));
    this.next.onReplyEnd();
  }

  /** Refuses a reply of which nothing has been sent. */
  private refuse(refusal: Refusal): void {
    const { reply, exchange, screening } = this.parts;
    this.mode = 'over';
    this.chunks = [];
    reply.blocked = refusal;
    exchange.screeningHeaders = screening.headers();
    this.parts.abortCall();
    this.parts.refuseInstead(refusal);
    this.next.onReplyEnd();
  }

  private screenWhole(): void {
    const { compiled, screening, dialect, workers } = this.parts;
    const { chunks } = this;
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
    // A proxy in front of a provider may refuse in HTML or with an empty body. A 204 has nothing to read.
    const isText = body.length === 0 || (this.isError && !looksLikeJson(body, 0, body.length));
    const parts = isText ? [{ name: '', start: 0, end: body.length }] : null;
    const whole = { stage: 'output' as const, body, places: dialect.texts, parts };
    const by = { workers, ask: (texts: readonly string[]) => screening.askOfReply(texts) };
    const screened = screenAndAsk(by, compiled, whole, { scopes: null, values: screening.values });
    if (!(screened instanceof Promise)) return this.finish(body, screened);
    this.isScreening = true;
    screened.then((found) => this.onScreened(body, found)).catch((fault: unknown) => this.parts.onOwnFault(fault));
  }

  private onScreened(body: Buffer, screened: AskedWhole): void {
    this.isScreening = false;
    // The client may have left, and the reply's memory may belong to another reply.
    if (this.mode === 'whole') this.finish(body, screened);
  }

  private finish(body: Buffer, { edits, report, blocked, refusedFor }: AskedWhole): void {
    const { screening, compiled, exchange, dialect } = this.parts;
    const missed = dialect.unit === 'images' && !this.isError ? (['image_reply'] as const) : [];
    const not_scanned = [...(report.not_scanned ?? []), ...missed];
    screening.onOutput(not_scanned.length === 0 ? report : { ...report, not_scanned }, blocked);
    if (blocked !== null) return this.refuse(screening.refusalOf(blocked, 'output'));
    if (refusedFor !== undefined) return this.refuse(UNREAD);
    if (isUnscreened(report) && refusesUnscreened(compiled, 'output')) return this.refuse(UNREAD);
    exchange.screeningHeaders = screening.headers();
    this.mode = 'over';
    if (edits.length === 0) {
      this.passAsItIs();
    } else {
      this.next.onReplyStart(this.status, withoutLength(this.headers));
      for (const piece of applyEdits(body, edits)) this.next.onReplyData(piece);
    }
    this.next.onReplyEnd();
  }
}
