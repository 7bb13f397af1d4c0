// A name server for tests on a real UDP socket: it has one answer for every name, and can fail or stay silent.

import { createSocket, type Socket } from 'node:dgram';
import { type LookupAddress, Resolver } from 'node:dns';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { Resolve } from '../../src/upstream/http1/name-lookups.ts';

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_AAAA = 28;
const SERVFAIL = 2;
/** A pointer to the name of the question. */
const NAME_OF_QUESTION = 0xc0_0c;

export class NameServer {
  /** The addresses of every name. */
  addresses: readonly string[] = [];
  /** Instead of `addresses`: lists of addresses that are used in turn, one for each question. */
  turns: readonly (readonly string[])[] = [];
  mode: 'answers' | 'fails' | 'hangs' = 'answers';
  /** Questions about IPv4 addresses: one for each look-up. */
  questions = 0;
  private readonly socket: Socket = createSocket('udp4');
  private resolver = new Resolver();

  static async start(): Promise<NameServer> {
    const server = new NameServer();
    server.socket.on('message', (message, from) => {
      const reply = server.replyTo(message);
      if (reply !== null) server.socket.send(reply, from.port, from.address);
    });
    server.socket.bind(0, '127.0.0.1');
    await once(server.socket, 'listening');
    server.resolver = new Resolver({ timeout: 10_000, tries: 1 });
    server.resolver.setServers([`127.0.0.1:${server.socket.address().port}`]);
    return server;
  }

  /** Resolves a name with this server, as the system's resolver does; IPv6 addresses first. */
  readonly resolve: Resolve = (host, _, answer) => {
    const found: LookupAddress[] = [];
    let failure: NodeJS.ErrnoException | null = null;
    let asked = 2;
    const take = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      asked -= 1;
      if (error === null) found.push(...addresses.map((address) => ({ address, family })));
      else if (error.code !== 'ENODATA') failure = error;
      if (asked > 0) return;
      found.sort((one, other) => other.family - one.family);
      answer(found.length > 0 ? null : (failure ?? new Error('no address')), found);
    };
    // A server that hangs makes the caller wait, as getaddrinfo waits for many seconds.
    if (this.mode === 'hangs') {
      this.questions += 1;
      return;
    }
    this.resolver.resolve6(host, take(6));
    this.resolver.resolve4(host, take(4));
  };

  private replyTo(message: Buffer): Buffer | null {
    const questionEnd = message.indexOf(0, HEADER_BYTES) + 5;
    const type = message.readUInt16BE(questionEnd - 4);
    if (type === TYPE_A) this.questions += 1;
    const isFailing = this.mode === 'fails';
    const known = this.turns[(this.questions - 1) % this.turns.length] ?? this.addresses;
    const answers = isFailing ? [] : known.filter((address) => isIPv6(address) === (type === TYPE_AAAA));
    const header = Buffer.alloc(HEADER_BYTES);
    message.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x81_80 | (isFailing ? SERVFAIL : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    const question = message.subarray(HEADER_BYTES, questionEnd);
    return Buffer.concat([header, question, ...answers.map((address) => recordOf(type, bytesOf(address)))]);
  }

  async close(): Promise<void> {
    this.resolver.cancel();
    const closed = once(this.socket, 'close');
    this.socket.close();
    await closed;
  }
}

function recordOf(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(NAME_OF_QUESTION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(1, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** The only IPv6 address that tests need is `::1`. */
function bytesOf(address: string): Buffer {
  if (isIPv6(address)) return Buffer.concat([Buffer.alloc(15), Buffer.of(1)]);
  return Buffer.from(address.split('.').map(Number));
}
