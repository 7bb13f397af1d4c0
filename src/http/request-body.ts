// The body of a request while it comes in: who receives it, when it is left waiting at the client, and how a body that
// nobody wants is read and dropped. fronts/uws-response.ts lists the rules of uWebSockets.js.
//
//   absent                           none is declared
//   unseen ──► arriving ──► whole    right after the handler its front passes on what came with the head, which may be
//      │          │                  empty; then more is to come (`arriving`), or all is here (`whole`)
//      └──────────┴──► dropping      answered before it was whole, or refused unseen: the rest is read and dropped, so
//                                    that the client comes to read its answer
//
// For a body in chunks the front passes nothing on before a chunk comes, so the body is `arriving` as soon as somebody
// receives it.
//
// A body becomes `closed` when its exchange is closed; if it is dropped after its answer, when the connection is
// closed.

import { atTickEnd } from '../platform/event-loop/tick.ts';

export type BodyState = 'absent' | 'unseen' | 'arriving' | 'whole' | 'dropping' | 'closed';

/** Receives a request body. `bytes` is a view of memory that is only valid during the call. */
export interface BodySink {
  take(bytes: Uint8Array, isLast: boolean): void;
}

/** The exchange that a body belongs to. */
export interface BodyOwner {
  /** The sink has thrown. */
  onBodyFault(fault: unknown): void;
  /** The body has taken as long as it may. */
  onBodyLate(): void;
}

export const BODY_TIMEOUT_MS = {
  /**
   * How long a body may go on after its answer was written: a client on a slow line reads the answer only after its
   * body.
   */
  answered: 30_000,
  /**
   * How long an answer waits for a body whose end is uncertain: uWebSockets.js closes a body that stands still soon
   * after.
   */
  untrusted: 5_000,
  /** How long a connection that is over is left to its client to close. */
  leftOpen: 5_000,
} as const;

/** What a body needs of the server. */
export interface BodyContext {
  /** The time for a whole body from its first packet. */
  readonly bodyTimeoutMs: number;
  /** How many bytes of a body are read and dropped at most. */
  readonly droppedBytesMax: number;
  /** The body did not arrive completely with its head, or is dropped: from now on its `tick` must be called. */
  onBodyArriving(body: RequestBody): void;
  onBodySettled(body: RequestBody): void;
}

/** Where a body comes from. A front implements this on its response. */
export interface BodySource {
  /**
   * Passes the body to `sink`. To be called once, before the route handler returns. The part that came with the head is
   * passed on right after the handler, even if it is empty; of a body in chunks nothing may come before a chunk does.
   * `declaredBytes`: null for a body in chunks.
   */
  handBodyTo(sink: BodySink, declaredBytes: number | null): void;
  /** Stops reading the connection. What is being read may still be passed on. */
  pause(): void;
  resume(): void;
}

export class RequestBody implements BodySink {
  state: BodyState;
  private readonly source: BodySource;
  private readonly owner: BodyOwner;
  private readonly context: BodyContext;
  private readonly declaredBytes: number | null;
  /** null: the source has not been told to pass the body on. */
  private sink: BodySink | null = null;
  private isHeld = false;
  private isPaused = false;
  private isPauseDue = false;
  /**
   * How long the body may take to arrive or to be dropped, and until when; 0: that is not known before the first
   * `tick`.
   */
  private timeoutMs = 0;
  private dueMs = 0;
  private droppedBytes = 0;
  /** Called when dropping has ended. */
  private afterDropping: ((isWhole: boolean) => void) | null = null;

  /** `declaredBytes`: 0: there is no body; null: it comes in chunks. */
  constructor(declaredBytes: number | null, source: BodySource, owner: BodyOwner, context: BodyContext) {
    this.state = declaredBytes === 0 ? 'absent' : 'unseen';
    this.declaredBytes = declaredBytes;
    this.source = source;
    this.owner = owner;
    this.context = context;
  }

  /** Nothing of the body is still to come. */
  get isComplete(): boolean {
    return this.state === 'whole' || this.state === 'absent';
  }

