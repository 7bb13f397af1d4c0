// Measures our HTTP/1.1 client: reading a reply (nanoseconds), and a whole call on a kept connection (microseconds of
// this process's CPU), with the body in one piece and in the three pieces that replacing the model's name makes.

import { forwardedHeaders } from '../../src/upstream/header-policy.ts';
import { ReplyReader } from '../../src/upstream/http1/reply-reader.ts';
import { type OutgoingBody, requestHead, type UpstreamRequest } from '../../src/upstream/http1/request-head.ts';
import { UpstreamOrigin } from '../../src/upstream/origin.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';
import { startNodeServer } from '../harness/child-server.ts';
import { median } from '../harness/median.ts';
import { measureNs } from './measure-ns.ts';

const CALLS = 8_000;
const CALLS_AT_ONCE = 64;
const STUB_CORE = 1;

const HEADERS =
  'date: Fri, 20 Nov 2026 15:32:20 GMT\r\ncontent-type: application/json\r\nx-request-id: ' +
  'req_0123456789abcdef\r\nopenai-processing-ms: 412\r\n' +
  'x-ratelimit-remaining-requests: 9999\r\nx-ratelimit-remaining-tokens: ' +
  '149999984\r\nstrict-transport-security: max-age=31536000; includeSubDomains\r\n' +
  'cf-ray: 9a1b2c3d4e5f6789-FRA\r\nserver: cloudflare\r\n';
const READ = Buffer.alloc(65_536);

function measureReply(name: string, reply: string): void {
  const reader = new ReplyReader();
  const length = READ.write(reply, 'latin1');
  measureNs(`${name} (${length} bytes)`, () => {
    reader.begin();
    reader.read(READ, length);
    return reader.ended ? 1 : 0;
  });
}

/** Measures one more piece of a stream, as one read delivers it. */
function measureChunks(name: string, chunks: string): void {
  const reader = new ReplyReader();
  const head = `HTTP/1.1 200 OK\r\n${HEADERS}transfer-encoding: chunked\r\n\r\n`;
  reader.begin();
  reader.read(Buffer.from(head), head.length);
  const length = READ.write(chunks, 'latin1');
  measureNs(`${name} (${length} bytes)`, () => {
    reader.read(READ, length);
    return reader.body?.length ?? 0;
  });
}

const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

measureReply(
  'a reply of known length, ten headers, 1 KB',
  `HTTP/1.1 200 OK\r\n${HEADERS}content-length: 1000\r\n\r\n${'x'.repeat(1_000)}`,
);
measureReply(
  'a reply in one chunk, ten headers, 1 KB',
  `HTTP/1.1 200 OK\r\n${HEADERS}transfer-encoding: chunked\r\n\r\n${chunk(1_000)}0\r\n\r\n`,
);
measureReply(
  'a reply with two headers and no body',
  'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n\r\n',
);
measureChunks('a stream: one event', chunk(250));
measureChunks('a stream: 16 events', chunk(250).repeat(16));
measureChunks('a stream: chunks of one byte', chunk(1).repeat(1_000));
measureChunks('a stream: one piece of 60 KB', chunk(60_000));

const CLIENT_HEADERS = [
  'accept-encoding',
  'identity',
  'authorization',
  `Bearer ${'k'.repeat(51)}`,
  'content-type',
  'application/json',
  'user-agent',
  'OpenAI/JS 6.1.0',
];
const REQUEST: UpstreamRequest = {
  method: 'POST',
  path: '/json/1000/v1/chat/completions',
  headers: CLIENT_HEADERS,
  body: Buffer.alloc(1_000),
};
measureNs('the head of a request', () => requestHead(REQUEST, 'api.provider.example')?.length ?? 0);

/**
 * Headers as the JavaScript OpenAI client sends them, in one text: each request cuts its own strings from it, as the
 * front does.
 */
