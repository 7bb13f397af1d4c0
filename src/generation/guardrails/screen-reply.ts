// The stage in which guardrails screen a reply. Once the head is here it chooses how: a stream as it passes
// (screen-streamed-reply.ts), any other reply, a provider's error too, once it is complete (screen-whole-reply.ts).

import type { Buffer } from 'node:buffer';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import type { ReplyHeaders } from '../../upstream/http1/reply-head.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { ReplyScreen, ScreenReplyParts } from './screen-reply-parts.ts';
import { ScreenStreamedReply } from './screen-streamed-reply.ts';
import { ScreenWholeReply } from './screen-whole-reply.ts';
import type { Screening } from './screening.ts';

/** The stage to put in front of `next`; null: no guardrail screens the reply. */
export function screenReplyBefore(
  next: ReplyHandler,
  screening: Screening | null,
  parts: Omit<ScreenReplyParts, 'screening' | 'compiled'>,
): ScreenReply | null {
  if (screening?.compiled == null || !screening.screensReply) return null;
  return new ScreenReply(next, { ...parts, screening, compiled: screening.compiled });
}

export class ScreenReply extends ReplyStage {
  protected readonly next: ReplyHandler;
  private readonly parts: ScreenReplyParts;
  /** null: the reply has not begun. */
  private screen: ReplyScreen | null = null;

  constructor(next: ReplyHandler, parts: ScreenReplyParts) {
    super();
    this.next = next;
    const { organizationId } = parts.screening;
    this.parts = organizationId === null ? parts : { ...parts, workers: inTurnsOf(parts.workers, organizationId) };
  }

  get isScreening(): boolean {
    return this.screen?.isScreening === true;
  }

  leave(): void {
    this.screen?.leave();
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    const { next, parts } = this;
    this.screen = parts.reply.isStream ? new ScreenStreamedReply(next, parts) : new ScreenWholeReply(next, parts);
    this.screen.onReplyStart(status, headers);
  }

  override onReplyData(chunk: Buffer): void {
    this.receiver.onReplyData(chunk);
  }

  override onReplyPause(): void {
    this.receiver.onReplyPause();
  }

  override onReplyEnd(): void {
    this.receiver.onReplyEnd();
  }

  override onReplyFault(fault: UpstreamFault): void {
    this.receiver.onReplyFault(fault);
  }

  private get receiver(): ReplyHandler {
    return this.screen ?? this.next;
  }
}
