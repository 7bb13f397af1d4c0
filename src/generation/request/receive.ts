// Receives the body of a generation request, JSON or a form: it is copied into a pooled buffer that grows as bytes
// come, and JSON is scanned piece by piece as it arrives. Nothing is parsed. Until the sender is known, only the bytes
// that came with the head are accepted. The buffer belongs to this file until `onReceived`, then to the receiver, who
// releases it.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import { FORM_OR_JSON, JSON_ALONE, readBodyType } from '../../http/body-type.ts';
import type { ClientWatch } from '../../http/client-watch.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { BodySink } from '../../http/request-body.ts';
import type { BufferPool, PooledBuffer } from '../../platform/buffer-pool.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import type { FormReader } from '../dialects/dialect.ts';
import { type FormFault, MultipartScan, type ScannedForm } from './multipart-scan.ts';
import { refuseScan } from './read-request.ts';
import type { RequestScanner, Scan, ScannedRequest } from './scan/request-scanner.ts';
import type { ScannedBody } from './scanned-body.ts';

/** A complete, well-formed body in its pooled buffer. */
export interface ReceivedRequest extends ScannedBody {
  readonly pooled: PooledBuffer;
}

/** A received request with the principal that sent it. */
export interface ReceivedFrom<S extends MemoryOwner> extends ReceivedRequest {
  readonly sender: S;
}

export interface Intake {
  readonly buffers: BufferPool;
  readonly scanner: RequestScanner;
  readonly bodyLimitBytes: number;
}

/** Whose share of the buffer pool a body is charged to. */
export interface MemoryOwner {
  readonly organizationId: string;
}

/** Takes over a request. Exactly one of these is called, once; none is when the client leaves before. */
export interface RequestReceiver<S extends MemoryOwner> {
  /** The receiver must release the buffer. */
  onReceived(received: ReceivedFrom<S>): void;
  /** The request is refused before it is complete. If the sender can be identified at all, that is done by then. */
  onUnreceived(refusal: Refusal): void;
  onFault(fault: unknown): void;
}

/**
 * Attaches to the exchange at once. `identified`: the sender, or a promise of the sender or the refusal while it is
 * looked up. `forms`: given by a dialect that takes multipart/form-data besides JSON.
 */
export function receiveRequest<S extends MemoryOwner>(
  exchange: Exchange,
  identified: S | Promise<S | Refusal>,
  intake: Intake,
  forms: FormReader | null,
  receiver: RequestReceiver<S>,
): void {
  const type =
    refuseLength(exchange, intake.bodyLimitBytes) ?? readBodyType(exchange, forms === null ? JSON_ALONE : FORM_OR_JSON);
  if (typeof type === 'object') return refuseOnceKnown(receiver, type, identified);
  new IncomingRequest(exchange, intake, type === 'form' ? forms : null, receiver).begin(identified);
}

/** Refuses a request once the look-up of its sender is over, so that the refusal is recorded as theirs. */
function refuseOnceKnown<S extends MemoryOwner>(
  receiver: RequestReceiver<S>,
  refusal: Refusal,
  identified: S | Promise<S | Refusal>,
): void {
  if (!(identified instanceof Promise)) return receiver.onUnreceived(refusal);
  identified.then(() => receiver.onUnreceived(refusal)).catch((fault: unknown) => receiver.onFault(fault));
}

/** The least size of a body's first pooled buffer, unless the declared length is less. */
const FIRST_BYTES = 16_384;
/**
 * A larger buffer holds at most this many times the bytes that have come: so a declared length alone occupies no
 * memory, and a third of a body is copied twice.
 */
const GROWTH = 4;

/** Owns pooled buffers until the credential is identified: all such requests share one part of the pool. */
const UNKNOWN_OWNER = '';

interface IncomingForm {
  readonly reader: FormReader;
  readonly scan: MultipartScan;
}

/** A body while it is received. */
class IncomingRequest<S extends MemoryOwner> implements BodySink, ClientWatch {
  private readonly exchange: Exchange;
  private readonly intake: Intake;
  /** null: the body is JSON. */
  private readonly form: IncomingForm | null;
  private readonly receiver: RequestReceiver<S>;
  /** The look-up of the sender; null: there was none to wait for. */
  private identifying: Promise<S | Refusal> | null = null;
  /**
   * null: the sender is still being looked up. Until then the bytes that came with the head are kept unread, and the
   * client is not read any further.
   */
  private sender: S | null = null;
  /** null: no bytes have come yet, or the receiver has the buffer. */
  private pooled: PooledBuffer | null = null;
  private scan: Scan | null = null;
  private bodyBytes = 0;
  /** The declared length, or the most that a body without one may have. */
  private readonly bytesMax: number;
  private isWhole = false;
  /** The request is refused, or its client has left. */
  private isOver = false;

  constructor(exchange: Exchange, intake: Intake, forms: FormReader | null, receiver: RequestReceiver<S>) {
    this.exchange = exchange;
    this.intake = intake;
    this.form = forms === null ? null : { reader: forms, scan: new MultipartScan(exchange.contentType) };
    this.receiver = receiver;
    this.bytesMax = exchange.isChunked ? intake.bodyLimitBytes : exchange.contentLength;
  }

  /** Attaches to the exchange. */
  begin(identified: S | Promise<S | Refusal>): void {
    const { exchange } = this;
    if (identified instanceof Promise) this.awaitSender(identified);
    else this.sender = identified;
    exchange.watchClient(this);
    exchange.body.receive(this);
  }

