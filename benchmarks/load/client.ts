// One simulated client: a connection that has at most one request open, checks each reply, and opens a new connection when it loses its own.

import { Connection } from './connection.ts';
import type { Target } from './job.ts';
import type { Recorder } from './recorder.ts';
import { requestBody } from './request-bodies.ts';

const RECONNECT_MS = 50;

/** The whole request as bytes, head and body: it is the same each time. */
export function requestBytes(target: Target): Buffer {
  const body = requestBody(target.body, target.model);
  const lines = [`POST ${target.path} HTTP/1.1`, `host: 127.0.0.1:${target.port}`, 'content-type: application/json', 'accept: application/json'];
  for (const [name, value] of Object.entries(target.headers)) lines.push(`${name}: ${value}`);
  lines.push(`content-length: ${body.byteLength}`, '', '');
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), body]);
}

export class Client {
  readonly #target: Target;
  readonly #request: Buffer;
  readonly #recorder: Recorder;
  /** Called when this client can send: at first, and after each reply. */
  readonly #onIdle: (client: Client) => void;
  readonly #findEvents: boolean;
  #connection: Connection | null = null;
  #busy = false;
  #closed = false;
  #sentAtMs = 0;
  #firstByteAtMs = 0;

  constructor(target: Target, request: Buffer, recorder: Recorder, onIdle: (client: Client) => void) {
    this.#target = target;
    this.#request = request;
    this.#recorder = recorder;
    this.#onIdle = onIdle;
    this.#findEvents = target.body === 'stream';
    this.#connect();
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Sends the request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void {
    this.#busy = true;
    this.#sentAtMs = sinceMs;
    this.#connection?.send(this.#request);
  }

  close(): void {
    this.#closed = true;
    this.#connection?.close();
  }

  #connect(): void {
    this.#connection = new Connection(this.#target.port, this.#findEvents, {
      onOpen: () => this.#onIdle(this),
      onFirstByte: () => {
        this.#firstByteAtMs = performance.now();
      },
      onEvent: (stampNs) => this.#recorder.event(stampNs),
      onReply: (status, bodyBytes) => this.#finish(status, bodyBytes),
      onBadReply: (reason) => this.#recorder.error(reason),
      onClosed: (reason) => this.#reconnect(reason),
    });
  }

  #finish(status: number, bodyBytes: number): void {
    const expected = this.#target.replyBytes;
    if (status !== 200) this.#recorder.error(`status ${status}`);
    else if (bodyBytes === 0 || (expected !== null && bodyBytes !== expected)) this.#recorder.error(`${bodyBytes} body bytes, expected ${expected}`);
    else this.#recorder.reply(this.#sentAtMs, this.#firstByteAtMs, bodyBytes);
    this.#busy = false;
    this.#onIdle(this);
  }

  #reconnect(reason: string): void {
    if (this.#busy) this.#recorder.error(`connection lost: ${reason}`);
    this.#busy = false;
    setTimeout(() => {
      if (!this.#closed) this.#connect();
    }, RECONNECT_MS);
  }
}
