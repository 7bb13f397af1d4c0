// One client of one stream: it sends its request on a connection of its own, reads as it is meant to, and compares each
// byte with what the provider was asked to send.

import { connect, type Socket } from 'node:net';
import { bodyHash, requestBody, STAMP_DIGITS, StreamEvents, type StreamPlan } from './streams-plan.ts';

export interface SeenStream {
  readonly plan: StreamPlan;
  readonly hashes: readonly string[];
  readonly status: number | null;
  /** The connection's framing says that it is whole, and the last event is `[DONE]`. */
  readonly isWhole: boolean;
  /** Its framing has an end, whatever is missing before it. */
  readonly isEnded: boolean;
  readonly executionId: string | null;
  /** Events of text that arrived. */
  readonly deltas: number;
  /** What was not as the provider was asked to send it. */
  readonly problem: string | null;
  readonly tookMs: number;
}

export interface StreamPlace {
  readonly port: number;
  readonly key: string;
  readonly model: string;
  readonly providerModel: string;
  /** Called with what each event took from the provider to here, in milliseconds. */
  readonly onEvent: (tookMs: number) => void;
  /** Called when the reply's head is there. */
  readonly onOpen: () => void;
}

const SLOW_PAUSE_MS = 300;
/** Of a stream that comes as fast as it is taken, some 1 MB a second. */
const FLOOD_PAUSE_MS = 50;
const READ_BYTES = 65_536;
/** Every socket reads into this: a read is consumed before the next one starts. */
const readBuffer = Buffer.allocUnsafe(READ_BYTES);

type State = 'head' | 'size' | 'chunk' | 'over';

export class StreamClient {
  /** Resolves when the stream is over, by whom ever. */
  readonly ended: Promise<SeenStream>;
  private readonly socket: Socket;
  private readonly plan: StreamPlan;
  private readonly place: StreamPlace;
  private readonly events: StreamEvents;
  private readonly hashes: readonly string[];
  private readonly startedMs = performance.now();
  private readonly isMeasured: boolean;
  private resolve: (seen: SeenStream) => void = () => undefined;
  private state: State = 'head';
  /** Bytes of the framing, or of an event, that are not whole yet. */
  private held = '';
  private text = '';
  private chunkLeft = 0;
  private status: number | null = null;
  private executionId: string | null = null;
  private expected: { readonly head: string; readonly tail: string } | null = null;
  private deltas = 0;
  private isDone = false;
  private isStopping: boolean;
  private isComplete = false;
  private problem: string | null = null;

