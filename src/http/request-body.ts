// The body of a request while it comes in: who receives it, when it is left waiting with the client, and how one that
// nobody wants is read and dropped. The rules of uWebSockets.js stand in fronts/uws-response.ts.
//
//   absent                           none is declared
//   unseen ──► arriving ──► whole    right after the handler its front hands on what came with the head, if only
//      │          │                  an empty piece; then more is to come (`arriving`), or all is here (`whole`)
//      └──────────┴──► dropping      answered before it was whole, or refused without looking at it: the rest is read,
//                                    so that the client comes to read its answer, and not kept
//
// Of one in chunks it hands nothing on before a chunk comes, so it is `arriving` as soon as somebody receives it.
//
// Each becomes `closed` when its exchange is; one that is dropped behind its answer, when the connection is.

import { atTickEnd } from '../platform/event-loop/tick.ts';

export type BodyState = 'absent' | 'unseen' | 'arriving' | 'whole' | 'dropping' | 'closed';

/** Receives a request body. `bytes` is a view on memory that dies when the call returns. */
export interface BodySink {
  take(bytes: Uint8Array, isLast: boolean): void;
}

/** Whose body it is. */
export interface BodyOwner {
  /** The sink has thrown. */
  onBodyFault(fault: unknown): void;
  /** The body has taken as long as it may. */
  onBodyLate(): void;
}

export const BODY_TIMEOUT_MS = {
  /** How long a body may continue behind its answer: a client on a slow line reads its answer only then. */
  answered: 30_000,
  /** How long an answer waits for a body: uWebSockets.js closes one that stands still a little later. */
  untrusted: 5_000,
  /** How long a connection that is over is left to its client to close. */
  leftOpen: 5_000,
} as const;

/** What a body needs of the server. */
export interface BodyContext {
  /** The time for a whole body from its first packet. */
  readonly bodyTimeoutMs: number;
  /** How many bytes are dropped of a body. */
  readonly droppedBytesMax: number;
  /** The body did not arrive completely with its head, or is dropped: from now on it is to be told the time. */
  onBodyArriving(body: RequestBody): void;
  onBodySettled(body: RequestBody): void;
}

/** Where a body comes from: a front has it on the response. */
export interface BodySource {
  /**
   * To be called once, before the route handler returns. What came with the head is handed on right after the handler,
   * if only as an empty piece; of a body in chunks nothing may come before a chunk does. `declaredBytes`: null
   * for one in chunks.
   */
  handBodyTo(sink: BodySink, declaredBytes: number | null): void;
  /** No more is to be read of the connection. What is being read may come all the same. */
  pause(): void;
  resume(): void;
}

export class RequestBody implements BodySink {
  state: BodyState;
  private readonly source: BodySource;
  private readonly owner: BodyOwner;
  private readonly context: BodyContext;
  private readonly declaredBytes: number | null;
  /** null: the source has not been told to hand the body on. */
  private sink: BodySink | null = null;
  private isHeld = false;
  private isPaused = false;
  private isPauseDue = false;
  /** For how long a body that arrives or is dropped may, and until when; 0: that is not known yet. */
  private timeoutMs = 0;
  private dueMs = 0;
  private droppedBytes = 0;
  /** What follows when nothing more is dropped. */
  private afterDropping: ((isWhole: boolean) => void) | null = null;

  /** `declaredBytes`: 0: there is none; null: it comes in chunks. */
  constructor(declaredBytes: number | null, source: BodySource, owner: BodyOwner, context: BodyContext) {
    this.state = declaredBytes === 0 ? 'absent' : 'unseen';
    this.declaredBytes = declaredBytes;
    this.source = source;
    this.owner = owner;
    this.context = context;
  }

  /** Nothing of it is still to come. */
  get isComplete(): boolean {
    return this.state === 'whole' || this.state === 'absent';
  }

  /**
   * Who receives the body from now on. The first call is only valid before the route handler returns. The sink is not
   * called after an abort or an answer.
   */
  receive(sink: BodySink): void {
    const isFirst = this.sink === null;
    this.sink = sink;
    if (!isFirst) return;
    this.source.handBodyTo(this, this.declaredBytes);
    if (this.declaredBytes === null) this.become('arriving', this.context.bodyTimeoutMs);
  }

  /** To be called before the route handler returns: a body that nobody receives is left where it is. */
  watch(): void {
    if (this.sink === null && this.state === 'unseen') this.receive(LEFT_ALONE);
  }

  /** Until `letCome`, what did not come yet stays with the client and in its socket, as far as `pause` can do that. */
  hold(): void {
    this.isHeld = true;
    if (this.state === 'arriving') this.pauseAtTickEnd();
  }

  letCome(): void {
    this.isHeld = false;
    this.resume();
  }

  private resume(): void {
    if (!this.isPaused || this.state === 'closed') return;
    this.isPaused = false;
    this.source.resume();
  }

  /** For its source alone. */
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
   * No sooner: what lies in the socket is read in this tick all the same. Each piece of it, and `resume`, would have
   * uWebSockets.js wait for the next one for ten seconds and then close the connection, although there may be none.
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
   * Nobody wants what is still to come. `then` follows when all of it has come (`isWhole`), and at the latest after
   * this time or when too many bytes have.
   */
  drop(timeoutMs: number, then: (isWhole: boolean) => void): void {
    this.watch();
    this.afterDropping = then;
    this.become('dropping', timeoutMs);
    this.resume();
  }

  private countDropped(bytes: number, isLast: boolean): void {
    this.droppedBytes += bytes;
    // Not from within: the parser of uWebSockets.js does not look everywhere whether what it calls has closed the
    // connection.
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

const LEFT_ALONE: BodySink = { take: () => undefined };
