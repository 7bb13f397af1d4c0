// Requests that are damaged at random against both fronts, on raw sockets and through nginx, each with a whole request
// hidden in its body: whether what nginx takes for one request ever becomes two handler calls.
//
//   node test/integration/mutated-requests-run.ts --count 100000 --seed 1
//
// A call behind nginx that has no id of its own, or one that was there before, was smuggled. The same bytes are sent
// directly, too. Exits with 1 after a smuggled call, a fault, or where a front serves no more.

import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import type { Exchange } from '../../src/http/exchange.ts';
import { chooseFront, type FrontName } from '../../src/http/fronts/choose-front.ts';
import { FRAMING_ATTACKS, intendedPost, KNOWN_GAPS } from '../support/framing-attacks.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { HOP_HEADER, startNginxBefore } from '../support/nginx-before.ts';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const COUNT = Number(values.count);
const AT_ONCE = 48;
/** A connection on which nothing comes for so long is left: the request on it has no end. */
const QUIET_MS = 40;
const PATH = '/v1/chat/completions';

interface Target {
  readonly name: FrontName;
  /** Serves what nginx forwards, and nothing else. */
  readonly behind: HttpFront;
  readonly direct: HttpFront;
  smuggled: number;
  /** Handler calls in all, by nginx and directly. */
  calls: number;
  directCalls: number;
}

/** mulberry32. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) % below;
  };
}

const random = randomFrom(Number(values.seed));
const pick = <T>(of: readonly T[]): T => of[random(of.length)] as T;

const HIDDEN = intendedPost({ body: '{"model":"sim/smuggled","messages":[]}' });
const BASES = [
  ...FRAMING_ATTACKS.filter(({ bytes }) => bytes.length < 8_000).map(({ bytes }) => bytes),
  ...KNOWN_GAPS.map(({ bytes }) => bytes),
  intendedPost({ body: HIDDEN }),
  intendedPost({
    headers: ['Transfer-Encoding: chunked'],
    length: false,
    body: `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`,
  }),
  `GET ${PATH} HTTP/1.1\r\nHost: gateway\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
];
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  '\v',
  ':',
  ';',
  ',',
  '0',
  'ffffffff',
  '+1',
  '-1',
  '0x10',
  '\x80',
  '\xff',
  '\r\n\r\n',
  '\n\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding:chunked, chunked\r\n',
  'Transfer-Encoding : chunked\r\n',
  '\r\nTransfer-Encoding: xchunked',
  'Content-Length: 0\r\n',
  'Content-Length: 5\r\n',
  `Content-Length: ${HIDDEN.length}\r\n`,
  'content-length:\r\n',
  ' Content-Length: 4\r\n',
  ': x\r\n',
  'Connection: Transfer-Encoding\r\n',
  'Connection: close\r\n',
  'Connection: upgrade\r\nUpgrade: h2c\r\n',
  'Expect: 100-continue\r\n',
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  '0\r\n\r\n',
  '0;\r\n\r\n',
  '0\r\nX: y\r\n\r\n',
  'GET / HTTP/1.1\r\n',
  HIDDEN,
];

/** One to four damages. Now and then a whole request behind. */
function mutated(): Buffer {
  let bytes = pick(BASES);
  for (let left = 1 + random(4); left > 0; left -= 1) {
    const at = random(bytes.length);
    const kind = random(7);
    if (kind === 0) bytes = bytes.slice(0, at) + String.fromCharCode(random(256)) + bytes.slice(at + 1);
    else if (kind === 1) bytes = bytes.slice(0, at) + bytes.slice(at + 1 + random(8));
    else if (kind === 2) bytes = bytes.slice(0, at) + pick(PIECES) + bytes.slice(at);
    else if (kind === 3) bytes = insertLine(bytes, pick(PIECES));
    else if (kind === 4) bytes = bytes.slice(0, at) + bytes.slice(at, at + random(60)) + bytes.slice(at);
    else if (kind === 5) bytes = bytes.replace(/\d+/, () => String(random(3) === 0 ? random(400) : HIDDEN.length));
    else bytes = swapCase(bytes, at);
  }
  return Buffer.from(random(4) === 0 ? bytes + HIDDEN : bytes, 'latin1');
}

