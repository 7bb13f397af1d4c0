// A provider of many streams at once, as a process of its own: it sends each event when it is due, stamped with its
// time, fails as it is asked to, and logs its calls as the simulated provider does.

import { fork } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CallEnd, CallStart } from '../../src/simulator/call-log.ts';
import { countOpenCalls } from '../support/simulated-provider.ts';
import { bodyHash, PROMPT_TOKENS, readOrder, STAMP_DIGITS, StreamEvents, type StreamOrder } from './streams-plan.ts';

export interface StreamsProvider {
  readonly url: string;
  readonly pid: number;
  readonly logPath: string;
  /** Calls that began and did not end. */
  openCalls(): number;
  stop(): Promise<void>;
}

export async function startStreamsProvider(): Promise<StreamsProvider> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-streams-'));
  const logPath = join(directory, 'calls.jsonl');
  const child = fork(fileURLToPath(import.meta.url), [logPath]);
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the provider of streams ended with ${code} before it listened`)));
    child.once('message', (message) => resolve(message as number));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid as number,
    logPath,
    openCalls: countOpenCalls(logPath),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await ended;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const TICK_MS = 1;
/** Longer than any gap between two events. */
const WHEEL_MS = 4_096;
const FLOOD_BYTES = 65_536;
const READING_MS = 50;
const HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  'transfer-encoding: chunked\r\n\r\n';
const REFUSAL = JSON.stringify({ error: { message: 'Refused on request.', type: 'server_error', code: null } });

class Wheel {
  private readonly slots: Call[][] = Array.from({ length: WHEEL_MS }, () => []);
  private nowMs = Math.floor(performance.now());

  add(call: Call, inMs: number): void {
    (this.slots[(this.nowMs + Math.max(1, inMs)) % WHEEL_MS] as Call[]).push(call);
  }

  /** Sends everything that has become due. */
  turn(): void {
    const untilMs = Math.floor(performance.now());
    while (this.nowMs < untilMs) {
      this.nowMs += 1;
      const due = this.slots[this.nowMs % WHEEL_MS] as Call[];
      if (due.length === 0) continue;
      this.slots[this.nowMs % WHEEL_MS] = [];
      for (const call of due) call.sendNext();
    }
  }
}

/** One request and its reply. */
class Call {
  private readonly socket: Socket;
  private readonly order: StreamOrder;
  private readonly events: StreamEvents;
  private readonly log: number;
  private readonly wheel: Wheel;
  private readonly startedMs = performance.now();
  private readonly named: Pick<CallEnd, 'id' | 'api' | 'model' | 'stream' | 'requestSha256'>;
  private readonly onEnd: () => void;
  private readonly withUsage: boolean;
  private bytesSent = 0;
  private tokensSent = 0;
  private status: number | null = null;
  private isOver = false;

  constructor(parts: { socket: Socket; body: string; log: number; wheel: Wheel; onEnd: () => void }) {
    const { order, withUsage } = readOrder(parts.body);
    this.socket = parts.socket;
    this.order = order;
    this.withUsage = withUsage;
    this.events = new StreamEvents(order, withUsage);
    this.log = parts.log;
    this.wheel = parts.wheel;
    this.onEnd = parts.onEnd;
    const { model } = JSON.parse(parts.body) as { model: string };
    const requestSha256 = bodyHash(parts.body);
    this.named = { id: this.events.providerId, api: 'chat_completions', model, stream: true, requestSha256 };
    this.write({ type: 'start', at: new Date().toISOString(), ...this.named, requestBytes: parts.body.length });
  }

  start(): void {
    const { fault, gapMs } = this.order;
    if (fault === 'refuse') {
      this.status = 503;
      this.socket.write(
        `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: ${REFUSAL.length}\r\n\r\n${REFUSAL}`,
      );
      this.end(false);
      return;
    }
    this.status = 200;
    this.socket.write(HEAD);
    if (gapMs === 0) this.sendFlood();
    else this.wheel.add(this, 1 + (this.events.seed % gapMs));
  }

  sendNext(): void {
    if (this.isOver) return;
    const { tokens, gapMs, fault, faultAfter } = this.order;
    if (fault !== null && this.tokensSent === faultAfter) {
      this.fail();
      return;
    }
    if (this.tokensSent === tokens) {
      this.finish();
      return;
    }
    this.sendPiece(this.nextEvent());
    this.wheel.add(this, gapMs);
  }

  /** As much as the other side takes, piece by piece, so that others are sent theirs in time. */
  private sendFlood(): void {
    if (this.isOver) return;
    if (this.tokensSent === this.order.tokens) {
      this.finish();
      return;
    }
    let piece = '';
    while (piece.length < FLOOD_BYTES && this.tokensSent < this.order.tokens) piece += this.nextEvent();
    if (this.sendPiece(piece)) setImmediate(() => this.sendFlood());
    else this.socket.once('drain', () => this.sendFlood());
  }

  private nextEvent(): string {
    const { head, tail } = this.events.next();
    this.tokensSent += 1;
    return `${head}${String(process.hrtime.bigint()).padStart(STAMP_DIGITS, '0')}${tail}`;
  }

  private sendPiece(piece: string): boolean {
    this.bytesSent += piece.length;
    return this.socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`, 'latin1');
  }

  private finish(): void {
    if (this.isOver) return;
    this.sendPiece(this.events.closing());
    this.socket.write('0\r\n\r\n', (fault) => this.end(fault === undefined || fault === null));
  }

  private fail(): void {
    switch (this.order.fault) {
      case 'no-end':
        this.socket.write('0\r\n\r\n', () => this.end(false));
        return;
      case 'mid-event': {
        const { head } = this.events.next();
        this.sendPiece(head.slice(0, head.length >> 1));
        setImmediate(() => this.socket.destroy());
        return;
      }
      case 'cut':
        setImmediate(() => this.socket.destroy());
        return;
      case 'reset':
        // What was sent before should be read: a reset discards what was not.
        setTimeout(() => this.socket.resetAndDestroy(), READING_MS);
        return;
      // It stalls until the caller leaves.
      case 'stall':
      case 'refuse':
      case null:
        return;
    }
  }

  /** The reply is over, or the caller has left. */
  end(completed: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    this.write({
      type: 'end',
      at: new Date().toISOString(),
      ...this.named,
      status: this.status,
      promptTokens: PROMPT_TOKENS,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      completionTokens: this.tokensSent,
      images: 0,
      usageSent: completed && this.withUsage,
      completed,
      bytesSent: this.bytesSent,
      durationMs: Math.round(performance.now() - this.startedMs),
    });
    this.onEnd();
  }

  private write(line: CallStart | CallEnd): void {
    writeSync(this.log, `${JSON.stringify(line)}\n`);
  }
}

