// Clients that read slowly: they get all that was written without waiting for more to be written, and whoever writes a
// reply of a declared length hears when the client has taken the last of it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { startHttpFront } from '../support/http-front.ts';
import { waitFor } from '../support/waiting.ts';

const REPLY = Buffer.alloc(16_000_000, 'x');

test('the last bytes that did not fit the socket are told when they are taken', async () => {
  let exchange: Exchange | null = null;
  let hasRoomAtOnce = true;
  let told = 0;
  const front = await startHttpFront([
    {
      method: 'GET',
      path: '/large',
      envelope: 'platform',
      handle: (opened) => {
        exchange = opened;
        opened.cork(() => {
          opened.begin(200, []);
          hasRoomAtOnce = opened.writeOfTotal(REPLY, REPLY.length);
        });
        if (!hasRoomAtOnce) opened.onWritable(() => (told += 1));
      },
    },
  ]);
  const client = connect(front.port, '127.0.0.1');
  client.pause();
  client.write('GET /large HTTP/1.1\r\nhost: x\r\n\r\n');
  await waitFor(
    'the reply to begin',
    () => exchange,
    (opened) => opened !== null,
  );
  assert.equal(hasRoomAtOnce, false);
  let received = 0;
  client.on('data', (chunk) => (received += chunk.length)).resume();
  await waitFor(
    'the whole reply',
    () => received,
    (bytes) => bytes > REPLY.length,
  );
  await waitFor(
    'the writer to hear',
    () => told,
    (count) => count === 1,
  );
  assert.equal((exchange as Exchange | null)?.closed, true);
  const closed = once(client, 'close');
  client.end();
  await closed;
  await front.stop();
});

test('what was accepted of a stream goes out as the client takes it, though nothing more is written', async (context) => {
  let hasRoomAtOnce = true;
  let told = 0;
  let stream: Exchange | null = null;
  const front = await startHttpFront([
    {
      method: 'GET',
      path: '/stream',
      envelope: 'platform',
      handle: (opened) => {
        stream = opened;
        opened.cork(() => {
          opened.begin(200, []);
          hasRoomAtOnce = opened.write(REPLY);
        });
        opened.onWritable(() => (told += 1));
      },
    },
  ]);
  const client = connect(front.port, '127.0.0.1');
  context.after(() => {
    client.destroy();
    return front.stop();
  });
  client.pause();
  client.write('GET /stream HTTP/1.1\r\nhost: x\r\n\r\n');
  await waitFor(
    'the stream to begin',
    () => stream,
    (opened) => opened !== null,
  );
  assert.equal(hasRoomAtOnce, false);
  let received = 0;
  client.on('data', (chunk) => (received += chunk.length)).resume();
  await waitFor(
    'all that was written',
    () => received,
    (bytes) => bytes > REPLY.length,
  );
  assert.equal(told, 1);
});
