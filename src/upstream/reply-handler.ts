// The one contract by which a provider's reply travels: from its call, through stages, to whoever takes it.

import type { Buffer } from 'node:buffer';
import type { UpstreamFault } from './http1/connection.ts';
import type { ReplyHeaders } from './http1/reply-head.ts';

/** Hears of one reply. After `onReplyEnd`, `onKeyRefused` or `onReplyFault` it hears nothing more. */
export interface ReplyHandler {
  onReplyStart(status: number, headers: ReplyHeaders): void;
  /** From a call, the chunk is a view on memory that the next read uses again: who keeps it copies it. */
  onReplyData(chunk: Buffer): void;
  /** All that one read of the socket brought has been told, and the reply goes on. */
  onReplyPause(): void;
  onReplyEnd(): void;
  /** The provider does not accept the credential of the call. Told instead of `onReplyStart`. */
  onKeyRefused(status: number): void;
  /** The reply broke off, or there is none. */
  onReplyFault(fault: UpstreamFault): void;
}

/** A handler before another one: it passes on all that it hears, and each stage overrides what it changes. */
export class ReplyStage implements ReplyHandler {
  protected readonly next: ReplyHandler;

  constructor(next: ReplyHandler) {
    this.next = next;
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    this.next.onReplyStart(status, headers);
  }

  onReplyData(chunk: Buffer): void {
    this.next.onReplyData(chunk);
  }

  onReplyPause(): void {
    this.next.onReplyPause();
  }

  onReplyEnd(): void {
    this.next.onReplyEnd();
  }

  onKeyRefused(status: number): void {
    this.next.onKeyRefused(status);
  }

  onReplyFault(fault: UpstreamFault): void {
    this.next.onReplyFault(fault);
  }
}
