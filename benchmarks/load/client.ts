// One simulated client: a connection that has at most one request open, checks each reply, and opens a new connection
// when it loses its own.

import { Connection } from './connection.ts';
import type { Target } from './job.ts';
import type { Recorder } from './recorder.ts';
import { requestBody } from './request-bodies.ts';

const RECONNECT_MS = 50;

/** The number of digits of a fresh header, so that it has the same length in every request. */
const FRESH_DIGITS = 16;
let freshValues = 0;

/** The whole request as bytes, head and body. It is the same each time, except for the digits of a fresh header. */
export function requestBytes(target: Target): Buffer {
  const body = requestBody(target.body, target.model);
  const lines = [
    `POST ${target.path} HTTP/1.1`,
    `host: 127.0.0.1:${target.port}`,
    'content-type: application/json',
    'accept: application/json',
  ];
  for (const [name, value] of Object.entries(target.headers)) lines.push(`${name}: ${value}`);
  if (target.freshHeader !== undefined) lines.push(`${target.freshHeader}: ${'0'.repeat(FRESH_DIGITS)}`);
  lines.push(`content-length: ${body.byteLength}`, '', '');
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), body]);
}

export class Client {
  private readonly target: Target;
  private readonly request: Buffer;
  /** Where the digits of the fresh header begin; -1: there is no such header. */
  private readonly freshAt: number;
  private readonly recorder: Recorder;
  /** Called when this client can send: at first, and after each reply. */
  private readonly onIdle: (client: Client) => void;
  private readonly findEvents: boolean;
  private connection: Connection | null = null;
  busy = false;
  private closed = false;
  private sentAtMs = 0;
  private firstByteAtMs = 0;

  constructor(target: Target, request: Buffer, recorder: Recorder, onIdle: (client: Client) => void) {
    this.target = target;
    // A client with its own copy of the request may change its bytes: the request before it has been answered.
    this.request = target.freshHeader === undefined ? request : Buffer.from(request);
    this.freshAt =
      target.freshHeader === undefined
        ? -1
        : request.indexOf(`${target.freshHeader}: `) + target.freshHeader.length + 2;
    this.recorder = recorder;
    this.onIdle = onIdle;
    this.findEvents = target.body === 'stream';
    this.connect();
  }

  /** Sends the request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void {
    this.busy = true;
    this.sentAtMs = sinceMs;
    if (this.freshAt !== -1)
      this.request.write(String(++freshValues).padStart(FRESH_DIGITS, '0'), this.freshAt, 'latin1');
    this.connection?.send(this.request);
  }

  close(): void {
    this.closed = true;
    this.connection?.close();
  }

  private connect(): void {
    this.connection = new Connection(this.target.port, this.findEvents, {
      onOpen: () => this.onIdle(this),
      onFirstByte: () => {
        this.firstByteAtMs = performance.now();
      },
      onEvent: (stampNs) => this.recorder.event(stampNs),
      onReply: (status, bodyBytes) => this.finish(status, bodyBytes),
      onBadReply: (reason) => this.recorder.error(reason),
      onClosed: (reason) => this.reconnect(reason),
    });
  }

  private finish(status: number, bodyBytes: number): void {
    const expected = this.target.replyBytes;
    if (status !== 200) this.recorder.error(`status ${status}`);
    else if (bodyBytes === 0 || (expected !== null && bodyBytes !== expected))
      this.recorder.error(`${bodyBytes} body bytes, expected ${expected}`);
    else this.recorder.reply(this.sentAtMs, this.firstByteAtMs, bodyBytes);
    this.busy = false;
    this.onIdle(this);
  }

  private reconnect(reason: string): void {
    if (this.busy) this.recorder.error(`connection lost: ${reason}`);
    this.busy = false;
    setTimeout(() => {
      if (!this.closed) this.connect();
    }, RECONNECT_MS);
  }
}
