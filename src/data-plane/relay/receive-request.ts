// Takes in a JSON request: the body is copied once, into a slab, and scanned piece by piece as it arrives. Nothing is parsed.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { BodySink, ClientWatch, Exchange } from '../../http/exchange.ts';
import { refuseImageForm } from '../dialects/images.ts';
import { scanMultipart } from '../dialects/multipart-scan.ts';
import { refuseScan, type ScannedBody } from '../dialects/read-request.ts';
import type { RequestScanner, Scan, ScannedRequest } from '../dialects/request-scan/request-scanner.ts';
import type { Slab, SlabPool } from './slab-pool.ts';

/** A whole, well-formed body within its slab. */
export interface ReceivedRequest extends ScannedBody {
  readonly slab: Slab;
}

export interface Intake {
  readonly slabs: SlabPool;
  readonly scanner: RequestScanner;
  readonly bodyLimitBytes: number;
}

/** Whom a request is for. */
export interface RequestReceiver {
  readonly exchange: Exchange;
  onReceived(request: ReceivedRequest): void;
  onRefused(refusal: Refusal): void;
}

/**
 * Attaches to the exchange at once. The receiver is told the request or why there is none, within this call or later; nothing when the client left
 * before its request was complete. `acceptsForm`: multipart/form-data besides JSON.
 */
export function receiveRequest(receiver: RequestReceiver, intake: Intake, acceptsForm: boolean): void {
  const { exchange } = receiver;
  const isForm = acceptsForm && FORM_TYPE.test(exchange.contentType);
  const refusal = refuseHead(exchange, intake.bodyLimitBytes, isForm);
  if (refusal !== null) {
    receiver.onRefused(refusal);
    return;
  }
  const reception = new Reception(receiver, intake, isForm);
  exchange.watchClient(reception);
  exchange.receiveBody(reception);
}

/** A body that is coming in. */
class Reception implements BodySink, ClientWatch {
  private readonly receiver: RequestReceiver;
  private readonly intake: Intake;
  private readonly slab: Slab;
  /** null: a form. */
  private readonly scan: Scan | null;
  private bodyEnd: number;

  constructor(receiver: RequestReceiver, intake: Intake, isForm: boolean) {
    this.receiver = receiver;
    this.intake = intake;
    this.slab = intake.slabs.acquire(receiver.exchange.contentLength);
    this.scan = isForm ? null : intake.scanner.begin();
    this.bodyEnd = this.slab.bodyStart;
  }

  take(bytes: Uint8Array, isLast: boolean): void {
    const { slab, scan } = this;
    slab.buffer.set(bytes, this.bodyEnd);
    this.bodyEnd += bytes.length;
    scan?.feed(bytes);
    if (isLast) this.finish(slab.buffer.subarray(slab.bodyStart, this.bodyEnd));
  }

  private finish(body: Buffer): void {
    const { receiver, slab, scan } = this;
    const { exchange } = receiver;
    exchange.watchClient(null);
    const read = scan === null ? readForm(slab, body, exchange.contentType) : readScan(slab, body, scan.finish(body));
    if ('kind' in read) {
      this.intake.slabs.release(slab);
      receiver.onRefused(read);
    } else {
      receiver.onReceived(read);
    }
  }

  onClientLeft(): void {
    this.scan?.abandon();
    this.intake.slabs.release(this.slab);
  }
}

const FORM_TYPE = /^[ \t]*multipart\/form-data[ \t]*(;|$)/i;

function refuseHead(exchange: Exchange, bodyLimitBytes: number, isForm: boolean): Refusal | null {
  if (exchange.contentLength === -1) return { kind: 'length_required' };
  if (exchange.contentLength > bodyLimitBytes) return { kind: 'body_too_large', limitBytes: bodyLimitBytes };
  const encoding = exchange.header('content-encoding');
  if (encoding !== null && encoding !== 'identity') return { kind: 'unsupported_media_type' };
  // A body without a Content-Type is taken for what it must be; one that says it is something else is refused.
  const type = exchange.contentType;
  if (type === 'application/json') return null;
  if (!isForm && type !== '' && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) return { kind: 'unsupported_media_type' };
  return null;
}

function readForm(slab: Slab, body: Buffer, contentType: string): ReceivedRequest | Refusal {
  const form = scanMultipart(body, contentType);
  return 'fault' in form ? refuseImageForm(form) : { slab, body, scanned: null, form };
}

function readScan(slab: Slab, body: Buffer, scanned: ScannedRequest): ReceivedRequest | Refusal {
  return refuseScan(scanned) ?? { slab, body, scanned, form: null };
}
