// Connections that are too many are closed as they come, and leave no trace in what is counted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import type { Route } from '../../src/http/route.ts';
import { startHttpFront } from '../support/http-front.ts';
import { principalOf } from '../support/principals.ts';
import { RawClient } from '../support/raw-client.ts';
import { waitFor } from '../support/waiting.ts';

const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/models',
    envelope: 'platform',
    handle: (exchange) => exchange.answerJson(200, '{"a":1}'),
  },
];
const GET = 'GET /v1/models HTTP/1.1\r\nHost: gate.test\r\n\r\n';

test('the fifth connection of four is closed, and there is room again when one has gone', async () => {
  const front = await startHttpFront(ROUTES, { connectionsMax: 4 });
  const clients: RawClient[] = [];
  for (let opened = 0; opened < 4; opened += 1) clients.push(await RawClient.open(front.port));
  await waitFor(
    'four to be open',
    () => front.server.openConnections,
    (open) => open === 4,
  );
  await (await RawClient.open(front.port)).untilClosed();
  assert.deepEqual(front.refusedConnections, ['process']);
  clients.pop()?.leave();
  await waitFor(
    'three to be open',
    () => front.server.openConnections,
    (open) => open === 3,
  );
  const again = await RawClient.open(front.port);
  await again.write(GET);
  await again.until('the answer', ({ received }) => received.includes('{"a":1}'));
  // Of four connections the fourth is not kept for another request.
  assert.match(again.received, /\r\nconnection: close\r\n/i);
  await again.untilClosed();
  for (const client of clients) client.leave();
  await waitFor(
    'none to be open',
    () => front.server.openConnections,
    (open) => open === 0,
  );
  await front.stop();
});

test('an address that opens more than it may is closed, others and trusted ones are not', async (context) => {
  if (process.platform !== 'linux') return context.skip('only Linux has every address of 127.0.0.0/8');
  const front = await startHttpFront(ROUTES, { connectionsPerAddressMax: 2, trustedAddresses: ['127.0.0.3'] });
  const answered = async (address: string): Promise<boolean> => {
    const client = await RawClient.open(front.port, '127.0.0.1', address);
    await client.write(GET);
    await client.until('an answer or the end', ({ received, isClosed }) => isClosed || received.includes('{"a":1}'));
    client.leave();
    return client.received !== '';
  };
  const of = async (address: string): Promise<boolean[]> => [
    await answered(address),
    await answered(address),
    await answered(address),
  ];
  assert.deepEqual(await of('127.0.0.1'), [true, true, false]);
  assert.deepEqual(await of('127.0.0.2'), [true, true, false]);
  assert.deepEqual(await of('127.0.0.3'), [true, true, true]);
  assert.deepEqual(front.refusedConnections, ['address', 'address']);
  await front.stop();
});

test('a request comes from its address, and through a trusted proxy from whom that names last', async (context) => {
  if (process.platform !== 'linux') return context.skip('only Linux has every address of 127.0.0.0/8');
  const sources: string[] = [];
  const handle = (exchange: Exchange): void => {
    sources.push(exchange.source);
    exchange.answerJson(200, '{"a":1}');
    sources.push(exchange.source);
  };
  const front = await startHttpFront([{ method: 'GET', path: '/v1/models', envelope: 'platform', handle }], {
    trustedAddresses: ['127.0.0.3'],
  });
  for (const address of ['127.0.0.2', '127.0.0.3']) {
    const client = await RawClient.open(front.port, '127.0.0.1', address);
    await client.write(GET.replace('Host', 'X-Forwarded-For: 198.51.100.1, 198.51.100.2\r\nHost'));
    await client.until('the answer', ({ received }) => received.includes('{"a":1}'));
    client.leave();
  }
  assert.deepEqual(sources, ['127.0.0.2', '', '198.51.100.2', '']);
  await front.stop();
});

test(
  'past a quarter of all a connection is kept only for who showed a good credential, past three ' +
    'quarters for nobody',
  async () => {
    const known: Route = {
      method: 'GET',
      path: '/v1/known',
      envelope: 'platform',
      handle: (exchange) => {
        exchange.principal = principalOf('acme');
        exchange.answerJson(200, '{"a":1}');
      },
    };
    const front = await startHttpFront([...ROUTES, known], { connectionsMax: 8 });
    const closes = async (path: string): Promise<boolean> => {
      const client = await RawClient.open(front.port);
      await client.write(GET.replace('/v1/models', path));
      await client.until('the answer', ({ received }) => received.includes('}'));
      client.leave();
      await waitFor(
        'it to be gone',
        () => front.server.openConnections,
        (open) => open === idle.length,
      );
      return /\r\nconnection: close\r\n/i.test(client.received);
    };
    const idle: RawClient[] = [];
    const found: boolean[][] = [];
    for (const count of [1, 2, 5, 6]) {
      while (idle.length < count) idle.push(await RawClient.open(front.port));
      await waitFor(
        'the idle ones to be open',
        () => front.server.openConnections,
        (open) => open === count,
      );
      found.push([await closes('/v1/models'), await closes('/nothing'), await closes('/v1/known')]);
    }
    assert.deepEqual(found, [
      [false, false, false],
      [true, true, false],
      [true, true, false],
      [true, true, true],
    ]);
    for (const client of idle) client.leave();
    await front.stop();
  },
);
