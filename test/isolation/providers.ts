// The providers of a run: real sockets that check every byte of every request to the end, also those they let wait, and
// answer as the exchange's plan says.

import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { findExchange, findMarks } from './marks.ts';
import type { Exchange, ProviderStep } from './plan.ts';
import { type RenderedReply, renderRefusal, renderReply } from './replies.ts';
import type { Watch } from './watch.ts';
import { MODELS, PROVIDERS, type ProviderId, providerKeyOf } from './world.ts';

const HEAD_BYTES_MAX = 16_384;
/** So much of a body tells which exchange it is of, where the head does not. */
const NAMING_BYTES = 1_000;
const STALL_MS_MAX = 1_500;
const PAUSE_WITHIN_REPLY_MS = 15;
const ASKED_USAGE = Buffer.from(',"stream_options":{"include_usage":true}');
const TLS_FILE = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../support/tls/localhost-${name}.pem`, import.meta.url)));

export interface ProviderParts {
  /** Of the run that is under way. */
  watch(): Watch;
  findExchange(index: number): Exchange | undefined;
  /** An exchange of `kind: auto` whose classifier call is to wait until this resolves. */
  classifierWaits?(exchange: Exchange): Promise<void> | null;
}

export class Providers {
  readonly urls = new Map<ProviderId, string>();
  readonly parts: ProviderParts;
  private readonly servers: Server[] = [];
  private readonly sockets = new Set<Socket>();
  /** Readers that stand still, the oldest first. */
  private readonly stalled: { readonly untilExchanges: number; readonly resume: () => void }[] = [];

  constructor(parts: ProviderParts) {
    this.parts = parts;
  }

  async listen(): Promise<void> {
    for (const { id, isTls } of PROVIDERS) {
      const accept = (socket: Socket): void => {
        this.sockets.add(socket);
        socket.once('close', () => this.sockets.delete(socket));
        new ProviderConnection(this, id, socket).begin();
      };
      const server: Server = isTls
        ? createTlsServer({ key: TLS_FILE('key'), cert: TLS_FILE('certificate') }, accept)
        : createPlainServer({ allowHalfOpen: true, noDelay: true }, accept);
      server.on('tlsClientError', () => undefined);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
      const { port } = server.address() as AddressInfo;
      this.urls.set(id, isTls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`);
      this.servers.push(server);
    }
  }

  stall(resume: () => void): void {
    this.stalled.push({ untilExchanges: this.parts.watch().exchanges + 40, resume });
    setTimeout(() => this.release(Number.POSITIVE_INFINITY, 1), STALL_MS_MAX).unref();
  }

  /** Readers that have stood still for long enough read on. */
  release(exchanges: number, most = Number.POSITIVE_INFINITY): void {
    for (let left = most; left > 0; left -= 1) {
      const [oldest] = this.stalled;
      if (oldest === undefined || oldest.untilExchanges > exchanges) return;
      this.stalled.shift();
      oldest.resume();
    }
  }

  async close(): Promise<void> {
    const closed = this.servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(closed);
  }
}

/** A request that is coming in: whose it is, and what its body must be. */
interface Call {
  readonly exchange: Exchange;
  readonly step: ProviderStep;
  readonly asksForUsage: boolean;
  readonly parts: readonly Buffer[];
  readonly bodyBytes: number;
  /** Bytes of the body that have come. */
  at: number;
  /** The body is not what it must be: it was told once. */
  broken: boolean;
  answered: boolean;
}

class ProviderConnection {
  private readonly all: Providers;
  private readonly id: ProviderId;
  private readonly socket: Socket;
  private held: Buffer = EMPTY;
  private call: Call | null = null;
  private calls = 0;

  constructor(all: Providers, id: ProviderId, socket: Socket) {
    this.all = all;
    this.id = id;
    this.socket = socket;
  }

  begin(): void {
    const { socket } = this;
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('data', (bytes) => this.read(bytes));
  }

  private get watch(): Watch {
    return this.all.parts.watch();
  }

  private read(bytes: Buffer): void {
    if (this.call !== null) {
      const rest = this.readBody(this.call, bytes);
      if (rest.length === 0) return;
      bytes = rest;
    }
    this.held = this.held.length === 0 ? bytes : Buffer.concat([this.held, bytes]);
    while (this.call === null && this.held.length > 0 && this.readHead()) {
      // The next request, if there is one behind it.
    }
  }

