// A name server on loopback that answers by a script, for names whose addresses change a moment later.

import { createSocket, type Socket } from 'node:dgram';
import { isIPv4 } from 'node:net';

/** The addresses of each name, one list per question; the last list stays. */
export type NameScript = Readonly<Record<string, readonly (readonly string[])[]>>;

export interface NameServer {
  /** In the form that a resolver accepts. */
  readonly address: string;
  /** Every question, as `name type`. */
  readonly questions: readonly string[];
  close(): Promise<void>;
}

const [TYPE_A, TYPE_AAAA] = [1, 28];
const HEADER_BYTES = 12;

export async function startNameServer(script: NameScript): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked = new Map<string, number>();
  const questions: string[] = [];
  socket.on('message', (message, from) => {
    const { name, type, end } = readQuestion(message);
    questions.push(`${name} ${type === TYPE_A ? 'A' : 'AAAA'}`);
    const key = `${name} ${type}`;
    const times = asked.get(key) ?? 0;
    asked.set(key, times + 1);
    const lists = script[name] ?? [[]];
    const addresses = (lists[Math.min(times, lists.length - 1)] ?? []).filter(
      (address) => isIPv4(address) === (type === TYPE_A),
    );
    socket.send(answer(message.subarray(0, end), addresses, type), from.port, from.address);
  });
  const port = await listen(socket);
  return {
    address: `127.0.0.1:${port}`,
    questions,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function listen(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(0, '127.0.0.1', () => resolve(socket.address().port));
  });
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function answer(question: Buffer, addresses: readonly string[], type: number): Buffer {
  const head = Buffer.from(question);
  // The flags and counts of a reply without an error, with one question and its answers; the answers may not be cached.
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  const records = addresses.map((address) => {
    const data = type === TYPE_AAAA ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([head, ...records]);
}

/** Also reads the form that ends with an IPv4 address. */
function ipv6Bytes(address: string): Buffer {
  const last = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address);
  const [, front = '', ipv4 = '0.0.0.0'] = last ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  const text = last === null ? address : `${front}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part.split(':').flatMap((group) => (group === '' ? [] : [Number.parseInt(group, 16)]));
  const [first, rest] = [groups(head), tail === undefined ? [] : groups(tail)];
  const all = [...first, ...Array<number>(8 - first.length - rest.length).fill(0), ...rest];
  const bytes = Buffer.alloc(16);
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(group, 2 * index);
  return bytes;
}
