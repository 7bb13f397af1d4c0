// Coalesces the writes of a stream that comes in bursts: pieces that follow each other faster than a person can see
// wait unread in the kernel's socket buffer and go out in one write. A read and a write for each event would cost more
// than everything else done with the event.
//
//   idle --piece close behind the last--> gathering --two milliseconds--> ending (read on) --end of the tick--> idle
//
// The first piece after a pause never waits. After two bursts in a row, that piece is taken for the first of a third
// burst, and the pieces after it are gathered.

import type { Clock } from '../../platform/clock.ts';
import { atTickEnd } from '../../platform/event-loop/tick.ts';
import { type ReplyHandler, ReplyStage } from '../../upstream/reply-handler.ts';
import type { CapturedReply } from './capture.ts';
import type { ClientWriter } from './client-writer.ts';

/** Pieces that are closer than this are a burst. */
const BURST_GAP_MS = 1;
const GATHERING_MS = 2;
/** After this many bursts in a row the next one is expected; a single piece that is followed closely may be chance. */
const BURSTS_FOLLOWED = 2;
/** A reply with this much waiting is written at once: it comes so fast that it gains nothing by waiting. */
const GATHERED_BYTES_MAX = 16_384;

/** The streams that gather now; one timer serves all of them. */
let gathering: WriteCoalescer[] = [];

function endAll(): void {
  const due = gathering;
  gathering = [];
  for (const coalescer of due) coalescer.readOn();
  // Sockets are read between the timers and the end of a tick, so everything that waited is read by then.
  atTickEnd(() => {
    for (const coalescer of due) coalescer.writeOn();
  });
}

export interface CoalescedStream {
  /** Stops reading the provider until `resume`. */
  pause(): void;
  resume(): void;
  /** Writes what waits; false: nothing more can be written for now. */
  write(): boolean;
}

export class WriteCoalescer {
  private readonly stream: CoalescedStream;
  private state: 'idle' | 'gathering' | 'ending' = 'idle';
  private lastAtMs = Number.NEGATIVE_INFINITY;
  /** A piece came close behind the last piece that was written at once. */
  private isBursty = false;
  /** How many bursts came in a row until now. */
  private bursts = 0;

  constructor(stream: CoalescedStream) {
    this.stream = stream;
  }

  /** A piece has come, and `waitingBytes` wait to be written. */
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
  /** The call that the reply is read from. */
  readonly source: Pick<CoalescedStream, 'pause' | 'resume'>;
}

/** The stage in a relay: decides when a stream's pieces are written. Every other reply is written at each pause. */
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
