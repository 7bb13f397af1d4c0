// Coalesces the writes of a stream that comes in bursts: pieces that follow each other faster than anybody sees wait,
// unread in the system's memory, and go out in one write. A read and a write for each event cost more than all else
// that is done with it.
//
//   idle --piece close behind the last--> gathering --two milliseconds--> ending (read on) --end of the tick--> idle
//
// The first piece after a pause never waits. Behind two bursts in a row it is taken for the beginning of a third.

import type { Clock } from '../../platform/clock.ts';
import { atTickEnd } from '../../platform/event-loop/tick.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { CapturedReply } from './capture.ts';
import type { ClientWriter } from './client-writer.ts';

/** Closer than this is a burst. */
const BURST_GAP_MS = 1;
const GATHERING_MS = 2;
/** After so many bursts in a row the next one is expected; a single piece that is followed closely may be chance. */
const BURSTS_FOLLOWED = 2;
/** This much is written at once: a reply that comes this fast gains nothing by waiting. */
const GATHERED_BYTES_MAX = 16_384;

/** The streams that gather; one timer for all of them, while there are any. */
let gathering: WriteCoalescer[] = [];

function endAll(): void {
  const due = gathering;
  gathering = [];
  for (const coalescer of due) coalescer.readOn();
  // Between the timers and the end of a tick its sockets are read.
  atTickEnd(() => {
    for (const coalescer of due) coalescer.writeOn();
  });
}

export interface CoalescedStream {
  /** Reads nothing more of the provider until `resume`. */
  pause(): void;
  resume(): void;
  /** Writes what waits; false where nothing more can be written for now. */
  write(): boolean;
}

export class WriteCoalescer {
  private readonly stream: CoalescedStream;
  private state: 'idle' | 'gathering' | 'ending' = 'idle';
  private lastAtMs = Number.NEGATIVE_INFINITY;
  /** Something came close behind the last first piece. */
  private isBursty = false;
  /** Bursts in a row until now. */
  private bursts = 0;

  constructor(stream: CoalescedStream) {
    this.stream = stream;
  }

  /** A piece has come, and this much waits to be written. */
  take(nowMs: number, waitingBytes: number): void {
    const isClose = nowMs - this.lastAtMs < BURST_GAP_MS;
    this.lastAtMs = nowMs;
    if (this.state !== 'idle') {
      this.isBursty = true;
    } else if (isClose && waitingBytes < GATHERED_BYTES_MAX) {
      this.isBursty = true;
      this.gather();
    } else {
      const goesOn = this.stream.write();
      if (isClose) return;
      this.bursts = this.isBursty ? this.bursts + 1 : 0;
      this.isBursty = false;
      if (this.bursts >= BURSTS_FOLLOWED && goesOn) this.gather();
    }
  }

  private gather(): void {
    this.state = 'gathering';
    this.stream.pause();
    if (gathering.length === 0) setTimeout(endAll, GATHERING_MS);
    gathering.push(this);
  }

  readOn(): void {
    this.state = 'ending';
    this.stream.resume();
  }

  writeOn(): void {
    this.state = 'idle';
    this.stream.write();
  }
}

export interface CoalesceParts {
  readonly reply: CapturedReply;
  readonly clock: Clock;
  readonly writer: ClientWriter;
  /** Where the reply comes from. */
  readonly source: Pick<CoalescedStream, 'pause' | 'resume'>;
}

/** The stage: it decides when a stream's pieces go on to be written. Every other reply is written at each pause. */
export class Coalesce extends ReplyStage implements CoalescedStream {
  protected readonly next: ReplyHandler;
  private readonly parts: CoalesceParts;
  private coalescer: WriteCoalescer | null = null;

  constructor(next: ReplyHandler, parts: CoalesceParts) {
    super();
    this.next = next;
    this.parts = parts;
  }

  override onReplyPause(): void {
    const { reply, clock, writer } = this.parts;
    if (reply.isStream && reply.progress === 'open')
      (this.coalescer ??= new WriteCoalescer(this)).take(clock.monotonicMs(), writer.pendingBytes);
    else this.next.onReplyPause();
  }

  pause(): void {
    this.parts.source.pause();
  }

  resume(): void {
    if (this.parts.writer.blockedSinceMs === 0) this.parts.source.resume();
  }

  write(): boolean {
    this.next.onReplyPause();
    return this.parts.reply.state === 'relaying' && this.parts.writer.blockedSinceMs === 0;
  }
}
