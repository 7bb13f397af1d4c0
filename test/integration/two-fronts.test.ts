// The fronts on uWebSockets.js and on node:http find the same handler for a path, and hand on the same head.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import type { Route } from '../../src/http/route.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { RawClient } from '../support/raw-client.ts';
import { waitFor } from '../support/waiting.ts';

const tell = (exchange: Exchange): void => {
  const { route, method, path, query, parameters, headers } = exchange;
  exchange.answerJson(200, JSON.stringify({ of: route.path, method, path, query, parameters, headers }));
};
const at = (path: string, more: Partial<Route> = {}): Route => ({
  method: 'GET',
  path,
  envelope: 'platform',
  handle: tell,
  ...more,
});
const ROUTES: readonly Route[] = [
  at('/'),
  at('/v1/items', { answersHead: true }),
  at('/v1/items', { method: 'POST' }),
  at('/v1/items/known'),
  at('/v1/items/:id'),
  at('/v1/items/:id', { method: 'DELETE' }),
  at('/v1/items/:id/parts'),
  at('/v1/:kind/known/parts'),
  at('/v1/:kind/:id/:part/deep'),
  at('/v1/files/:rest', { takesRest: true }),
  at('/v1/files/:id/info', { method: 'POST' }),
  at('/v1/broken', { handle: breakOff }),
  at('/v1/cut', { method: 'POST', handle: cutAtBody }),
];
const LONG = Buffer.alloc(8 << 20);
const HELD = 'x'.repeat(10_000);
const SEGMENTS = ['v1', 'items', 'known', 'parts', 'files', 'a', 'deep', '', '%2F', ':id', '*', '..', 'info'];
const METHODS = ['GET', 'POST', 'HEAD', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'PROPFIND'];
const QUERIES = ['', '?', '?a=b', '?a?b', '??', '?a=%20&a=c'];

const CONNECTIONS = 20;

function paths(): readonly string[] {
  const made = new Set<string>(['/', '//', '/v1', '/v1/']);
  let seed = 1;
  const next = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  while (made.size < 400) {
    const count = 1 + next(5);
    made.add(Array.from({ length: count }, () => `/${SEGMENTS[next(next(2) === 0 ? 5 : SEGMENTS.length)]}`).join(''));
  }
  return [...made];
}