  /** False: there is more to come before anything can be said. */
  private readHead(): boolean {
    const { held, id } = this;
    const end = held.indexOf('\r\n\r\n');
    if (end === -1) {
      if (held.length > HEAD_BYTES_MAX) this.giveUp(`no head in ${held.length} bytes`);
      return false;
    }
    const head = held.toString('latin1', 0, end + 2);
    const bodyBytes = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1] ?? 0);
    const bodyStart = end + 4;
    if (id === 'judge') return this.readClassifierCall(head, bodyStart, bodyBytes);
    const nameInHead = findExchange(head.slice(head.indexOf('?')));
    if (nameInHead === null && held.length < bodyStart + Math.min(bodyBytes, NAMING_BYTES)) return false;
    const index = nameInHead ?? findExchange(held.toString('latin1', bodyStart, bodyStart + NAMING_BYTES));
    const exchange = index === null ? undefined : this.all.parts.findExchange(index);
    if (exchange === undefined) {
      this.giveUp(`a request of no exchange that is open (${index}): ${head.slice(0, 200)}`);
      return false;
    }
    const call = this.open(exchange, head, bodyBytes);
    this.call = call;
    this.held = EMPTY;
    this.answerHead(call);
    const rest = this.readBody(call, held.subarray(bodyStart));
    this.held = rest;
    return true;
  }

  private open(exchange: Exchange, head: string, bodyBytes: number): Call {
    const { watch, id } = this;
    watch.calls += 1;
    this.checkHead(exchange, head);
    if (exchange.countedAs !== null) watch.count(watch.lookUps, exchange.countedAs);
    const earlier = exchange.calledProviders.filter((provider) => provider === id).length;
    exchange.calledProviders.push(id);
    if (exchange.forbidden !== null)
      watch.violation(
        'stray call',
        `${id}: exchange ${exchange.index} of tenant ${exchange.tenant}: ${exchange.forbidden}`,
      );
    else if (earlier > exchange.retries)
      watch.violation(
        'stray call',
        `${id}: exchange ${exchange.index} of tenant ${exchange.tenant} came ${earlier + 1} times`,
      );
    const planned = exchange.providerSteps[exchange.calledProviders.length - 1] ?? 'serves';
    const step = planned === 'closes a kept connection' && this.calls === 0 ? 'serves' : planned;
    if (step !== 'serves') watch.count(watch.faults, `provider ${step}`);
    this.calls += 1;
    const { parts, asksForUsage } = this.expectedBody(exchange, bodyBytes);
    const expectedBytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (expectedBytes !== bodyBytes)
      watch.violation(
        'wrong bytes',
        `${id}: exchange ${exchange.index}: a body of ${bodyBytes} bytes, not ${expectedBytes}`,
      );
    return { exchange, step, asksForUsage, parts, bodyBytes, at: 0, broken: false, answered: false };
  }

  private checkHead(exchange: Exchange, head: string): void {
    const { watch, id } = this;
    watch.checkedBytes += head.length;
    const auth = PROVIDERS.find((provider) => provider.id === id)?.auth ?? '';
    const credential =
      auth === 'bearer'
        ? `\r\nauthorization: Bearer ${providerKeyOf(id)}\r\n`
        : `\r\nx-api-key: ${providerKeyOf(id)}\r\n`;
    const count = head.split(/\r\n(?:authorization|x-api-key):/i).length - 1;
    if (count !== 1 || !head.includes(credential)) watch.violation('wrong credential', `${id}: ${head.slice(0, 400)}`);
    for (const mark of findMarks(head)) {
      // The path names a response of the same tenant's.
      const isOwn =
        mark.tenant === exchange.tenant &&
        (mark.exchange === 0 || mark.exchange === exchange.index || exchange.kind === 'saved');
      const mayPass = mark.kind === 'p' || (mark.kind === 'r' && exchange.kind === 'saved');
      if (!isOwn)
        watch.violation(
          'foreign mark',
          `${id}: exchange ${exchange.index} of tenant ${exchange.tenant} has in its head: ${JSON.stringify(mark)}`,
        );
      else if (!mayPass)
        watch.violation(
          'wrong credential',
          `${id}: the client's own ${JSON.stringify(mark)} in the head of exchange ${exchange.index}`,
        );
    }
  }

  private expectedBody(
    { body, modelAt, models, isForm, isStream, kind }: Exchange,
    bodyBytes: number,
  ): { parts: Buffer[]; asksForUsage: boolean } {
    if (modelAt === null) return { parts: [body], asksForUsage: false };
    const candidates = MODELS.filter(({ id }) => models.includes(id)).flatMap(({ deployments, asksForUsage }) =>
      deployments
        .filter(({ provider }) => provider === this.id)
        .map(({ model }) => {
          const before = body.subarray(0, modelAt.start);
          const behind = body.subarray(modelAt.end);
          const own = Buffer.from(isForm ? model : JSON.stringify(model));
          const asks = asksForUsage && isStream && kind === 'chat';
          return {
            parts: asks
              ? [before, own, behind.subarray(0, -1), ASKED_USAGE, behind.subarray(-1)]
              : [before, own, behind],
            asksForUsage: asks,
          };
        }),
    );
    const fits = candidates.find(({ parts }) => parts.reduce((sum, part) => sum + part.length, 0) === bodyBytes);
    return fits ?? candidates[0] ?? { parts: [body], asksForUsage: false };
  }

  /** Returns what lies behind the body. */
  private readBody(call: Call, bytes: Buffer): Buffer {
    const { socket } = this;
    const own = bytes.subarray(0, call.bodyBytes - call.at);
    this.compare(call, own);
    call.at += own.length;
    if (call.step === 'reads slowly' && call.at < call.bodyBytes) {
      socket.pause();
      setTimeout(() => socket.resume(), 2);
    }
    if (call.at < call.bodyBytes) return EMPTY;
    this.call = null;
    if (!call.answered) this.answerBody(call);
    return bytes.subarray(own.length);
  }

  /** Every byte against what the client has sent. */
  private compare(call: Call, bytes: Buffer): void {
    if (call.broken) return;
    this.watch.checkedBytes += bytes.length;
    let partStart = 0;
    for (const part of call.parts) {
      const from = Math.max(call.at, partStart);
      const to = Math.min(call.at + bytes.length, partStart + part.length);
      if (from < to && part.compare(bytes, from - call.at, to - call.at, from - partStart, to - partStart) !== 0) {
        call.broken = true;
        const { exchange } = call;
        const where =
          `${this.id}: the body of exchange ${exchange.index} of ` +
          `tenant ${exchange.tenant} (${call.step}) ` +
          `from byte ${call.at} of ${call.bodyBytes}`;
        this.watch.wrongBytes(bytes, exchange, where);
        return;
      }
      partStart += part.length;
    }
  }

  /** What is done before the body is read. */
  private answerHead(call: Call): void {
    const { exchange, step } = call;
    const { socket } = this;
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other steps are for another moment
    switch (step) {
      case 'refuses before it has read the body':
        this.sendWhole(call, renderRefusal(exchange, 503));
        break;
      case 'sends the head of a 503 and stalls': {
        const { head, wire, sent } = renderRefusal(exchange, 503);
        call.answered = true;
        socket.write(head);
        this.standStill(() => {
          sent.whole = true;
          for (const piece of wire) socket.write(piece);
        });
        break;
      }
      case 'sends a whole 503 and stalls':
        this.sendWhole(call, renderRefusal(exchange, 503));
        this.standStill(() => undefined);
        break;
      case 'refuses and closes':
        this.sendWhole(call, renderRefusal(exchange, 500, 'connection: close\r\n'));
        socket.end();
        break;
      case 'closes a kept connection':
        exchange.retries += 1;
        call.answered = true;
        socket.destroy();
        break;
      case 'answers before the body is whole':
        this.sendWhole(call, renderReply(exchange, call.asksForUsage));
        break;
      case 'answers before the body is whole and stalls':
        this.sendWhole(call, renderReply(exchange, call.asksForUsage));
        this.standStill(() => undefined);
        break;
      default:
    }
  }

  private standStill(onResume: () => void): void {
    const { socket } = this;
    socket.pause();
    this.all.stall(() => {
      if (socket.destroyed) return;
      onResume();
      socket.resume();
    });
  }

  private answerBody(call: Call): void {
    const { exchange, step } = call;
    const { socket } = this;
    call.answered = true;
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other steps are for another moment
    switch (step) {
      case 'refuses the whole request':
        return this.sendWhole(call, renderRefusal(exchange, 503));
      case 'asks for a pause':
        return this.sendWhole(call, renderRefusal(exchange, 429, 'retry-after: 1\r\n'));
      case 'does not know its credential':
        return this.sendWhole(call, renderRefusal(exchange, 401));
      case 'resets without an answer':
        // On a kept connection it looks as if the connection had been dead before, and the request comes once more.
        if (this.calls > 1) exchange.retries += 1;
        socket.destroy();
        return;
      case 'sends an interim reply':
        socket.write(`HTTP/1.1 103 Early Hints\r\nlink: ${exchange.replyMark}\r\n\r\n`);
        return this.sendWhole(call, renderReply(exchange, call.asksForUsage));
      case 'sends a second reply that nobody asked for':
        return this.sendTwice(call);
      case 'cuts its reply in the middle':
      case 'stalls within its reply':
        return this.sendHalf(call);
      default:
        if (exchange.client === 'leaves before the first byte')
          setTimeout(() => this.sendPieces(renderReply(exchange, call.asksForUsage)), PAUSE_WITHIN_REPLY_MS);
        else this.sendPieces(renderReply(exchange, call.asksForUsage));
    }
  }

  private sendWhole(call: Call, { head, wire, end, sent }: RenderedReply): void {
    call.answered = true;
    sent.whole = true;
    this.socket.write(Buffer.concat([head, ...wire]));
    if (end === 'close') this.socket.end();
  }

  /**
   * In one packet: a gateway that has read the first one can see the second. What comes after the next request was
   * sent, nobody could tell from its reply.
   */
  private sendTwice(call: Call): void {
    const first = renderReply(call.exchange, call.asksForUsage);
    if (first.end !== 'close' && first.wire.length === 1 && (first.wire[0]?.length ?? 0) < 4_000) {
      const second = renderReply(call.exchange, call.asksForUsage);
      first.sent.whole = true;
      this.socket.write(Buffer.concat([first.head, ...first.wire, second.head, ...second.wire]));
    } else this.sendWhole(call, first);
  }

  /** A write of its own for each piece, in ticks of their own. */
  private sendPieces({ head, wire, end, sent }: RenderedReply): void {
    const { socket } = this;
    sent.whole = true;
    socket.write(wire.length === 1 ? Buffer.concat([head, ...wire]) : head);
    if (wire.length === 1) {
      if (end === 'close') socket.end();
      return;
    }
    let next = 0;
    const sendNext = (): void => {
      const piece = wire[next];
      next += 1;
      if (socket.destroyed || piece === undefined) {
        if (piece === undefined && end === 'close') socket.end();
        return;
      }
      if (socket.write(piece)) setImmediate(sendNext);
      else socket.once('drain', sendNext);
    };
    sendNext();
  }

  private sendHalf(call: Call): void {
    const { socket } = this;
    const { head, wire, end, sent } = renderReply(call.exchange, call.asksForUsage);
    const body = Buffer.concat(wire);
    const middle = Math.floor(body.length / 2);
    socket.write(Buffer.concat([head, body.subarray(0, middle)]));
    if (call.step === 'cuts its reply in the middle') {
      setImmediate(() => socket.destroy());
      return;
    }
    setTimeout(() => {
      sent.whole = true;
      socket.write(body.subarray(middle));
      if (end === 'close') socket.end();
    }, PAUSE_WITHIN_REPLY_MS);
  }

  /** The classifier sees what the client wrote, within a request of the gateway's own. */
  private readClassifierCall(head: string, bodyStart: number, bodyBytes: number): boolean {
    const { held, watch, socket } = this;
    if (held.length < bodyStart + bodyBytes) return false;
    const body = held.toString('latin1', bodyStart, bodyStart + bodyBytes);
    this.held = held.subarray(bodyStart + bodyBytes);
    watch.calls += 1;
    watch.checkedBytes += head.length + bodyBytes;
    const index = findExchange(body);
    const exchange = index === null ? undefined : this.all.parts.findExchange(index);
    if (exchange === undefined) {
      watch.violation('stray call', `judge: a request of no exchange that is open: ${body.slice(0, 200)}`);
    } else {
      if (exchange.unclassifiable !== null)
        watch.violation('stray call', `judge: exchange ${exchange.index}: ${exchange.unclassifiable}`);
      if (findMarks(head).length > 0 || !head.includes(providerKeyOf('judge')))
        watch.violation('wrong credential', `judge: ${head}`);
      for (const { tenant, exchange: of, kind } of findMarks(body)) {
        if (tenant !== exchange.tenant || of !== exchange.index || kind !== 'p')
          watch.violation('foreign mark', `judge: exchange ${exchange.index} has tenant ${tenant}, exchange ${of}`);
      }
    }
    const tier = (index ?? 0) % 2 === 0 ? 'light' : 'strong';
    const answer = `{"answers":{"tier":{"type":"choice","choice":"${tier}","confidence":0.9,"probabilities":{"${tier}":0.9}}},"usage":{"input_tokens":3}}`;
    const send = (): void =>
      void socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`,
      );
    const waits = exchange === undefined ? null : (this.all.parts.classifierWaits?.(exchange) ?? null);
    if (waits === null) send();
    else void waits.then(send);
    return true;
  }

  private giveUp(why: string): void {
    this.watch.violation('wrong bytes', `${this.id}: ${why}`);
    this.socket.destroy();
    this.held = EMPTY;
  }
}

const EMPTY = Buffer.alloc(0);
