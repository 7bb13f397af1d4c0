// The stage between a call and its handler that finds out whether a reply refuses the credential of the call. A 401 or
// 402 does. A 400 or 403 is held back until enough of it has arrived to tell; if it does not refuse the key, all of it
// is passed on. For an organization's own key the reason matters as well, and a 404 or 429 may also refuse it.

import { Buffer } from 'node:buffer';
import type { KeyRefusalWording } from '../domain/models/provider.ts';
import type { UpstreamFault } from './call-connection.ts';
import type { ReplyHeaders } from './http1/reply-head.ts';
import { type Complaint, EXAMINED_BYTES_MAX, keyRefusalOf } from './key-complaint.ts';
import { type ReplyHandler, ReplyStage } from './reply-handler.ts';

/** The longest that the decision waits for the rest of a reply. */
const EXAMINING_MS = 2_000;

/** The call whose reply is examined. */
export interface ExaminedCall {
  /** False once the handler has aborted or discarded the call. */
  readonly isHeard: boolean;
  refuseKey(status: number, complaint: Complaint): void;
  /** Ends the call as if its connection had failed. */
  fail(fault: UpstreamFault): void;
}

export function mayRefuseKey(status: number, isOwnKey: boolean): boolean {
  return (status >= 400 && status <= 403) || (isOwnKey && (status === 404 || status === 429));
}

export interface ExamineComplaintParams {
  /** How this provider words the refusal of a key, in addition to the wordings that count for every provider. */
  readonly wordings?: readonly KeyRefusalWording[];
  /** The key is an organization's own. */
  readonly isOwnKey?: boolean;
}

export class ExamineComplaint extends ReplyStage {
  protected readonly next: ReplyHandler;
  private readonly call: ExaminedCall;
  private readonly wordings: readonly KeyRefusalWording[];
  private readonly isOwnKey: boolean;
  private status = 0;
  private headers: ReplyHeaders = [];
  private chunks: Buffer[] = [];
  private bytes = 0;
  private isDecided = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    next: ReplyHandler,
    call: ExaminedCall,
    { wordings = [], isOwnKey = false }: ExamineComplaintParams = {},
  ) {
    super();
    this.next = next;
    this.call = call;
    this.wordings = wordings;
    this.isOwnKey = isOwnKey;
  }

  override onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    this.headers = headers;
    if (status === 402 || (status === 401 && !this.isOwnKey)) this.decide();
    else this.timer = setTimeout(() => this.decideLate(), EXAMINING_MS).unref();
  }

  override onReplyData(chunk: Buffer): void {
    if (this.isDecided) {
      this.next.onReplyData(chunk);
      return;
    }
    this.chunks.push(Buffer.from(chunk));
    this.bytes += chunk.length;
    if (this.bytes >= EXAMINED_BYTES_MAX) this.decide();
  }

  override onReplyPause(): void {
    if (this.isDecided) this.next.onReplyPause();
  }

  override onReplyEnd(): void {
    if (this.decideAtEnd()) this.next.onReplyEnd();
  }

  override onReplyFault(fault: UpstreamFault, error?: Error): void {
    if (this.decideAtEnd()) this.next.onReplyFault(fault, error);
  }

  /** Whether the handler should still be notified of the end. After a bug of ours it is notified of a cut instead. */
  private decideAtEnd(): boolean {
    try {
      this.decide();
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.next.onReplyFault('cut');
      return false;
    }
    return this.call.isHeard;
  }

  /**
   * Decides by the part of the reply that has arrived: it refuses the key, or all of it is passed on to the handler.
   */
  private decide(): void {
    if (this.isDecided) return;
    this.isDecided = true;
    if (this.timer !== null) clearTimeout(this.timer);
    const body = Buffer.concat(this.chunks);
    this.chunks = [];
    const complaint = keyRefusalOf(this.status, body, this.wordings);
    if (complaint !== null) {
      this.call.refuseKey(this.status, complaint);
      return;
    }
    this.next.onReplyStart(this.status, this.headers);
    if (body.length > 0 && this.call.isHeard) this.next.onReplyData(body);
  }

  /** Decides when the rest of the reply has not come in time. */
  private decideLate(): void {
    if (!this.call.isHeard) return;
    try {
      this.decide();
      if (this.call.isHeard) this.next.onReplyPause();
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault));
      this.call.fail('cut');
    }
  }
}
