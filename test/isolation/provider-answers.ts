// What a provider writes on a connection: the answer that the exchange's plan has for a call, before or after its body
// is read, whole, in pieces, cut or late.

import type { Socket } from 'node:net';
import type { ProviderCall } from './provider-call.ts';
import { type RenderedReply, renderRefusal, renderReply } from './replies.ts';

const PAUSE_WITHIN_REPLY_MS = 15;

export class ProviderAnswers {
  private readonly socket: Socket;
  /** Calls `resume` once enough exchanges are over. */
  private readonly stall: (resume: () => void) => void;

  constructor(socket: Socket, stall: (resume: () => void) => void) {
    this.socket = socket;
    this.stall = stall;
  }

  /** Does what the plan has before the body is read. */
  answerHead(call: ProviderCall): void {
    const { exchange, step } = call;
    const { socket } = this;
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other steps are for another moment
    switch (step) {
      case 'refuses before it has read the body':
        this.sendWhole(call, renderRefusal(exchange, 503));
        break;
      case 'sends the head of a 503 and stalls': {
        const { head, wire, sent } = renderRefusal(exchange, 503);
        call.isAnswered = true;
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
        call.isAnswered = true;
        socket.destroy();
        break;
      case 'answers before the body is whole':
        this.sendWhole(call, renderReply(exchange, call.expected.asksForUsage));
        break;
      case 'answers before the body is whole and stalls':
        this.sendWhole(call, renderReply(exchange, call.expected.asksForUsage));
        this.standStill(() => undefined);
        break;
      default:
    }
  }

  private standStill(onResume: () => void): void {
    const { socket } = this;
    socket.pause();
    this.stall(() => {
      if (socket.destroyed) return;
      onResume();
      socket.resume();
    });
  }

  /** Does what the plan has once the whole body is read. */
  answerBody(call: ProviderCall): void {
    const { exchange, step } = call;
    const { socket } = this;
    call.isAnswered = true;
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
        if (call.isOnKeptConnection) exchange.retries += 1;
        socket.destroy();
        return;
      case 'sends an interim reply':
        socket.write(`HTTP/1.1 103 Early Hints\r\nlink: ${exchange.replyMark}\r\n\r\n`);
        return this.sendWhole(call, renderReply(exchange, call.expected.asksForUsage));
      case 'sends a second reply that nobody asked for':
        return this.sendTwice(call);
      case 'cuts its reply in the middle':
      case 'stalls within its reply':
        return this.sendHalf(call);
      default:
        if (exchange.client === 'leaves before the first byte')
          setTimeout(() => this.sendPieces(renderReply(exchange, call.expected.asksForUsage)), PAUSE_WITHIN_REPLY_MS);
        else this.sendPieces(renderReply(exchange, call.expected.asksForUsage));
    }
  }

  private sendWhole(call: ProviderCall, { head, wire, end, sent }: RenderedReply): void {
    call.isAnswered = true;
    sent.whole = true;
    this.socket.write(Buffer.concat([head, ...wire]));
    if (end === 'close') this.socket.end();
  }

  /**
   * Sends two replies in one packet: a gateway that has read the first can see the second. If the second came only
   * after the next request, it could not be told from that request's reply.
   */
  private sendTwice(call: ProviderCall): void {
    const first = renderReply(call.exchange, call.expected.asksForUsage);
    if (first.end !== 'close' && first.wire.length === 1 && (first.wire[0]?.length ?? 0) < 4_000) {
      const second = renderReply(call.exchange, call.expected.asksForUsage);
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

  private sendHalf(call: ProviderCall): void {
    const { socket } = this;
    const { head, wire, end, sent } = renderReply(call.exchange, call.expected.asksForUsage);
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
}
