// The clients of a soak: each sends one request, reads the reply as it is meant to, and notes what it saw of it.

import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { pause } from '../support/waiting.ts';
import type { SoakRequest } from './soak-requests.ts';

export interface SoakSeen {
  readonly request: Pick<SoakRequest, 'id' | 'sort' | 'organization' | 'hashes' | 'expected'>;
  readonly reads: SoakRequest['reading']['kind'];
  /** null: no response head arrived. */
  readonly status: number | null;
  readonly refusal: string | null;
  readonly retryAfter: string | null;
  /** The connection's framing says that it is whole, and a stream has its last event. */
  readonly isWhole: boolean;
  readonly executionId: string | null;
  /** Of the response's body; more than one: something foreign is in it. */
  readonly providerIds: readonly string[];
  /** Deltas of text, of a stream. */
  readonly deltas: number;
  readonly savedId: string | null;
  readonly fileId: string | null;
  readonly tookMs: number;
}

/** Below the server's own limit, so that no request meets a connection that is being closed for want of work. */
const IDLE_CONNECTION_MS = 5_000;
const SLOW_PAUSE_MS = 200;
const BYTES_KEPT_MAX = 1_000_000;
const PROVIDER_ID = /"(?:id|response_id)": ?"((?:chatcmpl-|resp_|msg_)sim-[0-9a-f]+-\d+)"/g;
const STREAM_END = /data: \[DONE\]\n\n$|event: response\.completed\n|event: message_stop\n/;
const DELTA = /"delta":\{"content":"[^"]|event: response\.output_text\.delta\n|"type":"text_delta"/g;

export class SoakClients {
  private readonly url: string;
  private readonly agent = new Agent({ keepAlive: true, scheduling: 'fifo', timeout: IDLE_CONNECTION_MS });

  constructor(url: string) {
    this.url = url;
  }

  close(): void {
    this.agent.destroy();
  }

  async send(request: SoakRequest): Promise<SoakSeen> {
    const startedMs = performance.now();
    const { id, sort, organization, hashes, expected, reading } = request;
    const answer = await this.ask(request).catch(() => null);
    const text = answer?.text ?? '';
    const status = answer?.response.statusCode ?? null;
    const header = (name: string): string | null => {
      const value = answer?.response.headers[name];
      return typeof value === 'string' ? value : null;
    };
    const isJson = header('content-type')?.startsWith('application/json') === true;
    const isComplete = status === 200 && answer?.isComplete === true;
    return {
      request: { id, sort, organization, hashes, expected },
      reads: reading.kind,
      status,
      refusal: status === null || status === 200 ? null : refusalOf(text),
      retryAfter: header('retry-after'),
      isWhole: isComplete && (!request.streamed || STREAM_END.test(text)),
      executionId: header('x-service-execution-id'),
      providerIds: request.hashes.length === 0 ? [] : idsIn(text),
      deltas: request.streamed ? deltasIn(text) : 0,
      savedId: sort === 'responses' && isComplete ? (idsIn(text)[0] ?? null) : null,
      fileId: sort === 'upload' && isJson && isComplete ? String((JSON.parse(text) as { id: string }).id) : null,
      tookMs: performance.now() - startedMs,
    };
  }

  private ask(request: SoakRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { method, path, key, contentType, body, reading } = request;
      const headers = {
        authorization: `Bearer ${key}`,
        'x-client-request-id': request.id,
        ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
        ...(contentType === null ? {} : { 'content-type': contentType }),
        ...(body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      };
      const sent = httpRequest(`${this.url}${path}`, { method, agent: this.agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        let events = 0;
        const done = (isComplete: boolean): void =>
          resolve({ response, text: Buffer.concat(chunks).toString('utf8'), isComplete });
        if (reading.kind === 'leaves' && reading.afterEvents === 0) sent.destroy();
        response.on('data', (chunk: Buffer) => {
          // Of what nobody reads the beginning is enough.
          if (bytes < BYTES_KEPT_MAX || reading.kind !== 'stops') chunks.push(chunk);
          bytes += chunk.length;
          if (reading.kind === 'leaves') {
            events += chunk.toString('latin1').split('\n\n').length - 1;
            if (events >= reading.afterEvents) sent.destroy();
          } else if (reading.kind === 'slowly') rest(response, SLOW_PAUSE_MS);
          else if (reading.kind === 'stops' && bytes === chunk.length) rest(response, reading.forMs);
        });
        response.on('end', () => done(response.complete));
        response.on('error', () => done(false));
        response.on('close', () => done(response.complete));
      });
      sent.on('error', reject).end(body ?? undefined);
    });
  }
}

interface Answer {
  readonly response: IncomingMessage;
  readonly text: string;
  readonly isComplete: boolean;
}

function rest(response: IncomingMessage, ms: number): void {
  response.pause();
  void pause(ms).then(() => response.resume());
}

function idsIn(text: string): string[] {
  // Of their own: a part of a string keeps all of it, and a long run would keep every body.
  return [...new Set(Array.from(text.matchAll(PROVIDER_ID), ([, id]) => Buffer.from(id ?? '').toString()))];
}

/** Of whole events: of one that was cut nothing counts. */
function deltasIn(text: string): number {
  return [...text.slice(0, text.lastIndexOf('\n\n') + 2).matchAll(DELTA)].length;
}

function refusalOf(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { error: string | { code?: string; type?: string } };
    return typeof error === 'string' ? error : (error.code ?? error.type ?? null);
  } catch {
    return null;
  }
}
