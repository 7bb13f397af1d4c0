// A process that drains: a reply in chunks ends as any other does, and a client that is just sending is answered.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { startHttpFront } from '../support/http-front.ts';
import { RawClient } from '../support/raw-client.ts';
import { waitFor } from '../support/waiting.ts';

test('a reply in chunks that ends during a drain has nothing in its body but its chunks', async () => {
  let exchange: Exchange | null = null;
  const front = await startHttpFront([
    {
      method: 'GET',
      path: '/stream',
      envelope: 'platform',
      handle: (opened) => {
        exchange = opened;
        opened.cork(() => {
          opened.begin(200, []);
          opened.write(Buffer.from('one'));
        });
      },
    },
  ]);
  const client = connect(front.port, '127.0.0.1');
  let received = '';
  client.setEncoding('latin1').on('data', (text: string) => (received += text));
  client.write('GET /stream HTTP/1.1\r\nhost: x\r\n\r\n');
  await waitFor(
    'the first chunk',
    () => received,
    (text) => text.endsWith('one') || text.endsWith('one\r\n'),
  );
  const closed = once(client, 'close');
  const drained = front.server.drain(10_000);
  const open = exchange as Exchange | null;
  open?.cork(() => open.end(Buffer.from('two')));
  await drained;
  await closed;
  assert.equal(received.slice(received.indexOf('\r\n\r\n') + 4), '3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n');
  await front.stop();
});

test('what comes on a kept connection soon after a drain began is answered, and ends the connection and the drain', async () => {
  const front = await startHttpFront([
    {
      method: 'GET',
      path: '/',
      envelope: 'platform',
      handle: (exchange) => exchange.send({ status: 200, headers: [], body: 'answered' }),
    },
  ]);
  const ask = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
  const client = await RawClient.open(front.port);
  await client.write(ask);
  await client.until('the first answer', ({ received }) => received.endsWith('answered'));
  client.received = '';
  const drained = front.server.drain(600_000, 300_000);
  await client.write(ask);
  await client.untilClosed();
  assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n[^]*answered$/i);
  // Long before its time, since nobody is connected any more.
  await drained;
  await front.stop();
});

test('a kept connection on which nothing comes is closed when its time is over', async () => {
  const front = await startHttpFront([]);
  const client = await RawClient.open(front.port);
  await waitFor(
    'the connection',
    () => front.server.openConnections,
    (open) => open === 1,
  );
  await front.server.drain(600_000, 20);
  await client.untilClosed();
  await front.stop();
});
