// Withholds what shows the client the end of a reply until the record of that end is written: the last bytes of a
// stream, and the end itself, be it a clean end, a cut or a refusal. What a client saw complete survives our death.

import type { Buffer } from 'node:buffer';
import type { UpstreamFault } from '../../upstream/call-connection.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { CapturedReply } from './capture.ts';

/** How a reply ended, or why there is none. */
export type ReplyEnd = 'clean' | 'client_left' | 'key_refused' | UpstreamFault;

/** Whoever records an end; `onRecorded` is to be called once that is done. */
export interface EndRecorder {
  /** Called at each sign of an end, of which the first counts. */
  settle(end: ReplyEnd): void;
  /** What was read of the reply is still being screened: what it ended with is not known. */
  readonly isScreening: boolean;
}

/** The last handler of a reply: it tells no client how a provider refused its key. */
interface LastHandler extends ReplyHandler {
  onKeyRefused(): void;
}

/** Of a terminal event longer than this only the newest chunk is withheld, so that little waits. */
const WITHHELD_BYTES_MAX = 1_048_576;

export class WithholdEnd extends ReplyStage {
  protected readonly next: LastHandler;
  private readonly reply: CapturedReply;
  private readonly recorder: EndRecorder;
  private withheld: Buffer[] = [];
  private withheldBytes = 0;
  /** A byte of it has come here, and so reaches the client. */
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
   * Nothing is written while the end is being recorded: what waits for the client's socket may be the last bytes. A
   * pause that comes of writing, and not of reading, may come while the end is still being screened.
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

  /** The client has left, and the provider with it: nothing more comes. */
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