/** Behind the first line of the head, or behind a later one. */
function insertLine(bytes: string, piece: string): string {
  let at = bytes.indexOf('\n') + 1;
  for (let lines = random(5); lines > 0; lines -= 1) at = Math.max(at, bytes.indexOf('\n', at) + 1);
  return bytes.slice(0, at) + piece + bytes.slice(at);
}

function swapCase(bytes: string, at: number): string {
  const part = bytes.slice(at, at + 12);
  return bytes.slice(0, at) + (random(2) === 0 ? part.toUpperCase() : part.toLowerCase()) + bytes.slice(at + 12);
}

/** Writes in one packet or two, and reads until the other side closes or has been quiet. */
function send(port: number, bytes: Buffer, cut: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const timer = setTimeout(() => socket.destroy(), QUIET_MS);
    socket.on('data', () => timer.refresh()).on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.write(bytes.subarray(0, cut));
    if (cut < bytes.length) setImmediate(() => socket.writable && socket.write(bytes.subarray(cut)));
  });
}

async function startServer(name: FrontName, onCall: (exchange: Exchange) => void): Promise<HttpFront> {
  const handle = (exchange: Exchange): void => {
    onCall(exchange);
    const answer = (): void => exchange.answerJson(200, '{"a":1}');
    if (exchange.contentLength <= 0 && !exchange.isChunked) answer();
    else exchange.body.receive({ take: (_, isLast) => (isLast ? answer() : undefined) });
  };
  const routes = (['GET', 'POST'] as const).map((method) => ({
    method,
    path: '/*',
    envelope: 'openai' as const,
    handle,
  }));
  return startHttpFront(routes, {}, (await chooseFront(name)).front);
}

async function startTarget(name: FrontName): Promise<Target> {
  const seen = new Set<string>();
  const behind = await startServer(name, (exchange) => {
    const [id = '', ...more] = exchange.headerValues(HOP_HEADER);
    if (id === '' || more.length > 0 || seen.has(id)) target.smuggled += 1;
    seen.add(id);
    target.calls += 1;
  });
  const direct = await startServer(name, () => {
    target.directCalls += 1;
  });
  const target: Target = {
    name,
    behind,
    direct,
    smuggled: 0,
    calls: 0,
    directCalls: 0,
  };
  return target;
}

const faults: unknown[] = [];
process.on('uncaughtException', (fault) => faults.push(fault));
const targets = [await startTarget('uws'), await startTarget('node')];

const isServed = async (port: number): Promise<boolean> =>
  httpCall(`http://127.0.0.1:${port}/v1/ready`).then(
    ({ status }) => status === 200,
    () => false,
  );
const nginx = await startNginxBefore(targets.map(({ behind }) => behind.port));

let left = COUNT;
async function attack(): Promise<void> {
  while (left > 0) {
    left -= 1;
    const bytes = mutated();
    const cut = random(3) === 0 ? 1 + random(bytes.length) : bytes.length;
    for (const [index, { direct }] of targets.entries()) {
      await send(nginx.ports[index] as number, bytes, cut);
      await send(direct.port, bytes, cut);
    }
  }
}
const startedMs = performance.now();
await Promise.all(Array.from({ length: AT_ONCE }, attack));
const seconds = Math.round((performance.now() - startedMs) / 1000);

console.log(`${COUNT} damaged requests, each to both fronts by nginx and directly, seed ${values.seed}, ${seconds} s`);
for (const { name, smuggled, calls, directCalls } of targets)
  console.log(
    `${name.padEnd(4)}  smuggled through nginx: ${smuggled} of ${calls} calls; directly: ${directCalls} calls`,
  );
const isGood = targets.every(({ smuggled }) => smuggled === 0) && faults.length === 0;
const served = await Promise.all(
  targets.flatMap(({ behind, direct }) => [behind, direct].map(({ port }) => isServed(port))),
);
console.log(`faults: ${faults.length}; servers that still serve: ${served.filter(Boolean).length} of ${served.length}`);
for (const fault of faults.slice(0, 3)) console.log(fault);
await nginx.stop();
process.exit(isGood && served.every(Boolean) ? 0 : 1);
