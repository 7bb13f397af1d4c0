// Withholds what shows the client the end of a reply until the end is recorded: the last bytes of a stream, and the end
// itself, be it clean, a cut or a refusal. So a reply that a client saw complete is recorded even if this process dies.

import type { Buffer } from 'node:buffer';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { CapturedReply } from './capture.ts';

/** How a reply ended, or why there is no reply. */
export type ReplyEnd = 'clean' | 'client_left' | 'key_refused' | UpstreamFault;

/** Records the end of a reply, then calls `WithholdEnd.onRecorded`. */
export interface EndRecorder {
  /** Called at each sign of an end; only the first counts. */
  settle(end: ReplyEnd): void;
  /** Bytes of the reply are still being screened, so it is not known yet what it ends with. */
  readonly isScreening: boolean;
}

/** The last handler of a reply. It does not tell the client how a provider refused its key. */
interface LastHandler extends ReplyHandler {
  onKeyRefused(): void;
}

/** Of a longer terminal event only the newest chunk is withheld, so that little memory waits. */
const WITHHELD_BYTES_MAX = 1_048_576;

export class WithholdEnd extends ReplyStage {
  protected readonly next: LastHandler;
  private readonly reply: CapturedReply;
  private readonly recorder: EndRecorder;
  private withheld: Buffer[] = [];
  private withheldBytes = 0;
  /** A byte of the reply has come here, and so reaches the client. */
  private hasBytes = false;
  /** null: the reply goes on. */
  private end: ReplyEnd | null = null;

  constructor(next: LastHandler, reply: CapturedReply, recorder: EndRecorder) {
    super();
    this.next = next;
    this.reply = reply;
    this.recorder = recorder;
  }

  override onReplyData(chunk: Buffer): void {
    const { state, progress } = this.reply;
    this.hasBytes = true;
    if (progress === 'open' || state === 'settled') this.next.onReplyData(chunk);
    else this.withhold(chunk);
  }

  private withhold(chunk: Buffer): void {
    if (this.withheldBytes + chunk.length > WITHHELD_BYTES_MAX) this.passWithheld();
    this.withheld.push(chunk);
    this.withheldBytes += chunk.length;
  }

  private passWithheld(): void {
    for (const chunk of this.withheld) this.next.onReplyData(chunk);
    this.withheld = [];
    this.withheldBytes = 0;
  }

  /**
   * Nothing is written while the end is being recorded: the bytes that wait for the client's socket may be the last
   * ones. A pause caused by writing and not by reading may come while the end is still being screened.
   */
  override onReplyPause(): void {
    const { reply, recorder } = this;
    const { state, progress } = reply;
    if (state === 'settled') this.next.onReplyPause();
    else if (state === 'relaying' && progress === 'ended') {
      if (!recorder.isScreening) recorder.settle('clean');
    } else if (state === 'relaying') this.next.onReplyPause();
  }

  override onReplyEnd(): void {
    this.endWith('clean');
  }

  /**
   * A reply that broke off before a byte of it came here, for example while a guardrail kept it, counts as no reply.
   */
  override onReplyFault(fault: UpstreamFault): void {
    this.endWith(fault === 'cut' && !this.hasBytes ? 'no_reply' : fault);
  }

  override onKeyRefused(): void {
    this.endWith('key_refused');
  }

  /** The client has left and the call is cut, so nothing more comes. */
  leave(): void {
    this.endWith(this.end ?? 'client_left');
  }

  private endWith(end: ReplyEnd): void {
    this.end = end;
    if (this.reply.state === 'settled') this.passEnd(end);
    else this.recorder.settle(end);
  }

  onRecorded(): void {
    this.passWithheld();
    if (this.end !== null) this.passEnd(this.end);
    else this.next.onReplyPause();
  }

  private passEnd(end: ReplyEnd): void {
    if (end === 'clean') this.next.onReplyEnd();
    else if (end === 'key_refused') this.next.onKeyRefused();
    else this.next.onReplyFault(end === 'client_left' ? 'cut' : end);
  }
}