const SDK_HEADERS = Buffer.from(
  'host|127.0.0.1:8080|accept|application/json|content-type|application/json|user-agent|OpenAI/JS ' +
    '6.0.0|x-stainless-retry-count|0|x-stainless-lang|js|' +
    'x-stainless-package-version|6.0.0|x-stainless-os|Linux|x-stainless-arch|x64|x-stainless-runtime|node' +
    '|x-stainless-runtime-version|v22.1.0|' +
    'authorization|Bearer tg-x|content-length|1000|connection|keep-alive|accept-language|*|sec-fetch-mode' +
    '|cors|accept-encoding|gzip',
);
const SEPARATOR = '|'.charCodeAt(0);
const HEAD = Buffer.alloc(4_096);

function cutHeaders(): string[] {
  const headers: string[] = [];
  for (let at = 0; at < SDK_HEADERS.length; ) {
    const separator = SDK_HEADERS.indexOf(SEPARATOR, at);
    const end = separator === -1 ? SDK_HEADERS.length : separator;
    headers.push(SDK_HEADERS.toString('latin1', at, end));
    at = end + 1;
  }
  return headers;
}

measureNs("the headers of an SDK's request cut out, which the next row has too", () => cutHeaders().length);
function writeHead(clientHeaders: string[]): number {
  const headers = forwardedHeaders(clientHeaders);
  if ('kind' in headers) throw new Error(headers.kind);
  const head = requestHead({ ...REQUEST, headers }, 'api.provider.example') ?? '';
  return HEAD.write(head, 0, head.length, 'latin1');
}

let keys = 0;
measureNs("the head of an SDK's request from its headers, written", () => writeHead(cutHeaders()));
measureNs('the same with an idempotency key, another each time', () =>
  writeHead([...cutHeaders(), 'idempotency-key', `stainless-node-retry-${keys++}`]),
);

async function cpuOfCalls(origin: UpstreamOrigin, bodyBytes: number, editAt: number | null): Promise<number> {
  let left = CALLS;
  let open = 0;
  const ended = Promise.withResolvers<void>();
  const bodies = Array.from({ length: CALLS_AT_ONCE }, (): OutgoingBody => {
    const body = Buffer.alloc(bodyBytes, 'b');
    const model = Buffer.alloc(20, 'm');
    const pieces = editAt === null ? [body] : [body.subarray(0, editAt), model, body.subarray(editAt + model.length)];
    return { pieces, pooled: null };
  });
  const next = (body: OutgoingBody): void => {
    if (left === 0) {
      if (open === 0) ended.resolve();
      return;
    }
    left -= 1;
    open += 1;
    const over = (): void => {
      open -= 1;
      next(body);
    };
    const listener: ReplyHandler = {
      onReplyStart: () => undefined,
      onReplyData: () => undefined,
      onReplyPause: () => undefined,
      onReplyEnd: over,
      onKeyRefused: over,
      onReplyFault: over,
    };
    origin.call({ ...REQUEST, body }, listener);
  };
  const before = process.cpuUsage();
  for (const body of bodies) next(body);
  await ended.promise;
  const used = process.cpuUsage(before);
  return (used.user + used.system) / CALLS;
}

const stub = await startNodeServer(STUB_CORE, 'benchmarks/stub/provider-stub.ts', []);
const origin = new UpstreamOrigin(`http://127.0.0.1:${stub.port}`);
for (const bodyBytes of [1_000, 16_000, 256_000]) {
  const rounds: Record<string, number[]> = { 'one piece': [], 'three pieces': [] };
  for (let round = 0; round < 7; round++) {
    rounds['one piece']?.push(await cpuOfCalls(origin, bodyBytes, null));
    rounds['three pieces']?.push(await cpuOfCalls(origin, bodyBytes, 10));
  }
  for (const [name, figures] of Object.entries(rounds)) {
    console.log(
      `a call with ${bodyBytes / 1_000} KB, the body in ${name}`.padEnd(66) +
        ` ${median(figures.slice(1)).toFixed(1).padStart(8)} µs`,
    );
  }
}
await origin.close();
await stub.stop();
