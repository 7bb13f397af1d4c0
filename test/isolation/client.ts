// The clients of a run. They use kept connections, which all tenants share as behind one proxy, send what the plan
// says, leave where the plan says, and check every byte of each reply.

import { connect, type Socket } from 'node:net';
import { checkBlockedReply, checkGuardedRefusal } from './guarded.ts';
import { findMarks } from './marks.ts';
import type { OwnKeys } from './own-keys.ts';
import type { Exchange, SentReply } from './plan.ts';
import type { Watch } from './watch.ts';

const HEAD_BYTES_MAX = 32_768;
const REFUSAL_BYTES_MAX = 65_536;
const READ_PAUSE_MS = 30;
const REPLY_TIMEOUT_MS = 45_000;

/** How an exchange ended for its client. `lost`: the gateway closed the connection. */
export type ClientEnd = 'whole' | 'cut' | 'left' | 'lost' | 'timeout';

export class Clients {
  private readonly port: number;
  private readonly watch: Watch;
  private readonly ownKeys: OwnKeys | null;
  private readonly idle: ClientConnection[] = [];
  private readonly open = new Set<ClientConnection>();

  constructor(port: number, watch: Watch, ownKeys: OwnKeys | null) {
    this.port = port;
    this.watch = watch;
    this.ownKeys = ownKeys;
  }

  /** Sends one exchange, or two at once on one connection, and resolves when nothing more of them is to come. */
  async run(exchanges: readonly Exchange[]): Promise<ClientEnd> {
    const connection = this.take();
    const end = await connection.run(exchanges);
    if (connection.isKept) this.idle.push(connection);
    else connection.close();
    return end;
  }

  private take(): ClientConnection {
    for (let connection = this.idle.pop(); connection !== undefined; connection = this.idle.pop()) {
      if (!connection.isClosed) return connection;
    }
    const connection = new ClientConnection(this.port, this.watch, () => this.open.delete(connection), this.ownKeys);
    this.open.add(connection);
    return connection;
  }

  close(): void {
    for (const connection of this.open) connection.close();
  }
}

/** The state of reading one reply. */
interface Reading {
  readonly exchange: Exchange;
  status: number;
  /** The reply that a provider sent; null: the gateway itself answers. */
  expected: SentReply | null;
  /** Bytes of the body still to come; -1: the body is in chunks. */
  left: number;
  at: number;
  refusal: string;
  broken: boolean;
  closes: boolean;
}

export class ClientConnection {
  isClosed = false;
  private readonly socket: Socket;
  private readonly watch: Watch;
  /** null: no organization with own keys uses this connection. */
  private readonly ownKeys: OwnKeys | null;
  private held: Buffer = EMPTY;
  private waiting: Exchange[] = [];
  private reading: Reading | null = null;
  private chunk: 'size' | 'data' | 'dataEnd' | 'trailer' = 'size';
  private chunkLeft = 0;
  private done: ((end: ClientEnd) => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  private closesAfter = false;
  private hasPaused = false;

  constructor(port: number, watch: Watch, onClosed: () => void, ownKeys: OwnKeys | null = null) {
    this.watch = watch;
    this.ownKeys = ownKeys;
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (bytes) => this.read(bytes));
    this.socket.on('end', () => this.socket.end());
    this.socket.on('close', () => {
      this.isClosed = true;
      onClosed();
      this.finish(this.reading === null ? 'lost' : 'cut');
    });
  }

  get isKept(): boolean {
    return !this.isClosed && !this.closesAfter;
  }

  close(): void {
    this.socket.destroy();
  }

  run(exchanges: readonly Exchange[]): Promise<ClientEnd> {
    return new Promise((resolve) => {
      this.done = resolve;
      this.waiting = [...exchanges];
      this.hasPaused = false;
      this.timer = setTimeout(() => {
        this.watch.violation(
          'left over',
          `exchange ${exchanges[0]?.index}: no end within ${REPLY_TIMEOUT_MS} ms ` +
            `(${exchanges[0]?.providerSteps.join()}; ${exchanges[0]?.client})`,
        );
        this.leave('timeout');
      }, REPLY_TIMEOUT_MS);
      this.send(exchanges);
    });
  }

