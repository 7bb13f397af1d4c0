// One intended request never becomes two handler calls (DESIGN 3): requests whose framing can be read in two ways, on raw sockets,
// whole, byte by byte and in two packets. What would be smuggled names a model of its own, so that a call of it cannot be missed.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { SplitPlan } from '../support/byte-splits.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { exchangeRaw, finalStatuses, type RawExchange } from '../support/raw-connection.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const AUTHORIZATION = `Authorization: Bearer ${KEYS.free}`;
const BODY = '{"model":"sim/intended","messages":[]}';
const SMUGGLED_BODY = '{"model":"sim/smuggled","messages":[]}';
const SMUGGLED = post({ body: SMUGGLED_BODY });
const REPLY = '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}';

interface Attack {
  readonly name: string;
  readonly bytes: string;
  /** Statuses of the one response; an empty connection end is always allowed for what is not HTTP. */
  readonly statuses: readonly number[];
  /** The framing cannot be trusted, so nothing more may be read from the connection. */
  readonly closes: boolean;
  /** The provider may be called, once, with the intended body. */
  readonly mayServe?: boolean;
}

function post(options: { headers?: readonly string[]; body?: string; length?: boolean; version?: string; lineEnd?: string } = {}): string {
  const { headers = [], body = BODY, length = true, version = 'HTTP/1.1', lineEnd = '\r\n' } = options;
  const lines = [`POST /v1/chat/completions ${version}`, 'Host: gateway', AUTHORIZATION, 'Content-Type: application/json', ...headers];
  if (length) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join(lineEnd)}${lineEnd}${lineEnd}${body}`;
}

/** A body in chunks; `size` writes a chunk's size line. */
function chunked(options: { size?: (bytes: number) => string; lastChunk?: string; headers?: readonly string[]; body?: string } = {}): string {
  const { size = (bytes) => bytes.toString(16), lastChunk = '0\r\n\r\n', headers = ['Transfer-Encoding: chunked'], body = BODY } = options;
  return post({ headers, length: false, body: `${size(body.length)}\r\n${body}\r\n${lastChunk}` });
}

const REFUSED = { statuses: [400, 411], closes: true } as const;

const ATTACKS: readonly Attack[] = [
  { name: 'a chunked body', bytes: chunked(), ...REFUSED },
  { name: 'a chunk extension', bytes: chunked({ size: (bytes) => `${bytes.toString(16)};` }) + SMUGGLED, ...REFUSED },
  { name: 'a chunk size of five and an extension', bytes: chunked({ size: () => '5;', body: '{"a":' }) + SMUGGLED, ...REFUSED },
  { name: 'a named chunk extension', bytes: chunked({ size: (bytes) => `${bytes.toString(16)};a=b` }) + SMUGGLED, ...REFUSED },
  { name: 'bytes after the last chunk', bytes: chunked({ lastChunk: `0\r\nXX` }) + SMUGGLED, ...REFUSED },
  { name: 'a request in the place of the trailer', bytes: chunked({ lastChunk: '0\r\n' }) + SMUGGLED, ...REFUSED },
  { name: 'a trailer', bytes: chunked({ lastChunk: '0\r\nX-Trailer: 1\r\n\r\n' }), ...REFUSED },
  { name: 'a chunk size that is not hexadecimal', bytes: chunked({ size: () => 'g' }) + SMUGGLED, ...REFUSED },
  { name: 'a chunk size with a sign', bytes: chunked({ size: (bytes) => `+${bytes.toString(16)}` }) + SMUGGLED, ...REFUSED },
  { name: 'a chunk size beyond 64 bits', bytes: chunked({ size: () => '10000000000000026' }) + SMUGGLED, ...REFUSED },
  {
    name: 'chunks ended by bare LF',
    bytes: post({ headers: ['Transfer-Encoding: chunked'], length: false, body: `26\n${BODY}\n0\n\n` }) + SMUGGLED,
    ...REFUSED,
  },
  { name: 'two equal Content-Lengths', bytes: post({ headers: [`Content-Length: ${BODY.length}`] }), ...REFUSED },
  { name: 'two different Content-Lengths, short first', bytes: post({ headers: ['Content-Length: 5'], body: BODY + SMUGGLED }), ...REFUSED },
  { name: 'two different Content-Lengths, long first', bytes: post({ headers: [`Content-Length: ${BODY.length + SMUGGLED.length}`] }) + SMUGGLED, ...REFUSED },
  { name: 'a Content-Length list', bytes: post({ headers: [`Content-Length: ${BODY.length}, ${BODY.length}`], length: false }), ...REFUSED },
  { name: 'a negative Content-Length', bytes: post({ headers: ['Content-Length: -1'], length: false }), ...REFUSED },
  { name: 'a signed Content-Length', bytes: post({ headers: [`Content-Length: +${BODY.length}`], length: false }) + SMUGGLED, ...REFUSED },
  { name: 'a hexadecimal Content-Length', bytes: post({ headers: ['Content-Length: 0x26'], length: false }) + SMUGGLED, ...REFUSED },
  {
    name: 'a Content-Length beyond 64 bits',
    bytes: post({ headers: [`Content-Length: ${2n ** 64n + 38n}`], length: false }) + SMUGGLED,
    statuses: [400, 411, 413],
    closes: true,
  },
  { name: 'an empty Content-Length', bytes: post({ headers: ['Content-Length:'], length: false }) + SMUGGLED, ...REFUSED },
  { name: 'a body without a length', bytes: post({ length: false, body: '' }), statuses: [400, 411], closes: false },
  { name: 'a body without a length, then a request', bytes: post({ length: false }) + SMUGGLED, ...REFUSED },
  { name: 'Transfer-Encoding and Content-Length', bytes: post({ headers: ['Transfer-Encoding: chunked'], body: `0\r\n\r\n${SMUGGLED}` }), ...REFUSED },
  {
    name: 'Content-Length and Transfer-Encoding',
    bytes: post({ headers: ['Content-Length: 4', 'Transfer-Encoding: chunked'], length: false, body: `26\r\n${BODY}\r\n0\r\n\r\n` }),
    ...REFUSED,
  },
  { name: 'Transfer-Encoding: gzip, chunked', bytes: chunked({ headers: ['Transfer-Encoding: gzip, chunked'] }), ...REFUSED },
  { name: 'Transfer-Encoding: gzip', bytes: post({ headers: ['Transfer-Encoding: gzip'] }) + SMUGGLED, ...REFUSED },
  { name: 'Transfer-Encoding: identity', bytes: post({ headers: ['Transfer-Encoding: identity'] }), ...REFUSED },
  { name: 'Transfer-Encoding twice', bytes: chunked({ headers: ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'] }) + SMUGGLED, ...REFUSED },
  { name: 'Transfer-Encoding with odd spelling', bytes: chunked({ headers: ['tRANSFER-eNCODING:\tChunked'] }), ...REFUSED },
  { name: 'Transfer-Encoding with a space before the colon', bytes: chunked({ headers: ['Transfer-Encoding : chunked'] }) + SMUGGLED, ...REFUSED },
  { name: 'Transfer-Encoding after a vertical tab', bytes: chunked({ headers: ['Transfer-Encoding:\vchunked'] }), ...REFUSED },
  { name: 'an empty Transfer-Encoding', bytes: post({ headers: ['Transfer-Encoding:'] }), ...REFUSED },
  { name: 'Host twice', bytes: post({ headers: ['Host: other'] }), ...REFUSED },
  { name: 'Authorization twice', bytes: post({ headers: ['Authorization: Bearer tg-other'] }), ...REFUSED },
  { name: 'an empty Authorization, then one', bytes: post().replace(AUTHORIZATION, `Authorization:\r\n${AUTHORIZATION}`), ...REFUSED },
  { name: 'Content-Type twice', bytes: post({ headers: ['Content-Type: text/plain'] }), ...REFUSED },
  { name: 'no Host', bytes: post().replace('Host: gateway\r\n', ''), ...REFUSED },
  { name: 'a folded header', bytes: post({ headers: ['X-Folded: a', ' b: c'] }), ...REFUSED },
  { name: 'a folded Content-Length', bytes: post({ headers: ['X-Folded: a', ' Content-Length: 5'] }), ...REFUSED },
  { name: 'a folded Transfer-Encoding', bytes: chunked({ headers: ['Transfer-Encoding:', ' chunked'] }), ...REFUSED },
  { name: 'lines ended by bare LF', bytes: post({ lineEnd: '\n' }) + SMUGGLED, ...REFUSED },
  { name: 'a header ended by bare LF', bytes: post({ headers: ['X-A: b\nContent-Length: 5'] }), ...REFUSED },
  { name: 'a header ended by bare CR', bytes: post({ headers: ['X-A: b\rContent-Length: 5'] }), ...REFUSED },
  { name: 'NUL in a header', bytes: post({ headers: ['X-A: b\0c'] }), ...REFUSED },
  { name: 'a space in a header name', bytes: post({ headers: ['X A: b'] }), ...REFUSED },
  { name: 'a header without a colon', bytes: post({ headers: ['Garbage'] }), ...REFUSED },
  { name: 'a header without a name', bytes: post({ headers: [': value'] }), ...REFUSED },
  { name: 'headers of more than 16 KB', bytes: post({ headers: [`X-Long: ${'x'.repeat(17_000)}`] }) + SMUGGLED, statuses: [400, 431], closes: true },
  {
    name: 'a hundred thousand header bytes in many fields',
    bytes: post({ headers: Array.from({ length: 5000 }, (_, index) => `X-${index}: ${'y'.repeat(10)}`) }),
    statuses: [400, 431],
    closes: true,
  },
  { name: 'HTTP/1.0', bytes: post({ version: 'HTTP/1.0' }) + SMUGGLED, statuses: [400, 505], closes: true },
  { name: 'HTTP/2.0', bytes: post({ version: 'HTTP/2.0' }), statuses: [400, 505], closes: true },
  {
    name: 'a GET whose body is a request',
    bytes: `GET /v1/models HTTP/1.1\r\nHost: gateway\r\n${AUTHORIZATION}\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    statuses: [200, 400, 413],
    closes: false,
  },
  {
    name: 'a GET in chunks',
    bytes: `GET /v1/models HTTP/1.1\r\nHost: gateway\r\n${AUTHORIZATION}\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
    ...REFUSED,
  },
  { name: 'a refused request whose body is a request', bytes: post({ body: SMUGGLED }).replace(AUTHORIZATION, 'X-None: 1'), statuses: [401], closes: false },
  {
    name: 'a request on an unknown path whose body is a request',
    bytes: post({ body: SMUGGLED }).replace('/v1/chat/completions', '/v1/nothing'),
    statuses: [404],
    closes: false,
  },
  { name: 'Expect: 100-continue', bytes: post({ headers: ['Expect: 100-continue'] }), statuses: [200, 417], closes: false, mayServe: true },
  { name: 'a request line with a space in its path', bytes: post().replace('/v1/chat/completions ', '/v1/chat/completions x '), ...REFUSED },
];

describe('the frame guard', () => {
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let port: number;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: REPLY }));
    const models = ['intended', 'smuggled'].map((name) => ({ id: `sim/${name}`, providerModel: `sim-${name}`, outputCap: 100 }));
    tollgate = await startTollgate({ configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models }) });
    port = Number(new URL(tollgate.url).port);
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const SPLITS: readonly [string, (bytes: string) => SplitPlan][] = [
    ['whole', () => ({ kind: 'whole' })],
    ['one byte each', () => ({ kind: 'each_byte' })],
    ['cut after the head', (bytes) => ({ kind: 'two', at: bytes.indexOf('\r\n\r\n') + 4 })],
    ['cut inside the body', (bytes) => ({ kind: 'two', at: bytes.indexOf('\r\n\r\n') + 14 })],
    ['cut inside the head', (bytes) => ({ kind: 'two', at: Math.floor(bytes.indexOf('\r\n\r\n') / 2) })],
  ];

  for (const [splitName, splitOf] of SPLITS) {
    describe(`sent ${splitName}`, () => {
      for (const attack of ATTACKS) test(attack.name, () => withstand(attack, splitOf(attack.bytes)));
    });
  }

  async function withstand(attack: Attack, split: SplitPlan): Promise<void> {
    const before = upstream.requests.length;
    const exchange = await exchangeRaw(port, Buffer.from(attack.bytes, 'latin1'), split);
    const calls = upstream.requests.slice(before).map((request) => request.body.toString('utf8'));
    const statuses = finalStatuses(exchange.received);
    const shown = JSON.stringify(exchange);
    assert.ok(calls.length <= (attack.mayServe === true ? 1 : 0), `${calls.length} calls at the provider: ${calls.join(' ')}; ${shown}`);
    for (const call of calls) assert.ok(call.includes('sim-intended'), call);
    assert.ok(statuses.length <= 1, `${statuses.length} responses to one request: ${shown}`);
    if (statuses.length === 1) assert.ok(attack.statuses.includes(statuses[0] ?? 0), shown);
    else assert.ok(exchange.closedByServer, `no response, and the connection stays open: ${shown}`);
    if (attack.closes) assert.ok(exchange.closedByServer, `the connection must not be used again: ${shown}`);
  }

  test('two requests on one connection, one after the other, are two', async () => {
    const before = upstream.requests.length;
    const first = await exchangeRaw(port, Buffer.from(post()), { kind: 'whole' });
    assert.deepEqual(finalStatuses(first.received), [200]);
    assert.equal(first.closedByServer, false);
    assert.equal(upstream.requests.length, before + 1);
  });

  test('a pipelined second request is answered after the first or not at all', async () => {
    for (const [, splitOf] of SPLITS) {
      const before = upstream.requests.length;
      const bytes = post() + SMUGGLED;
      const exchange: RawExchange = await exchangeRaw(port, Buffer.from(bytes), splitOf(bytes));
      const models = upstream.requests.slice(before).map((request) => (JSON.parse(request.body.toString('utf8')) as { model: string }).model);
      const statuses = finalStatuses(exchange.received);
      assert.ok(models.length <= 2 && statuses.length <= 2, JSON.stringify(exchange));
      assert.deepEqual(models, ['sim-intended', 'sim-smuggled'].slice(0, models.length), 'each at most once, in order');
      if (statuses.length < 2) assert.ok(exchange.closedByServer, 'what is not answered is not left waiting');
    }
  });

  test('after all of it the gateway serves', async () => {
    const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, { headers: { authorization: `Bearer ${KEYS.free}` }, body: BODY });
    assert.equal(answer.status, 200);
    assert.deepEqual(upstream.violations, []);
  });
});
