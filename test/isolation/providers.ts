// The providers of a run: real sockets that check every byte of every request to the end, also after a stall, and
// answer as the exchange's plan says.

import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { cutAtHoles, onwardOf, SeenPlaceholders } from './guarded.ts';
import { findExchange, findMarks } from './marks.ts';
import { type OwnKeys, ownTraits, readCredential, type ShownCredential } from './own-keys.ts';
import type { Exchange, ProviderStep } from './plan.ts';
import { type RenderedReply, renderRefusal, renderReply } from './replies.ts';
import type { Watch } from './watch.ts';
import { hasOwnKeys, MODELS, PROVIDERS, type ProviderId } from './world.ts';

const HEAD_BYTES_MAX = 16_384;
/** The first bytes of a body name its exchange where the head does not. */
const NAMING_BYTES = 1_000;
const STALL_MS_MAX = 1_500;
const PAUSE_WITHIN_REPLY_MS = 15;
const ASKED_USAGE = Buffer.from(',"stream_options":{"include_usage":true}');
const TLS_FILE = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../support/tls/localhost-${name}.pem`, import.meta.url)));

export interface ProviderParts {
  /** The watch of the present run. */
  watch(): Watch;
  findExchange(index: number): Exchange | undefined;
  /** A promise that the classifier call of this exchange (`kind: auto`) waits for; null: it does not wait. */
  classifierWaits?(exchange: Exchange): Promise<void> | null;
}

/** Steps after which an own key, or its provider, is not used for a while, or which end a request in another way. */
const UNSTEADY: ReadonlySet<ProviderStep> = new Set([
  'refuses the whole request',
  'refuses before it has read the body',
  'sends the head of a 503 and stalls',
  'sends a whole 503 and stalls',
  'refuses and closes',
  'asks for a pause',
  'does not know its credential',
  'resets without an answer',
]);

export class Providers {
  /** null until the installation serves. */
  ownKeys: OwnKeys | null = null;
  /** The placeholders of the present run. */
  placeholders = new SeenPlaceholders();
  readonly urls = new Map<ProviderId, string>();
  readonly parts: ProviderParts;
  private readonly servers: Server[] = [];
  private readonly sockets = new Set<Socket>();
  /** Stalled readers, the oldest first. */
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

  /** Lets stalled readers read on once enough exchanges are over. */
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

/** A request that is arriving: its exchange, and the expected bytes of its body. */
interface Call {
  readonly exchange: Exchange;
  readonly step: ProviderStep;
  readonly asksForUsage: boolean;
  readonly parts: readonly Buffer[];
  /** The parts of the expected body that are placeholders: the arriving bytes are kept there. */
  readonly holes: readonly Buffer[];
  readonly bodyBytes: number;
  /** The number of body bytes that have arrived. */
  at: number;
  /** The body is not as expected, and this was reported once. */
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
  /** The owner of the credentials that the connection has carried. */
  private owner: string | null = null;

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

  /** Reads a head; false: more bytes are needed. */
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
    const shown = readCredential(head, id);
    this.checkOwner(shown);
    if (head.startsWith('GET ') && findExchange(head) === null) return this.answerVerification(shown, bodyStart);
    if (id === 'judge') return this.readClassifierCall(head, bodyStart, bodyBytes);
    const nameInHead = findExchange(head.slice(head.indexOf('?')));
    if (nameInHead === null && held.length < bodyStart + Math.min(bodyBytes, NAMING_BYTES)) return false;
    const index = nameInHead ?? findExchange(held.toString('latin1', bodyStart, bodyStart + NAMING_BYTES));
    const exchange = index === null ? undefined : this.all.parts.findExchange(index);
    if (exchange === undefined) {
      this.giveUp(`a request of no exchange that is open (${index}): ${head.slice(0, 200)}`);
      return false;
    }
    const call = this.open(exchange, { head, bodyBytes, shown });
    this.call = call;
    this.held = EMPTY;
    this.answerHead(call);
    const rest = this.readBody(call, held.subarray(bodyStart));
    this.held = rest;
    return true;
  }

  /** A connection carries credentials of one owner only. */
  private checkOwner(shown: ShownCredential): void {
    const owner = shown.owner === 'organization' ? `tenant ${shown.tenant}` : shown.owner;
    if (this.owner !== null && this.owner !== owner)
      this.watch.violation('shared connection', `${this.id}: with a credential of ${owner} after ${this.owner}`);
    this.owner = owner;
  }

  /** Answers a verification of a key, which belongs to no exchange. */
  private answerVerification(shown: ShownCredential, bodyStart: number): boolean {
    const { watch, socket } = this;
    this.held = this.held.subarray(bodyStart);
    watch.calls += 1;
    watch.count(watch.faults, 'own key verified');
    const isGood = this.all.ownKeys?.accepts(shown) === true;
    const [status, answer] = isGood ? [200, '{"data":[]}'] : [401, '{"error":{"message":"Incorrect API key"}}'];
    const head = `HTTP/1.1 ${status} Known\r\ncontent-type: application/json\r\n`;
    socket.write(`${head}content-length: ${answer.length}\r\n\r\n${answer}`);
    return true;
  }

  private open(
    exchange: Exchange,
    { head, bodyBytes, shown }: { head: string; bodyBytes: number; shown: ShownCredential },
  ): Call {
    const { watch, id } = this;
    watch.calls += 1;
    this.all.ownKeys?.checkCall(exchange, shown, id);
    this.all.ownKeys?.checkOrder(exchange, id);
    this.checkHead(exchange, head);
    if (exchange.countedAs !== null) watch.count(watch.lookUps, exchange.countedAs);
    const called = `${id} ${JSON.stringify(shown)}`;
    const earlier = exchange.calledProviders.filter((one) => one === called).length;
    exchange.calledProviders.push(called);
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
    const step = this.stepOf(exchange, shown);
    if (step !== 'serves') watch.count(watch.faults, `provider ${step}`);
    this.calls += 1;
    if (exchange.planted !== null) exchange.planted.stranger = this.all.placeholders.strangerTo(exchange.tenant);
    const { parts, holes, asksForUsage } = this.expectedBody(exchange, bodyBytes);
    const expectedBytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (expectedBytes !== bodyBytes)
      watch.violation(
        'wrong bytes',
        `${id}: exchange ${exchange.index}: a body of ${bodyBytes} bytes, not ${expectedBytes}`,
      );
    return { exchange, step, asksForUsage, parts, holes, bodyBytes, at: 0, broken: false, answered: false };
  }

  private stepOf({ tenant, providerSteps, calledProviders, models }: Exchange, shown: ShownCredential): ProviderStep {
    const planned = providerSteps[calledProviders.length - 1] ?? 'serves';
    if (planned === 'closes a kept connection' && this.calls === 0) return 'serves';
    // Only that one model of the service's account is paused.
    if (planned === 'asks for a pause' && shown.owner === 'service' && !models.includes('iso/cool')) return 'serves';
    return hasOwnKeys(tenant) && ownTraits(tenant).isSteady && UNSTEADY.has(planned) ? 'serves' : planned;
  }

  private checkHead(exchange: Exchange, head: string): void {
    const { watch, id } = this;
    watch.checkedBytes += head.length;
    // The mark of an own key may stand only in its credential, which is checked separately.
    const rest = head.replace(/\r\n(?:authorization: Bearer|x-api-key:) sk-own-[^\r]*/, '');
    for (const mark of findMarks(rest)) {
      // The path names a response of the same tenant.
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

  private expectedBody(exchange: Exchange, bodyBytes: number): Pick<Call, 'parts' | 'holes' | 'asksForUsage'> {
    const { models, isForm, isStream, kind } = exchange;
    const onward = onwardOf(exchange);
    const nothing = { parts: [exchange.body], holes: [], asksForUsage: false };
    if (onward === null) return nothing;
    const { body, modelAt } = onward;
    const candidates = MODELS.filter(({ id }) => models.includes(id)).flatMap(({ deployments, asksForUsage }) =>
      deployments
        .filter(({ provider }) => provider === this.id)
        .map(({ model }) => {
          const before = cutAtHoles(body.subarray(0, modelAt.start), 0, onward.holes);
          const behind = cutAtHoles(body.subarray(modelAt.end), modelAt.end, onward.holes);
          const last = behind.parts.at(-1) ?? EMPTY;
          const own = Buffer.from(isForm ? model : JSON.stringify(model));
          const asks = asksForUsage && isStream && kind === 'chat';
          return {
            parts: asks
              ? [
                  ...before.parts,
                  own,
                  ...behind.parts.slice(0, -1),
                  last.subarray(0, -1),
                  ASKED_USAGE,
                  last.subarray(-1),
                ]
              : [...before.parts, own, ...behind.parts],
            holes: [...before.cut, ...behind.cut],
            asksForUsage: asks,
          };
        }),
    );
    const fits = candidates.find(({ parts }) => parts.reduce((sum, part) => sum + part.length, 0) === bodyBytes);
    return fits ?? candidates[0] ?? nothing;
  }

  /** Reads bytes of the body; returns the bytes after it. */
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
    if (!call.broken) this.all.placeholders.take(call.exchange, call.holes, this.watch);
    if (!call.answered) this.answerBody(call);
    return bytes.subarray(own.length);
  }

  /** Compares every byte with what the client has sent. */
  private compare(call: Call, bytes: Buffer): void {
    if (call.broken) return;
    this.watch.checkedBytes += bytes.length;
    let partStart = 0;
    for (const part of call.parts) {
      const from = Math.max(call.at, partStart);
      const to = Math.min(call.at + bytes.length, partStart + part.length);
      if (from < to && call.holes.includes(part)) bytes.copy(part, from - partStart, from - call.at, to - call.at);
      else if (from < to && part.compare(bytes, from - call.at, to - call.at, from - partStart, to - partStart) !== 0) {
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

  /** Does what the plan has before the body is read. */
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
        // On a kept connection this looks as if the connection had been dead before, so the request comes once more.
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
   * Sends two replies in one packet: a gateway that has read the first can see the second. If the second came only
   * after the next request, it could not be told from that request's reply.
   */
  private sendTwice(call: Call): void {
    const first = renderReply(call.exchange, call.asksForUsage);
    if (first.end !== 'close' && first.wire.length === 1 && (first.wire[0]?.length ?? 0) < 4_000) {
      const second = renderReply(call.exchange, call.asksForUsage);
      first.sent.whole = true;
      this.socket.write(Buffer.concat([first.head, ...first.wire, second.head, ...second.wire]));
    } else this.sendWhole(call, first);
  }

  /** Sends each piece in a write and a tick of its own. */
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

  /** Reads a classifier call: the client's text within a request of the gateway's own. */
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
      this.checkClassifierCredential(exchange, head);
      const shown = exchange.planted?.hidden.find((value) => body.includes(value));
      if (shown !== undefined) watch.violation('wrong bytes', `judge: exchange ${exchange.index} shows ${shown}`);
      for (const { tenant, exchange: of, kind } of findMarks(body)) {
        if (tenant !== exchange.tenant || (of !== exchange.index && of !== 0) || kind !== 'p')
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

  /** The organization chooses whose key asks the classifier. That key has a mark, and nothing else in the head does. */
  private checkClassifierCredential({ tenant }: Exchange, head: string): void {
    const shown = readCredential(head, 'judge');
    const isOwn = hasOwnKeys(tenant) && ownTraits(tenant).isOwnClassifier;
    const isRight = isOwn ? shown.owner === 'organization' && shown.tenant === tenant : shown.owner === 'service';
    if (!isRight || findMarks(head).length > (isOwn ? 1 : 0))
      this.watch.violation('wrong credential', `judge: tenant ${tenant}: ${head}`);
  }

  private giveUp(why: string): void {
    this.watch.violation('wrong bytes', `${this.id}: ${why}`);
    this.socket.destroy();
    this.held = EMPTY;
  }
}

const EMPTY = Buffer.alloc(0);
