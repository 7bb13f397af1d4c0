// One connection to a provider: reads its requests, finds the exchange of each, and checks that the head, the
// credential and the connection are what the exchange may have here.

import type { Socket } from 'node:net';
import { answerClassifierCall } from './classifier-call.ts';
import { findExchange, findMarks } from './marks.ts';
import { ownTraits, readCredential, type ShownCredential } from './own-keys.ts';
import type { Exchange, ProviderStep } from './plan.ts';
import { ProviderAnswers } from './provider-answers.ts';
import { ProviderCall } from './provider-call.ts';
import type { ProviderRun } from './provider-run.ts';
import type { Watch } from './watch.ts';
import { hasOwnKeys, type ProviderId } from './world.ts';

const HEAD_BYTES_MAX = 16_384;
/** The first bytes of a body name its exchange where the head does not. */
const NAMING_BYTES = 1_000;
const EMPTY = Buffer.alloc(0);

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

export class ProviderConnection {
  private readonly run: ProviderRun;
  private readonly id: ProviderId;
  private readonly socket: Socket;
  private readonly answers: ProviderAnswers;
  private held: Buffer = EMPTY;
  private call: ProviderCall | null = null;
  private calls = 0;
  /** The owner of the credentials that the connection has carried. */
  private owner: string | null = null;

  constructor(run: ProviderRun, id: ProviderId, socket: Socket) {
    this.run = run;
    this.id = id;
    this.socket = socket;
    this.answers = new ProviderAnswers(socket, (resume) => run.stall(resume));
  }

  begin(): void {
    const { socket } = this;
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('data', (bytes) => this.read(bytes));
  }

  private get watch(): Watch {
    return this.run.parts.watch();
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
    const exchange = index === null ? undefined : this.run.parts.findExchange(index);
    if (exchange === undefined) {
      this.giveUp(`a request of no exchange that is open (${index}): ${head.slice(0, 200)}`);
      return false;
    }
    const call = this.open(exchange, { head, bodyBytes, shown });
    this.call = call;
    this.held = EMPTY;
    this.answers.answerHead(call);
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
    const isGood = this.run.ownKeys?.accepts(shown) === true;
    const [status, answer] = isGood ? [200, '{"data":[]}'] : [401, '{"error":{"message":"Incorrect API key"}}'];
    const head = `HTTP/1.1 ${status} Known\r\ncontent-type: application/json\r\n`;
    socket.write(`${head}content-length: ${answer.length}\r\n\r\n${answer}`);
    return true;
  }

  private open(
    exchange: Exchange,
    { head, bodyBytes, shown }: { head: string; bodyBytes: number; shown: ShownCredential },
  ): ProviderCall {
    const { watch, id } = this;
    watch.calls += 1;
    this.run.ownKeys?.checkCall(exchange, shown, id);
    this.run.ownKeys?.checkOrder(exchange, id);
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
    const isOnKeptConnection = this.calls > 0;
    this.calls += 1;
    if (exchange.planted !== null) exchange.planted.stranger = this.run.placeholders.strangerTo(exchange.tenant);
    const call = new ProviderCall({ provider: id, exchange, step, bodyBytes, isOnKeptConnection });
    call.checkLength(watch);
    return call;
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

  /** Reads bytes of the body; returns the bytes after it. */
  private readBody(call: ProviderCall, bytes: Buffer): Buffer {
    const { socket } = this;
    const own = bytes.subarray(0, call.missingBytes);
    call.take(own, this.watch);
    if (call.step === 'reads slowly' && call.missingBytes > 0) {
      socket.pause();
      setTimeout(() => socket.resume(), 2);
    }
    if (call.missingBytes > 0) return EMPTY;
    this.call = null;
    if (!call.isBroken) this.run.placeholders.take(call.exchange, call.expected.holes, this.watch);
    if (!call.isAnswered) this.answers.answerBody(call);
    return bytes.subarray(own.length);
  }

  private readClassifierCall(head: string, bodyStart: number, bodyBytes: number): boolean {
    const { held } = this;
    const end = bodyStart + bodyBytes;
    if (held.length < end) return false;
    this.held = held.subarray(end);
    answerClassifierCall(head, held.toString('latin1', bodyStart, end), this.socket, this.run.parts);
    return true;
  }

  private giveUp(why: string): void {
    this.watch.violation('wrong bytes', `${this.id}: ${why}`);
    this.socket.destroy();
    this.held = EMPTY;
  }
}