  constructor(plan: StreamPlan, place: StreamPlace) {
    this.plan = plan;
    this.place = place;
    this.events = new StreamEvents(plan.order, plan.withUsage);
    this.isStopping = plan.reading === 'stops';
    this.isMeasured = plan.reading === 'all' && plan.order.gapMs > 0;
    this.hashes = [bodyHash(requestBody(plan, place.providerModel))];
    this.ended = new Promise((resolve) => {
      this.resolve = resolve;
    });
    this.socket = connect({
      port: place.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: readBuffer, callback: (bytes) => this.read(readBuffer.toString('latin1', 0, bytes)) },
    });
    const body = requestBody(plan, place.model);
    this.socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${place.key}\r\n` +
        `content-type: application/json\r\nx-client-request-id: ${plan.order.id}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.finish());
  }

  /** Reads what has come meanwhile, if it had stopped. */
  readOn(): void {
    this.isStopping = false;
    this.socket.resume();
  }

  /** False: no more for now. */
  private read(bytes: string): boolean {
    this.parse(bytes);
    const { reading, until, order } = this.plan;
    if (this.state === 'over' || this.problem !== null) {
      this.socket.destroy();
      return true;
    }
    if (reading === 'leaves' && this.status === 200 && this.deltas >= until) {
      this.socket.destroy();
      return true;
    }
    if (this.isStopping) return this.status !== 200 || this.deltas < until;
    if (reading !== 'slowly' || this.status === null) return true;
    setTimeout(() => this.socket.resume(), order.gapMs === 0 ? FLOOD_PAUSE_MS : SLOW_PAUSE_MS);
    return false;
  }

  private parse(bytes: string): void {
    let rest = this.held + bytes;
    this.held = '';
    for (;;) {
      if (this.state === 'over') return;
      if (this.state === 'chunk') {
        const piece = rest.slice(0, this.chunkLeft);
        this.chunkLeft -= piece.length;
        rest = rest.slice(piece.length);
        this.take(piece);
        if (this.chunkLeft > 0) return;
        this.state = 'size';
        continue;
      }
      const next = this.state === 'head' ? this.readHead(rest) : this.readSize(rest);
      if (next === null) {
        this.held = rest;
        return;
      }
      rest = next;
    }
  }

  /** What follows the head; null: it is not whole. */
  private readHead(bytes: string): string | null {
    const end = bytes.indexOf('\r\n\r\n');
    if (end === -1) return null;
    const head = bytes.slice(0, end);
    this.status = Number(head.slice(9, 12));
    this.executionId = /\r\nx-service-execution-id: (\S+)/i.exec(head)?.[1] ?? null;
    this.place.onOpen();
    if (this.status === 200 && /\r\ntransfer-encoding: chunked/i.test(head)) {
      this.state = 'size';
      // The line end before a chunk's size belongs to the chunk before it, of which the head has the place.
      return `\r\n${bytes.slice(end + 4)}`;
    }
    this.state = 'over';
    return '';
  }

  private readSize(bytes: string): string | null {
    const end = bytes.indexOf('\r\n', 2);
    if (end === -1) return null;
    if (!bytes.startsWith('\r\n')) this.complain(`a chunk is longer than it says: ${bytes.slice(0, 20)}`);
    this.chunkLeft = Number.parseInt(bytes.slice(2, end), 16);
    if (this.chunkLeft > 0) {
      this.state = 'chunk';
      return bytes.slice(end + 2);
    }
    if (bytes.length < end + 4) return null;
    this.isComplete = true;
    this.state = 'over';
    return '';
  }

  /** Compares the text of the reply with what it must be, event by event. */
  private take(piece: string): void {
    this.text = this.text === '' ? piece : this.text + piece;
    while (this.text !== '' && this.problem === null) {
      if (this.deltas === this.plan.order.tokens) {
        this.takeClosing();
        return;
      }
      this.expected ??= this.events.next();
      const { head, tail } = this.expected;
      const length = head.length + STAMP_DIGITS + tail.length;
      if (this.text.length < length) {
        // What is there of it must be its beginning.
        const known = Math.min(this.text.length, head.length);
        if (this.text.slice(0, known) !== head.slice(0, known)) this.complain(this.text);
        return;
      }
      if (!this.text.startsWith(head) || !this.text.startsWith(tail, head.length + STAMP_DIGITS)) {
        this.complain(this.text.slice(0, length));
        return;
      }
      const stampNs = Number(this.text.slice(head.length, head.length + STAMP_DIGITS));
      this.deltas += 1;
      this.expected = null;
      if (this.isMeasured) this.place.onEvent(Number(process.hrtime.bigint()) / 1e6 - stampNs / 1e6);
      this.text = this.text.slice(length);
    }
  }

  private takeClosing(): void {
    const closing = this.events.closing();
    if (!closing.startsWith(this.text)) this.complain(this.text);
    this.isDone = this.text === closing;
  }

  private complain(found: string): void {
    this.problem ??= `stream ${this.plan.order.id}, after ${this.deltas} events: ${JSON.stringify(found.slice(0, 300))}`;
  }

  private finish(): void {
    const { order } = this.plan;
    this.resolve({
      plan: this.plan,
      hashes: this.hashes,
      status: this.status,
      isWhole: this.status === 200 && this.isComplete && this.isDone,
      isEnded: this.isComplete,
      executionId: this.executionId,
      deltas: this.deltas,
      problem:
        this.problem ?? (order.fault !== null && this.isDone ? `stream ${order.id} failed and looks finished` : null),
      tookMs: performance.now() - this.startedMs,
    });
  }
}
