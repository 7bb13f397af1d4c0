// Captures a reply as it passes: its bytes, from which the usage is read or tokens are counted at the end, and what its
// events say, above all whether a stream is complete.

import { Buffer } from 'node:buffer';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { contentCodings } from '../../platform/bytes/content-codings.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ReplyHeaders, replyHeader } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import { isStored, type ReplyWatch, type StoredReplyWatch } from '../dialects/dialect.ts';
import { LineFeeds } from '../sse/line-feeds.ts';
import { endsWithWholeEvent, type StreamProgress } from '../sse/stream-end.ts';
import { CaptureBuffer } from './capture-buffer.ts';
import type { RelayParams } from './relay-params.ts';

/** No Content and Reset Content have no body, whatever type their heads name (RFC 9110, 15.3.5 and 15.3.6). */
const WITHOUT_BODY: readonly number[] = [204, 205];

/** What all stages of one relay know of its reply. */
export class CapturedReply {
  /**
   * `waiting` for the head; `relaying`; `settling` while the end is counted and recorded; `settled` once its record is
   * on disk; `closed` once all memory of the reply is released.
   */
  state: 'waiting' | 'relaying' | 'settling' | 'settled' | 'closed' = 'waiting';
  /** The provider's status; 0 before the head. */
  status = 0;
  isStream = false;
  /** Rewrites a stream's line ends to line feeds for the stages that read its lines. null: the reply is no stream. */
  lines: LineFeeds | null = null;
  /** A later stage reads the stream's lines too, so it gets the bytes with rewritten line ends. */
  isReadByLines = false;
  /** The reply's compression, which nobody asked for and which makes it unreadable here. null: it is not compressed. */
  encoding: string | null = null;
  readonly bytes = new CaptureBuffer();
  watch: ReplyWatch | null = null;
  /** null: the provider does not store the reply. */
  stored: StoredReplyWatch | null = null;
  /** The refusal for the client when a guardrail has ended the reply. */
  blocked: Refusal | null = null;
  /** How far a stream is, judged by its own events. */
  progress: StreamProgress = 'open';

  takeHead(status: number, headers: ReplyHeaders): void {
    this.status = status;
    this.encoding = encodingOf(headers);
    // Compressed bytes and a provider's errors contain no events. A reply that never has a body is complete without an
    // event.
    const mayHaveEvents = status < 300 && !WITHOUT_BODY.includes(status) && this.encoding === null;
    this.isStream = mayHaveEvents && isEventStream(headers);
    if (this.isStream) this.lines = new LineFeeds();
  }
}

export class Capture extends ReplyStage {
  protected readonly next: ReplyHandler;
  private readonly reply: CapturedReply;
  private readonly params: RelayParams;
  private readonly clock: Clock;

  constructor(next: ReplyHandler, reply: CapturedReply, params: RelayParams, clock: Clock) {
    super();
    this.next = next;
    this.reply = reply;
    this.params = params;
    this.clock = clock;
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    const { reply } = this;
    if (reply.state === 'waiting') reply.state = 'relaying';
    reply.takeHead(status, headers);
    if (status < 300 && reply.encoding === null) this.watchReply();
    this.next.onReplyStart(status, headers);
  }

  private watchReply(): void {
    const { reply } = this;
    const { dialect, read } = this.params;
    if (isStored(read.bounds)) reply.stored = dialect.watchStoredReply?.() ?? null;
    if (dialect.watchReply !== undefined) reply.watch = dialect.watchReply(reply.isStream, read.bounds.answers);
    else if (reply.isStream) reply.watch = dialect.watchStreamEnd();
  }

  /** Passes on the same bytes in memory that does not change until the reply is closed. */
  override onReplyData(read: Buffer): void {
    const { reply } = this;
    const { execution } = this.params;
    if (execution.firstByteAtMs === null) execution.firstByteAtMs = this.clock.monotonicMs();
    const lines = reply.lines?.feed(read) ?? read;
    const kept = reply.bytes.append(lines);
    if (reply.watch !== null) reply.progress = reply.watch.feed(kept) ?? 'open';
    if (reply.isStream) reply.stored?.feed(kept);
    this.next.onReplyData(lines === read || reply.isReadByLines ? kept : Buffer.from(read));
  }

  /** A stream that did not finish must not look finished, however cleanly the provider ended it. */
  override onReplyEnd(): void {
    if (this.isUnfinishedStream()) this.next.onReplyFault('cut');
    else this.next.onReplyEnd();
  }

  private isUnfinishedStream(): boolean {
    const { isStream, watch, progress, bytes } = this.reply;
    if (!isStream || watch === null || progress === 'ended') return false;
    if (bytes.totalBytes === 0) return true;
    if (progress === 'open' && this.params.dialect.isWholeWithoutEnd?.(bytes.end()) !== true) return true;
    return !endsWithWholeEvent(bytes.end());
  }
}

export function isEventStream(headers: ReplyHeaders): boolean {
  return /^text\/event-stream/i.test(replyHeader(headers, 'content-type') ?? '');
}

const ENCODING = /^[a-z0-9-]{1,20}$/;

/** The name goes into the record, so several codings, or one that is no proper name, become `unknown`. */
function encodingOf(headers: ReplyHeaders): string | null {
  const [coding, ...others] = contentCodings(headers);
  if (coding === undefined) return null;
  return others.length === 0 && ENCODING.test(coding) ? coding : 'unknown';
}