  /**
   * Sets who receives the body from now on. The first call is only valid before the route handler returns. The sink is
   * not called after an abort or an answer.
   */
  receive(sink: BodySink): void {
    const isFirst = this.sink === null;
    this.sink = sink;
    if (!isFirst) return;
    this.source.handBodyTo(this, this.declaredBytes);
    if (this.declaredBytes === null) this.become('arriving', this.context.bodyTimeoutMs);
  }

  /** To be called before the route handler returns. A body that nobody receives is left at the client. */
  watch(): void {
    if (this.sink === null && this.state === 'unseen') this.receive(LEFT_ALONE);
  }

  /**
   * Until `resume`, the rest of the body stays with the client and in the socket, as far as `pause` can achieve that.
   */
  hold(): void {
    this.isHeld = true;
    if (this.state === 'arriving') this.pauseAtTickEnd();
  }

  resume(): void {
    this.isHeld = false;
    this.resumeSource();
  }

  private resumeSource(): void {
    if (!this.isPaused || this.state === 'closed') return;
    this.isPaused = false;
    this.source.resume();
  }

  /** Called by the source alone. */
  take(bytes: Uint8Array, isLast: boolean): void {
    const { sink } = this;
    if (this.state === 'dropping') return this.countDropped(bytes.byteLength, isLast);
    if (this.state === 'closed' || sink === null) return;
    if (isLast) this.settle('whole');
    else this.awaitMore();
    try {
      sink.take(bytes, isLast);
    } catch (fault) {
      this.owner.onBodyFault(fault);
    }
  }

  private awaitMore(): void {
    if (this.state !== 'arriving') this.become('arriving', this.context.bodyTimeoutMs);
    if (this.isLeftWaiting) this.pauseAtTickEnd();
  }

  private get isLeftWaiting(): boolean {
    return this.isHeld || this.sink === LEFT_ALONE;
  }

  /**
   * Pauses no sooner, because what lies in the socket is read in this tick all the same. After each such piece, and
   * after `resume`, uWebSockets.js would wait ten seconds for the next piece and then close the connection, although
   * there may be none.
   */
  private pauseAtTickEnd(): void {
    if (this.isPaused || this.isPauseDue) return;
    this.isPauseDue = true;
    atTickEnd(() => {
      this.isPauseDue = false;
      if (this.state !== 'arriving' || !this.isLeftWaiting) return;
      this.isPaused = true;
      this.source.pause();
    });
  }

  private become(state: 'arriving' | 'dropping', timeoutMs: number): void {
    this.state = state;
    this.timeoutMs = timeoutMs;
    this.dueMs = 0;
    this.context.onBodyArriving(this);
  }

  private settle(state: 'whole' | 'closed'): void {
    const wasWatched = this.state === 'arriving' || this.state === 'dropping';
    this.state = state;
    if (wasWatched) this.context.onBodySettled(this);
  }

  /** The exchange is over, or the connection gone. */
  close(): void {
    this.settle('closed');
  }

  /**
   * Reads the rest of the body and drops it. `then` is called when all of it has come (`isWhole`), or else after this
   * time or when too many bytes have come.
   */
  drop(timeoutMs: number, then: (isWhole: boolean) => void): void {
    this.watch();
    this.afterDropping = then;
    this.become('dropping', timeoutMs);
    this.resumeSource();
  }

  private countDropped(bytes: number, isLast: boolean): void {
    this.droppedBytes += bytes;
    // Not from within this call: the parser of uWebSockets.js does not check everywhere whether a callback has closed
    // the connection.
    if (isLast || this.droppedBytes > this.context.droppedBytesMax) setImmediate(() => this.endDropping(isLast));
  }

  private endDropping(isWhole: boolean): void {
    if (this.state === 'dropping') this.afterDropping?.(isWhole);
  }

  /** To be called every now and then while the body arrives or is dropped. */
  tick(nowMs: number): void {
    if (this.dueMs === 0) this.dueMs = nowMs + this.timeoutMs;
    else if (nowMs >= this.dueMs) this.endLate();
  }

  private endLate(): void {
    if (this.state === 'dropping') return this.endDropping(false);
    this.sink = LEFT_ALONE;
    this.owner.onBodyLate();
  }
}

/** Stands for a body that nobody receives: reading pauses, and what comes all the same is dropped. */
const LEFT_ALONE: BodySink = { take: () => undefined };
