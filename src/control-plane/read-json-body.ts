// Reads the body of a control-plane request: bounded, complete, JSON. These bodies are small and the gateway's own, so
// they are parsed, once their sender is authorized.

import type { Refusal } from '../domain/refusals/refusal.ts';
import { JSON_ALONE, readBodyType } from '../http/body-type.ts';
import type { Exchange } from '../http/exchange.ts';

const BODY_BYTES_MAX = 262_144;

export type JsonObject = Readonly<Record<string, unknown>>;

/** A whole body, as it came. */
export interface ArrivedBody {
  readonly bytes: Buffer;
}

/**
 * Starts to receive at once, so it must be called before anything is awaited. null: the client disconnected before its
 * request was complete.
 */
export function receiveJsonBody(
  exchange: Exchange,
  limitBytes = BODY_BYTES_MAX,
): Promise<ArrivedBody | Refusal | null> {
  const refusal = refuseHead(exchange, limitBytes);
  if (refusal !== null) return Promise.resolve(refusal);
  if (exchange.contentLength <= 0 && !exchange.isChunked) return Promise.resolve({ bytes: Buffer.alloc(0) });
  const bytesMax = exchange.isChunked ? limitBytes : exchange.contentLength;
  return new Promise((resolve) => {
    // Memory grows with what has arrived, not with what the head declares.
    let body = Buffer.alloc(0);
    let received = 0;
    exchange.watchClient({ onClientLeft: () => resolve(null) });
    const take = (bytes: Uint8Array, isLast: boolean): void => {
      if (received + bytes.length > bytesMax) {
        exchange.watchClient(null);
        exchange.body.receive({ take: () => undefined });
        return resolve({ kind: 'body_too_large', limitBytes: bytesMax });
      }
      if (received + bytes.length > body.length) {
        const larger = Buffer.allocUnsafe(Math.min(bytesMax, 2 * (received + bytes.length)));
        body.copy(larger, 0, 0, received);
        body = larger;
      }
      body.set(bytes, received);
      received += bytes.length;
      if (!isLast) return;
      exchange.watchClient(null);
      resolve({ bytes: body.subarray(0, received) });
    };
    exchange.body.receive({ take });
  });
}

function refuseHead(exchange: Exchange, limitBytes: number): Refusal | null {
  if (exchange.contentLength > limitBytes) return { kind: 'body_too_large', limitBytes };
  if (exchange.header('content-length') !== null && exchange.contentLength === -1) return { kind: 'length_required' };
  const type = readBodyType(exchange, JSON_ALONE);
  return typeof type === 'object' ? type : null;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A missing body reads as `{}`, which the schema may refuse. */
export function parseJsonBody({ bytes }: ArrivedBody): { readonly object: JsonObject } | Refusal {
  if (bytes.length === 0) return { object: {} };
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    return { kind: 'invalid_utf8' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'invalid_json' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { kind: 'body_not_an_object' };
  return { object: value as JsonObject };
}
