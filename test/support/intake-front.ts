// The HTTP front and the intake of request bodies, in the test's process. The test decides when the look-up of a
// credential ends; an accepted request is answered with the digest of the body that was received.

import { createHash } from 'node:crypto';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { imageEdits } from '../../src/generation/dialects/images.ts';
import { type Intake, type MemoryOwner, receiveRequest } from '../../src/generation/request/receive.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import type { HttpLimits } from '../../src/http/server.ts';
import { BufferPool } from '../../src/platform/buffer-pool.ts';
import { type HttpFront, startHttpFront } from './http-front.ts';

export const INTAKE_PATH = '/v1/intake';
export const BODY_LIMIT_BYTES = 1 << 25;
/** A key that is known without a look-up. */
export const WARM_KEY = 'warm';
/** Also a known key, of another organization. */
export const OTHER_WARM_KEY = 'other-warm';
/** A key that is refused without a look-up. */
export const REFUSED_KEY = 'refused';
/** A key that must be looked up; the test decides whether it is found. */
export const COLD_KEY = 'cold';

const SOMEBODY: MemoryOwner = { organizationId: 'somebody' };
const ANOTHER: MemoryOwner = { organizationId: 'another' };

export interface IntakeFront extends HttpFront {
  readonly buffers: BufferPool;
  /** Digests of the complete bodies of accepted requests. */
  readonly received: readonly string[];
  /** The number of waiting look-ups. */
  readonly waiting: number;
  /** Ends the waiting look-ups. */
  answerLookUps(isGood: boolean): void;
}

export async function startIntakeFront(
  options: { lentBytesMax?: number; limits?: Partial<HttpLimits> } = {},
): Promise<IntakeFront> {
  const buffers = new BufferPool(options.lentBytesMax === undefined ? {} : { lentBytesMax: options.lentBytesMax });
  const intake: Intake = { buffers, scanner: new RequestScanner(), bodyLimitBytes: BODY_LIMIT_BYTES };
  const received: string[] = [];
  const lookUps: ((found: MemoryOwner | Refusal) => void)[] = [];
  const identify = (key: string): MemoryOwner | Refusal | Promise<MemoryOwner | Refusal> => {
    if (key === WARM_KEY) return SOMEBODY;
    if (key === OTHER_WARM_KEY) return ANOTHER;
    if (key === REFUSED_KEY) return { kind: 'unauthorized' };
    return new Promise((resolve) => lookUps.push(resolve));
  };
  const handle = (exchange: Exchange): void => {
    const identified = identify(exchange.authorization.replace('Bearer ', ''));
    if ('kind' in identified) return exchange.refuse(identified);
    receiveRequest(exchange, identified, intake, imageEdits.form ?? null, {
      onReceived: ({ body, pooled }) => {
        const digest = digestOf(body);
        received.push(digest);
        buffers.release(pooled);
        exchange.answerJson(200, JSON.stringify({ digest }));
      },
      onUnreceived: (refusal) => exchange.refuse(refusal),
      onFault: (fault) => exchange.fail(fault),
    });
  };
  const front = await startHttpFront(
    [{ method: 'POST', path: INTAKE_PATH, envelope: 'openai', handle }],
    options.limits,
  );
  return {
    ...front,
    buffers,
    received,
    get waiting() {
      return lookUps.length;
    },
    answerLookUps(isGood) {
      for (const answer of lookUps.splice(0)) answer(isGood ? SOMEBODY : { kind: 'unauthorized' });
    },
  };
}

export function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex');
}

const PIECE_BYTES = 4_096;

/** JSON of exactly this length, in which no two parts are alike. */
export function bodyOf(bytes: number, mark = 'm'): Buffer {
  const body = Buffer.allocUnsafe(bytes);
  let end = body.write('{"model":"m","x":"', 'latin1');
  for (let at = 0; end < bytes; ) {
    let piece = '';
    for (; piece.length < PIECE_BYTES; at += 1) piece += `${mark}${at}.`;
    end += body.write(piece, end, 'latin1');
  }
  body.write('"}', bytes - 2, 'latin1');
  return body;
}

export function headOf(key: string, contentLength: number, method = 'POST', path = INTAKE_PATH): string {
  return (
    `${method} ${path} HTTP/1.1\r\nHost: gate.test\r\nAuthorization: Bearer ${key}\r\nContent-Type: ` +
    `application/json\r\nContent-Length: ${contentLength}\r\n\r\n`
  );
}