function serve(socket: Socket, log: number, wheel: Wheel): void {
  let waiting = '';
  let call: Call | null = null;
  const answerNext = (): void => {
    const headEnd = waiting.indexOf('\r\n\r\n');
    if (call !== null || headEnd === -1) return;
    const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(waiting.slice(0, headEnd + 2))?.[1] ?? 0);
    const bodyEnd = headEnd + 4 + length;
    if (waiting.length < bodyEnd) return;
    const body = waiting.slice(headEnd + 4, bodyEnd);
    waiting = waiting.slice(bodyEnd);
    const onEnd = (): void => {
      call = null;
      setImmediate(answerNext);
    };
    call = new Call({ socket, body, log, wheel, onEnd });
    call.start();
  };
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.on('close', () => call?.end(false));
  socket.on('data', (bytes) => {
    waiting += bytes.toString('latin1');
    answerNext();
  });
}

if (import.meta.main) {
  const log = openSync(process.argv[2] as string, 'a', 0o600);
  const wheel = new Wheel();
  setInterval(() => wheel.turn(), TICK_MS);
  const server = createServer((socket) => serve(socket, log, wheel));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    process.send?.((server.address() as AddressInfo).port);
  });
  const stop = (): void => {
    closeSync(log);
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('disconnect', stop);
}
