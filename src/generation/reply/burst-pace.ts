// Gathers the bursts of a stream: what comes closer behind the last piece than anybody sees waits for the rest, unread
// in the system's memory, and goes out in one write. A read and a write for each event cost more than all else that is
// done with it.
//
//   idle --piece close behind the last--> gathering --two milliseconds--> ending (read on) --end of the tick--> idle, all of it written
//
// The first piece after a pause never waits. Where two bursts came before it, it is taken for the beginning of a third.

import { atTickEnd } from '../../platform/tick.ts';

/** Closer than this is a burst. */
const BURST_GAP_MS = 1;
const GATHERING_MS = 2;
/**
 * After so many in a row the next one is expected; a piece that comes late and so close to the next is no burst yet.
 */
const BURSTS_FOLLOWED = 2;
/** So much is passed on at once: a reply that comes this fast gains nothing by waiting. */
const HELD_BYTES_MAX = 16_384;

/** The streams that gather; one timer for all of them, while there are any. */
let gathering: BurstPace[] = [];

function endAll(): void {
  const due = gathering;
  gathering = [];
  for (const pace of due) pace.readOn();
  // Between the timers and the end of a tick its sockets are read.
  atTickEnd(() => {
    for (const pace of due) pace.writeOn();
  });
}

export interface PacedStream {
  /** Reads nothing more of the provider until `resume`. */
  pause(): void;
  resume(): void;
  /** False where nothing more can be written for now. */
  write(): boolean;
}

export class BurstPace {
  private readonly stream: PacedStream;
  private state: 'idle' | 'gathering' | 'ending' = 'idle';
  private lastAtMs = Number.NEGATIVE_INFINITY;
  /** Something came close behind the last first piece. */
  private isBursty = false;
  /** Bursts one after the other until then. */
  private bursts = 0;

  constructor(stream: PacedStream) {
    this.stream = stream;
  }

  /** A piece has come, and this much waits to be written. */
  take(nowMs: number, waitingBytes: number): void {
    const isClose = nowMs - this.lastAtMs < BURST_GAP_MS;
    this.lastAtMs = nowMs;
    if (this.state !== 'idle') {
      this.isBursty = true;
    } else if (isClose && waitingBytes < HELD_BYTES_MAX) {
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