describe('both fronts', () => {
  const fronts: HttpFront[] = [];
  let missing: string | null = null;

  before(async () => {
    const uws = await chooseFront('auto');
    missing = uws.missing;
    for (const { front } of [uws, await chooseFront('node')]) fronts.push(await startHttpFront(ROUTES, {}, front));
  });
  after(() => Promise.all(fronts.map((front) => front.stop())));

  /** Status and body of the answers, one connection for all of them. */
  async function ask(front: HttpFront, heads: readonly string[]): Promise<readonly string[]> {
    const answers: string[] = [];
    let client = await RawClient.open(front.port);
    for (const head of heads) {
      if (client.isClosed) client = await RawClient.open(front.port);
      client.received = '';
      await client.write(`${head}\r\n\r\n`);
      await client.until(head, ({ received, isClosed }) => isClosed || isWhole(received, head.startsWith('HEAD')));
      const { received } = client;
      const status = received.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
      const body = received.slice(received.indexOf('\r\n\r\n') + 4);
      answers.push(
        `${head.split('\r\n')[0]}: ${status} ${body.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')}`,
      );
    }
    client.leave();
    return answers;
  }

  test('find the same handler, with the same parameters, path and query', async (context) => {
    if (missing !== null) return context.skip('uWebSockets.js has no binary here');
    const heads = paths().map((path, index) => {
      const method = METHODS[index % 3 === 0 ? index % METHODS.length : 0];
      return `${method} ${path}${QUERIES[index % QUERIES.length]} HTTP/1.1\r\nhost: gate.test`;
    });
    const parts = Array.from({ length: CONNECTIONS }, (_, part) => heads.filter((__, at) => at % CONNECTIONS === part));
    const [uws, node] = await Promise.all(
      fronts.map(async (front) => (await Promise.all(parts.map((part) => ask(front, part)))).flat()),
    );
    assert.deepEqual(node, uws);
    assert.ok(uws?.some((answer) => answer.includes(': 200 ')) && uws.some((answer) => answer.includes(': 405 ')));
  });

  test('refuse a target with other bytes than visible ASCII', async (context) => {
    if (missing !== null) return context.skip('uWebSockets.js has no binary here');
    const targets = ['/?a=\xe9', '/?a=caf\xc3\xa9', '/?\x7f', '/v1/items/\xc3\xa9', '/v1/files/a/\xff', '/v1/no/\xe9'];
    for (const target of targets)
      for (const { port } of fronts) {
        const client = await RawClient.open(port);
        await client.write(Buffer.from(`GET ${target} HTTP/1.1\r\nhost: gate.test\r\n\r\n`, 'latin1'));
        await client.untilAnswered();
        assert.match(client.received, /^HTTP\/1\.1 400 /, target);
        client.leave();
      }
  });

  test('that on node:http sends what it has taken of a response before it cuts it', async () => {
    const client = await RawClient.open(fronts.at(-1)?.port ?? 0);
    await client.write('GET /v1/broken HTTP/1.1\r\nhost: gate.test\r\n\r\n');
    await client.untilClosed();
    assert.ok(client.received.endsWith(`${HELD}\r\n`), 'all of it, and no last chunk');
  });

  test('that on node:http reads nothing more of a client that it has cut and that does not read', async () => {
    const opened = Promise.withResolvers<AcceptedSocket>();
    const onSocket = (message: unknown): void => opened.resolve((message as { socket: AcceptedSocket }).socket);
    subscribe('net.server.socket', onSocket);
    const client = connect(fronts.at(-1)?.port ?? 0, '127.0.0.1').pause();
    client.on('error', () => undefined);
    const socket = await opened.promise;
    unsubscribe('net.server.socket', onSocket);
    client.write(`POST /v1/cut HTTP/1.1\r\nhost: gate.test\r\ncontent-length: ${LONG.length}\r\n\r\n`);
    await waitFor('the client to be full', () => socket.writableLength, Boolean);
    client.write(LONG);
    await waitFor(
      'the reading to end',
      () => socket._handle?.reading,
      (reading) => reading === false,
    );
    assert.ok(socket.bytesRead < LONG.length / 8, `${socket.bytesRead} bytes were read`);
    client.destroy();
  });

  test('hand on the same headers', async (context) => {
    if (missing !== null) return context.skip('uWebSockets.js has no binary here');
    const lines = [
      ['X-Two: a', 'x-two: b', 'X-EMPTY:', 'x-spaces:   c  d  '],
      ['x-utf: caf\u00e9 \u4f60 x', 'accept: */*', 'cookie: a=b; c=d', 'cookie: e'],
      Array.from({ length: 60 }, (_, index) => `x-${index}: ${index}`),
    ];
    const heads = lines.map((own) => ['GET / HTTP/1.1', 'Host: gate.test', ...own].join('\r\n'));
    const [uws, node] = await Promise.all(fronts.map((front) => ask(front, heads)));
    assert.deepEqual(node, uws);
  });
});

/** Node holds what it is given within a cork. */
function breakOff(exchange: Exchange): void {
  exchange.cork(() => {
    exchange.begin(200, []);
    exchange.write(Buffer.from(HELD));
    exchange.cut();
  });
}

type AcceptedSocket = Socket & { readonly _handle: { readonly reading: boolean } | null };

/** In the middle of its body, behind just more than the client's system takes: for so little Node itself reads on. */
function cutAtBody(exchange: Exchange): void {
  let isFull = false;
  exchange.begin(200, []);
  exchange.body.receive({ take: ({ length }) => (length > 0 && isFull ? exchange.cut() : undefined) });
  const fill = (): void => {
    isFull = !exchange.write(LONG.subarray(0, 8_192)) || isFull;
    if (!isFull) setImmediate(fill);
  };
  fill();
}

function isWhole(received: string, isHead: boolean): boolean {
  const end = received.indexOf('\r\n\r\n');
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0);
  return end !== -1 && (isHead || received.length >= end + 4 + length);
}
