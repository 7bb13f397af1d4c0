// Takes in a JSON request: the body is copied once, into a slab, and scanned piece by piece as it arrives. Nothing is parsed.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import { refuseImageForm } from '../dialects/images.ts';
import { scanMultipart } from '../dialects/multipart-scan.ts';
import { refuseScan, type ScannedBody } from '../dialects/read-request.ts';
import type { RequestScanner, ScannedRequest } from '../dialects/request-scan/request-scanner.ts';
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

/**
 * Attaches to the exchange at once. `received` is told the request or why there is none, within this call or later; nothing when the client left
 * before its request was complete. `acceptsForm`: multipart/form-data besides JSON.
 */
export function receiveRequest(exchange: Exchange, intake: Intake, acceptsForm: boolean, received: (request: ReceivedRequest | Refusal) => void): void {
  const isForm = acceptsForm && FORM_TYPE.test(exchange.contentType);
  const refusal = refuseHead(exchange, intake.bodyLimitBytes, isForm);
  if (refusal !== null) {
    received(refusal);
    return;
  }
  const slab = intake.slabs.acquire(exchange.contentLength);
  const scan = isForm ? null : intake.scanner.begin();
  let bodyEnd = slab.bodyStart;
  exchange.onAbort(() => {
    scan?.abandon();
    intake.slabs.release(slab);
  });
  exchange.receiveBody((bytes, isLast) => {
    slab.buffer.set(bytes, bodyEnd);
    bodyEnd += bytes.length;
    scan?.feed(bytes);
    if (!isLast) return;
    exchange.onAbort(null);
    const body = slab.buffer.subarray(slab.bodyStart, bodyEnd);
    const read = scan === null ? readForm(slab, body, exchange.contentType) : readScan(slab, body, scan.finish(body));
    if ('kind' in read) intake.slabs.release(slab);
    received(read);
  });
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
