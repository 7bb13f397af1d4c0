// The body of a request while it comes in: who receives it, when it is left waiting with the client, and how what comes
// behind an early answer is read and dropped. The rules of uWebSockets.js stand at the head of exchange.ts.
//
//   absent                           none is declared, or its end cannot be trusted
//   unseen ──► arriving ──► whole    right after the handler uWebSockets.js hands on what came with the head, if only
//      │          │                  an empty piece; then more is to come (`arriving`), or all is here (`whole`)
//      └──────────┴──► dropping      answered before it was whole: the rest is read, so that the client comes to read
//                                    its answer, and not kept
//
// Each becomes `closed` when its exchange is, and `dropping` when the connection is.

import type { HttpResponse } from './native-server.ts';

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

/** What a body needs of the server. */
export interface BodyContext {
  /** How many bytes of a body are read after its answer was sent. */
  readonly droppedBytesMax: number;
  /** The body did not arrive completely with its head, or continues after its answer. */
  onBodyArriving(body: RequestBody): void;
  onBodySettled(body: RequestBody): void;
}

/** Where a body comes from: uWebSockets.js has it on the response. */
type BodySource = Pick<HttpResponse, 'onData' | 'pause' | 'resume' | 'close'>;

export class RequestBody {
  state: BodyState;
  /** When a body that arrives or is dropped has taken too long; 0: not known yet. The server's to set and check. */
  dueMs = 0;
  private readonly source: BodySource;
  private readonly owner: BodyOwner;
  private readonly context: BodyContext;
  /** null: uWebSockets.js has not been told to hand the body on. */
  private sink: BodySink | null = null;
  private isHeld = false;
  private isPaused = false;
  private droppedBytes = 0;

  constructor(isDeclared: boolean, source: BodySource, owner: BodyOwner, context: BodyContext) {
    this.state = isDeclared ? 'unseen' : 'absent';
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
    if (isFirst) this.source.onData((chunk, isLast) => this.take(chunk, isLast));
  }

  /** To be called before the route handler returns: a body that nobody receives is left where it is. */
  watch(): void {
    if (this.sink === null && this.state === 'unseen') this.receive(LEFT_ALONE);
  }

  /** Until `letCome`, what did not come with the head stays with the client and in its socket. */
  hold(): void {
    this.isHeld = true;
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

  private take(chunk: ArrayBuffer, isLast: boolean): void {
    const { sink } = this;
    if (this.state === 'dropping') return this.countDropped(chunk.byteLength, isLast);
    if (this.state === 'closed' || sink === null) return;
    if (isLast) this.endWhole();
    else this.awaitMore(this.isHeld || sink === LEFT_ALONE);
    try {
      sink.take(new Uint8Array(chunk), isLast);
    } catch (fault) {
      this.owner.onBodyFault(fault);
    }
  }

  private awaitMore(leavesRest: boolean): void {
    if (this.state !== 'arriving') this.become('arriving');
    if (!leavesRest || this.isPaused) return;
    this.isPaused = true;
    this.source.pause();
  }

  private endWhole(): void {
    this.settle('whole');
    // Nothing is left to be held back, and that the client leaves must show.
    this.resume();
  }

  /** From here on the server watches that it does not take too long. */
  private become(state: 'arriving' | 'dropping'): void {
    this.state = state;
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

  /** Behind `close`, when the response has been written and the rest of the body is still to come. */
  drop(): void {
    this.become('dropping');
    this.resume();
  }

  private countDropped(bytes: number, isLast: boolean): void {
    this.droppedBytes += bytes;
    // Not from within: the parser of uWebSockets.js does not look everywhere whether what it calls has closed the
    // connection.
    if (isLast || this.droppedBytes > this.context.droppedBytesMax) setImmediate(() => this.endDropping());
  }

  private endDropping(): void {
    if (this.state === 'dropping') this.source.close();
  }

  /** The body has taken as long as it may. */
  endLate(): void {
    if (this.state === 'dropping') return this.endDropping();
    this.sink = LEFT_ALONE;
    this.owner.onBodyLate();
  }
}

const LEFT_ALONE: BodySink = { take: () => undefined };
