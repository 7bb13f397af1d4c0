// Screens a reply that is no event stream: keeps it until it is complete, then passes it on as the rules allow, or
// refuses it.

import { Buffer } from 'node:buffer';
import { looksLikeJson } from '../../domain/guardrails/body-screen.ts';
import { isUnscreened } from '../../domain/guardrails/screen-whole.ts';
import type { NotScanned } from '../../domain/guardrails/screening-report.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import { isEventStream } from '../reply/capture.ts';
import { withoutLength } from '../reply/transform.ts';
import { applyEdits } from '../request/edits.ts';
import { type AskedWhole, refusesUnscreened, screenAndAsk } from './screen-and-ask.ts';
import { KEPT_BYTES_MAX, type ReplyScreen, type ScreenReplyParts, UNREAD } from './screen-reply-parts.ts';

/** `kept`: nothing passes before the end; `passing`: it passes unscreened; `over`: what still comes is dropped. */
type Mode = 'kept' | 'passing' | 'over';

export class ScreenWholeReply extends ReplyStage implements ReplyScreen {
  protected readonly next: ReplyHandler;
  isScreening = false;
  private readonly parts: ScreenReplyParts;
  private mode: Mode = 'kept';
  private status = 0;
  private headers: ReplyHeaders = [];
  private chunks: Buffer[] = [];
  private keptBytes = 0;

  constructor(next: ReplyHandler, parts: ScreenReplyParts) {
    super();
    this.next = next;
    this.parts = parts;
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    this.headers = headers;
    if (this.parts.reply.encoding !== null) this.giveUp('reply_encoding', isEventStream(headers));
  }

  override onReplyData(chunk: Buffer): void {
    if (this.mode === 'passing') this.next.onReplyData(chunk);
    if (this.mode !== 'kept') return;
    this.chunks.push(chunk);
    this.keptBytes += chunk.length;
    if (this.keptBytes > KEPT_BYTES_MAX) this.giveUp('too_large', false);
  }

  override onReplyPause(): void {
    if (this.mode === 'passing') this.next.onReplyPause();
  }

  override onReplyEnd(): void {
    if (this.mode === 'kept') this.screenKept();
    else if (this.mode === 'passing') this.next.onReplyEnd();
  }

  override onReplyFault(fault: UpstreamFault): void {
    if (this.mode === 'over') return;
    if (this.mode === 'kept') this.next.onReplyStart(this.status, this.headers);
    this.next.onReplyFault(fault);
  }

  leave(): void {
    this.mode = 'over';
    this.chunks = [];
  }

  /** The reply cannot be screened: it is refused if the rules say so, and else passes as it is. */
  private giveUp(reason: NotScanned, isStream: boolean): void {
    const { screening, compiled } = this.parts;
    screening.onOutput({ action: 'none', not_scanned: [reason] }, null);
    if (refusesUnscreened(compiled, 'output', isStream)) return this.refuse(UNREAD);
    this.mode = 'passing';
    this.passAsItIs();
  }

  private passAsItIs(): void {
    this.next.onReplyStart(this.status, this.headers);
    for (const chunk of this.chunks) this.next.onReplyData(chunk);
    this.chunks = [];
  }

  /** Nothing of the reply has been sent: the client gets the refusal instead. */
  private refuse(refusal: Refusal): void {
    const { reply, exchange, screening, relay } = this.parts;
    this.mode = 'over';
    this.chunks = [];
    reply.blocked = refusal;
    exchange.screeningHeaders = screening.headers();
    relay.abortCall();
    relay.refuseInstead(refusal);
    this.next.onReplyEnd();
  }

  private screenKept(): void {
    const { compiled, screening, dialect, workers, relay } = this.parts;
    const { chunks } = this;
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
    // A proxy in front of a provider may refuse in HTML or with an empty body. A 204 has nothing to read.
    const isText = body.length === 0 || (this.isError && !looksLikeJson(body, 0, body.length));
    const parts = isText ? [{ name: '', start: 0, end: body.length }] : null;
    const whole = { stage: 'output' as const, body, places: dialect.texts, parts };
    const by = { workers, ask: (texts: readonly string[]) => screening.askOfReply(texts) };
    const screened = screenAndAsk(by, compiled, whole, { scopes: null, values: screening.values });
    if (!(screened instanceof Promise)) return this.passScreened(body, screened);
    this.isScreening = true;
    screened.then((found) => this.onScreened(body, found)).catch((fault: unknown) => relay.onOwnFault(fault));
  }

  /** The reply is a provider's error message, which may repeat what the provider was sent. */
  private get isError(): boolean {
    return this.status >= 300;
  }

  private onScreened(body: Buffer, screened: AskedWhole): void {
    this.isScreening = false;
    // The client may have left, and the reply's memory may belong to another reply.
    if (this.mode === 'kept') this.passScreened(body, screened);
  }

  private passScreened(body: Buffer, { edits, report, blocked, refusedFor }: AskedWhole): void {
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
