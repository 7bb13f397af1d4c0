// A reply in chunks that ends while its process drains ends as any other does.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { startHttpFront } from '../support/http-front.ts';
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