  private awaitSender(identified: Promise<S | Refusal>): void {
    this.identifying = identified;
    this.exchange.body.hold();
    identified.then((found) => this.goOn(found)).catch((fault: unknown) => this.fail(fault));
  }

  take(bytes: Uint8Array, isLast: boolean): void {
    if (this.isOver) return;
    if (this.bodyBytes + bytes.length > this.bytesMax)
      return this.refuse({ kind: 'body_too_large', limitBytes: this.bytesMax });
    if (bytes.length > 0 || isLast) {
      const pooled = this.makeRoom(bytes.length);
      if (pooled === null) return this.refuse({ kind: 'overloaded' });
      pooled.buffer.set(bytes, this.bodyBytes);
      this.bodyBytes += bytes.length;
    }
    this.isWhole = isLast;
    if (this.sender === null) return;
    this.feed(bytes);
    if (isLast) this.finish();
  }

  /** The pooled buffer, with room for this many more bytes; null: there is no memory for it. */
  private makeRoom(bytes: number): PooledBuffer | null {
    const { pooled, bodyBytes } = this;
    const { buffers } = this.intake;
    const needed = bodyBytes + bytes;
    if (pooled !== null && needed <= pooled.buffer.length) return pooled;
    const ahead = this.sender === null ? needed : Math.max(FIRST_BYTES, needed * GROWTH);
    const owner = this.sender?.organizationId ?? UNKNOWN_OWNER;
    const larger = buffers.tryAcquire(Math.min(ahead, this.bytesMax), owner, pooled);
    if (larger === null || pooled === null) {
      if (larger !== null) this.pooled = larger;
      return larger;
    }
    pooled.buffer.copy(larger.buffer, 0, 0, bodyBytes);
    this.pooled = larger;
    buffers.release(pooled);
    return larger;
  }

  private feed(bytes: Uint8Array): void {
    const { form, pooled } = this;
    if (bytes.length === 0) return;
    if (form === null) {
      this.scan ??= this.intake.scanner.begin();
      this.scan.feed(bytes);
    } else if (pooled !== null) form.scan.feed(pooled.buffer.subarray(0, this.bodyBytes));
  }

  /** The look-up of the sender is over, with the sender or a refusal. */
  private goOn(found: S | Refusal): void {
    if (this.isOver) return;
    if ('kind' in found) return this.refuse(found);
    const { pooled, isWhole } = this;
    this.sender = found;
    if (pooled !== null) this.intake.buffers.giveTo(pooled, found.organizationId);
    if (pooled !== null) this.feed(pooled.buffer.subarray(0, this.bodyBytes));
    if (isWhole) this.finish();
    else this.exchange.body.resume();
  }

  private finish(): void {
    // That the client has left may be still unread: after the body, where the connection was paused, or on a socket
    // that is not read yet in this tick. So sockets are read before the request is handed over.
    if (this.identifying !== null) void this.handOverLater();
    else this.tryHandOver();
  }

  private async handOverLater(): Promise<void> {
    await socketsRead();
    this.tryHandOver();
  }

  private tryHandOver(): void {
    try {
      this.handOver();
    } catch (fault) {
      this.fail(fault);
    }
  }

  private handOver(): void {
    const { exchange, pooled, sender } = this;
    if (this.isOver || pooled === null || sender === null) return;
    exchange.watchClient(null);
    const body = pooled.buffer.subarray(0, this.bodyBytes);
    const { form } = this;
    const read =
      form === null ? readJson(body, this.finishScan(body)) : readForm(form.reader, body, form.scan.finish(body));
    if ('kind' in read) return this.refuse(read);
    this.pooled = null;
    this.receiver.onReceived({ body, scanned: read.scanned, form: read.form, pooled, sender });
  }

  private finishScan(body: Buffer): ScannedRequest {
    this.scan ??= this.intake.scanner.begin();
    const scanned = this.scan.finish(body);
    this.scan = null;
    return scanned;
  }

  private refuse(refusal: Refusal): void {
    const { sender, identifying } = this;
    this.giveUp();
    if (sender === null && identifying !== null) refuseOnceKnown(this.receiver, refusal, identifying);
    else this.receiver.onUnreceived(refusal);
  }

  private fail(fault: unknown): void {
    this.giveUp();
    this.receiver.onFault(fault);
  }

  onClientLeft(): void {
    this.giveUp();
  }

  private giveUp(): void {
    this.isOver = true;
    this.exchange.watchClient(null);
    this.scan?.abandon();
    this.scan = null;
    if (this.pooled !== null) this.intake.buffers.release(this.pooled);
    this.pooled = null;
  }
}

function refuseLength(exchange: Exchange, bodyLimitBytes: number): Refusal | null {
  if (exchange.contentLength === -1 && !exchange.isChunked) return { kind: 'length_required' };
  return exchange.contentLength > bodyLimitBytes ? { kind: 'body_too_large', limitBytes: bodyLimitBytes } : null;
}

function readForm(forms: FormReader, body: Buffer, form: ScannedForm | FormFault): ScannedBody | Refusal {
  return 'fault' in form ? forms.refuse(form) : { body, scanned: null, form };
}

function readJson(body: Buffer, scanned: ScannedRequest): ScannedBody | Refusal {
  return refuseScan(scanned) ?? { body, scanned, form: null };
}
