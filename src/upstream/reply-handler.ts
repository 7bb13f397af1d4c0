// The interface through which a provider's reply passes: from its call, through stages, to its last receiver.

import type { Buffer } from 'node:buffer';
import type { UpstreamFault } from './call-connection.ts';
import type { ReplyHeaders } from './http1/reply-head.ts';
import type { Complaint } from './key-complaint.ts';

/** Receives one reply. After `onReplyEnd`, `onKeyRefused` or `onReplyFault` nothing more is called. */
export interface ReplyHandler {
  onReplyStart(status: number, headers: ReplyHeaders): void;
  /** A chunk from a call is a view of memory that the next read overwrites: whoever keeps it must copy it. */
  onReplyData(chunk: Buffer): void;
  /** Everything from one read of the socket was passed on, and the reply continues. */
  onReplyPause(): void;
  onReplyEnd(): void;
  /**
   * The provider does not accept the credential of the call; `complaint` says why. Called instead of `onReplyStart`.
   */
  onKeyRefused(status: number, complaint: Complaint): void;
  /** The reply broke off, or there was none. `error`: what the system or the other side said of it, if anything. */
  onReplyFault(fault: UpstreamFault, error?: Error): void;
}

/**
 * A handler in front of another one. It passes every call on, and each stage overrides what it changes. Each subclass
 * declares its own field `next`: V8 knows where the field of one class lies, but must look up a field of the base
 * class.
 */
export abstract class ReplyStage implements ReplyHandler {
  protected abstract readonly next: ReplyHandler;

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

  onKeyRefused(status: number, complaint: Complaint): void {
    this.next.onKeyRefused(status, complaint);
  }

  onReplyFault(fault: UpstreamFault, error?: Error): void {
    this.next.onReplyFault(fault, error);
  }
}
