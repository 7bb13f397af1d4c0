// Takes in a JSON request: the body is copied once, into a slab, and scanned piece by piece as it arrives. Nothing is parsed.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { RequestScanner, ScannedRequest } from '../dialects/request-scan/request-scanner.ts';
import type { Slab, SlabPool } from './slab-pool.ts';

export interface ReceivedRequest {
  readonly slab: Slab;
  /** The body within the slab. */
  readonly body: Buffer;
  readonly scanned: ScannedRequest;
}

export interface Intake {
  readonly slabs: SlabPool;
  readonly scanner: RequestScanner;
  readonly bodyLimitBytes: number;
}

/** Attaches to the exchange at once. Resolves with null when the client left before its request was complete. */
export function receiveRequest(exchange: Exchange, intake: Intake): Promise<ReceivedRequest | Refusal | null> {
  const refusal = refuseHead(exchange, intake.bodyLimitBytes);
  if (refusal !== null) return Promise.resolve(refusal);
  return new Promise((resolve) => {
    const declaredBytes = exchange.contentLength;
    const slab = intake.slabs.acquire(declaredBytes);
    const scan = intake.scanner.begin();
    let received = 0;
    exchange.onAbort(() => {
      scan.abandon();
      intake.slabs.release(slab);
      resolve(null);
    });
    exchange.receiveBody((bytes, isLast) => {
      slab.buffer.set(bytes, slab.bodyStart + received);
      received += bytes.length;
      scan.feed(bytes);
      if (!isLast) return;
      exchange.onAbort(null);
      const body = slab.buffer.subarray(slab.bodyStart, slab.bodyStart + received);
      const scanned = scan.finish(body);
      const fault = refuseScan(scanned);
      if (fault === null) {
        resolve({ slab, body, scanned });
        return;
      }
      intake.slabs.release(slab);
      resolve(fault);
    });
  });
}

function refuseHead(exchange: Exchange, bodyLimitBytes: number): Refusal | null {
  if (exchange.contentLength === -1) return { kind: 'length_required' };
  if (exchange.contentLength > bodyLimitBytes) return { kind: 'body_too_large', limitBytes: bodyLimitBytes };
  const encoding = exchange.header('content-encoding');
  if (encoding !== null && encoding !== 'identity') return { kind: 'unsupported_media_type' };
  // A body without a Content-Type is taken for what it must be; one that says it is something else is refused.
  const type = exchange.contentType;
  if (type !== '' && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) return { kind: 'unsupported_media_type' };
  return null;
}

function refuseScan(scanned: ScannedRequest): Refusal | null {
  switch (scanned.fault) {
    case null:
      return null;
    case 'invalid_json':
      return { kind: 'invalid_json', offset: scanned.faultOffset };
    case 'invalid_utf8':
      return { kind: 'invalid_utf8' };
    case 'not_an_object':
      return { kind: 'body_not_an_object' };
    case 'too_deep':
      return { kind: 'body_too_deep' };
    case 'duplicate_key':
      return { kind: 'duplicate_key', key: scanned.faultKey ?? '' };
  }
}