  private send(exchanges: readonly Exchange[]): void {
    const [exchange] = exchanges;
    if (exchange === undefined) return;
    const { socket } = this;
    const { head, body, client } = exchange;
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other steps are for another moment
    switch (client) {
      case 'leaves within its head':
        socket.write(head.slice(0, head.length / 2), 'latin1');
        setImmediate(() => this.leave('left'));
        return;
      case 'leaves within its body':
        socket.write(head, 'latin1');
        socket.write(body.subarray(0, body.length / 2), () => this.leave('left'));
        return;
      case 'leaves with the last byte of its request':
        socket.write(head, 'latin1');
        socket.write(body, () => this.leave('left'));
        return;
      case 'leaves before the first byte':
        socket.write(head, 'latin1');
        socket.write(body, () => setTimeout(() => this.leave('left'), 4));
        return;
      case 'sends its body slowly':
        socket.write(head, 'latin1');
        this.sendSlowly(body, 0);
        return;
      default:
        socket.write(Buffer.concat(exchanges.flatMap((one) => [Buffer.from(one.head, 'latin1'), one.body])));
    }
  }

  private sendSlowly(body: Buffer, at: number): void {
    if (this.isClosed || this.done === null) return;
    const piece = Math.ceil(body.length / 4);
    this.socket.write(body.subarray(at, at + piece));
    if (at + piece < body.length) setTimeout(() => this.sendSlowly(body, at + piece), 1);
  }

  leave(end: ClientEnd): void {
    if (this.done === null) return;
    this.socket.destroy();
    this.isClosed = true;
    this.finish(end);
  }

  private finish(end: ClientEnd): void {
    const { done } = this;
    this.done = null;
    this.reading = null;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    done?.(end);
  }

  private read(bytes: Buffer): void {
    if (this.done === null) {
      if (!this.isClosed)
        this.watch.violation(
          'wrong bytes',
          `to a client that waits for nothing: ${bytes.subarray(0, 200).toString('latin1')}`,
        );
      this.close();
      return;
    }
    let rest = bytes;
    while (rest.length > 0 && this.done !== null)
      rest = this.reading === null ? this.readHead(rest) : this.readBody(this.reading, rest);
  }

  private readHead(bytes: Buffer): Buffer {
    this.held = this.held.length === 0 ? bytes : Buffer.concat([this.held, bytes]);
    const end = this.held.indexOf('\r\n\r\n');
    if (end === -1) {
      if (this.held.length > HEAD_BYTES_MAX) this.leave('cut');
      return EMPTY;
    }
    const head = this.held.toString('latin1', 0, end + 2);
    const rest = this.held.subarray(end + 4);
    this.held = EMPTY;
    const exchange = this.waiting.shift();
    if (exchange === undefined) {
      this.watch.violation('wrong bytes', `a reply that nobody asked for: ${head.slice(0, 300)}`);
      this.leave('cut');
      return EMPTY;
    }
    this.watch.checkedBytes += head.length;
    for (const mark of findMarks(head)) {
      const isOwn = mark.tenant === exchange.tenant && mark.exchange === exchange.index && mark.kind === 'r';
      if (!isOwn)
        this.watch.violation(
          'foreign mark',
          `client of exchange ${exchange.index} of tenant ${exchange.tenant}: in the head of its ` +
            `reply ${JSON.stringify(mark)}`,
        );
    }
    exchange.executionId = /\r\nx-service-execution-id: (\S+)\r\n/i.exec(head)?.[1] ?? '';
    const place = /\r\nx-request-id: mk\S+\.(\d+)\r\n/i.exec(head)?.[1];
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
    const expected = place === undefined ? null : (exchange.replies[Number(place)] ?? null);
    this.reading = {
      exchange,
      status: Number(head.slice(9, 12)),
      expected,
      left: length === undefined ? -1 : Number(length),
      at: 0,
      refusal: '',
      broken: false,
      closes: /\r\nconnection: close\r\n/i.test(head),
    };
    this.chunk = 'size';
    this.chunkLeft = 0;
    if (expected !== null && expected.status !== this.reading.status)
      this.watch.violation('wrong bytes', `status ${this.reading.status}, not ${expected.status}`);
    if (this.reading.left === 0) this.endReply(this.reading);
    return rest;
  }

  private readBody(reading: Reading, bytes: Buffer): Buffer {
    if (reading.left === -1) return this.readChunked(reading, bytes);
    const own = bytes.subarray(0, reading.left);
    reading.left -= own.length;
    this.take(reading, own);
    if (reading.left === 0 && this.done !== null) this.endReply(reading);
    return bytes.subarray(own.length);
  }

  /** Reads a chunked body. Chunk lines are short, so an incomplete line is kept until the rest comes. */
  private readChunked(reading: Reading, bytes: Buffer): Buffer {
    if (this.chunk === 'data') {
      const own = bytes.subarray(0, this.chunkLeft);
      this.chunkLeft -= own.length;
      if (this.chunkLeft === 0) this.chunk = 'dataEnd';
      this.take(reading, own);
      return bytes.subarray(own.length);
    }
    const text = this.held.length === 0 ? bytes : Buffer.concat([this.held, bytes]);
    const end = text.indexOf('\r\n');
    if (end === -1) {
      this.held = text;
      return EMPTY;
    }
    this.held = EMPTY;
    if (this.chunk === 'dataEnd') {
      this.chunk = 'size';
      if (end > 0) this.breakOff(reading, text);
    } else if (this.chunk === 'trailer') this.endReply(reading);
    else {
      this.chunkLeft = Number.parseInt(text.toString('latin1', 0, end), 16);
      this.chunk = this.chunkLeft === 0 ? 'trailer' : 'data';
      if (Number.isNaN(this.chunkLeft)) this.breakOff(reading, text);
    }
    return text.subarray(end + 2);
  }

  private breakOff({ exchange, at }: Reading, text: Buffer): void {
    const found = JSON.stringify(text.toString('latin1', 0, 200));
    this.watch.violation(
      'wrong bytes',
      `client of exchange ${exchange.index}: no chunk after ${at} bytes of its reply, but ${found}`,
    );
    this.leave('cut');
  }

  /** Compares bytes of a reply's body with what the provider has sent for it. */
  private take(reading: Reading, bytes: Buffer): void {
    const { exchange, expected } = reading;
    this.watch.checkedBytes += bytes.length;
    if (expected === null || expected.isBlocked) {
      if (reading.refusal.length < REFUSAL_BYTES_MAX) reading.refusal += bytes.toString('latin1');
    } else if (!reading.broken) {
      const end = reading.at + bytes.length;
      if (end > expected.content.length || expected.content.compare(bytes, 0, bytes.length, reading.at, end) !== 0) {
        reading.broken = true;
        const where =
          `client of exchange ${exchange.index} of ` +
          `tenant ${exchange.tenant} (${exchange.kind}, ${exchange.providerSteps.join()}): its reply from ` +
          `byte ${reading.at} of ${expected.content.length}`;
        this.watch.wrongBytes(bytes, exchange, where);
      }
    }
    reading.at += bytes.length;
    this.act(reading);
  }

  private act({ exchange, expected, at }: Reading): void {
    if (exchange.client === 'leaves within the reply') this.leave('left');
    else if (exchange.client === 'leaves at the last byte' && expected !== null && at >= expected.content.length - 1)
      this.leave('left');
    else if (exchange.client === 'reads slowly' && !this.hasPaused) {
      this.hasPaused = true;
      this.socket.pause();
      setTimeout(() => this.socket.resume(), READ_PAUSE_MS);
    }
  }

  private endReply(reading: Reading): void {
    const { exchange, expected, at, status } = reading;
    const { watch } = this;
    this.reading = null;
    watch.count(watch.answers, expected === null ? `gateway ${status}` : `provider ${status}`);
    if (expected === null) {
      for (const mark of findMarks(reading.refusal)) {
        if (mark.tenant !== exchange.tenant)
          watch.violation(
            'foreign mark',
            `client of exchange ${exchange.index}: a refusal has ${JSON.stringify(mark)}`,
          );
        else if (mark.kind === 'k')
          watch.violation('wrong credential', `client of exchange ${exchange.index}: a refusal has its own key`);
      }
      this.ownKeys?.checkRefusal(exchange, status, reading.refusal);
      checkGuardedRefusal(exchange, status, reading.refusal, watch);
    } else if (expected.isBlocked) {
      watch.count(watch.faults, 'policy ends the stream');
      checkBlockedReply(exchange, reading.refusal, expected.content, watch);
    } else if (!reading.broken && (at !== expected.content.length || !expected.whole)) {
      watch.violation(
        'false end',
        `exchange ${exchange.index} (${exchange.kind}, ${exchange.providerSteps.join()}): ${at} of ${expected.content.length} bytes look whole`,
      );
    }
    if (reading.closes) this.closesAfter = true;
    if (this.waiting.length === 0) this.finish('whole');
  }
}

const EMPTY = Buffer.alloc(0);
