// A request whose body comes in chunks, without a length: it takes memory as it comes and no more than the limit, is
// served as one with a length is, and is the last of its connection.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';
import {
  BODY_LIMIT_BYTES,
  bodyOf,
  COLD_KEY,
  digestOf,
  headOf,
  type IntakeFront,
  startIntakeFront,
  WARM_KEY,
} from '../support/intake-front.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { waitFor } from '../support/waiting.ts';

const chunkedHead = (key: string, path?: string): string =>
  headOf(key, 1, 'POST', path).replace('Content-Length: 1', 'Transfer-Encoding: chunked');
const chunkOf = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const LAST_CHUNK = '0\r\n\r\n';

async function sendInChunks(client: RawClient, body: Buffer, pieceBytes: number): Promise<void> {
  for (let at = 0; at < body.length; at += pieceBytes) await client.write(chunkOf(body.subarray(at, at + pieceBytes)));
  await client.write(LAST_CHUNK);
}

describe('a body in chunks', () => {
  let front: IntakeFront;
  before(async () => {
    front = await startIntakeFront({ limits: { bodyTimeoutMs: 60_000 } });
  });
  after(() => front?.stop());

  const untilNothingIsLent = (): Promise<number> =>
    waitFor(
      'the buffers to be back',
      () => front.buffers.lent,
      (lent) => lent === 0,
    );

  for (const [bytes, pieceBytes] of [
    [40, 40],
    [40, 7],
    [70_000, 1000],
    [5_000_000, 65_536],
    [BODY_LIMIT_BYTES, 1 << 20],
  ] as const) {
    for (const key of [WARM_KEY, COLD_KEY]) {
      test(`of ${bytes} bytes in pieces of ${pieceBytes} arrives as it was: ${key}`, async () => {
        const client = await RawClient.open(front.port);
        const body = bodyOf(bytes);
        const head = client.write(chunkedHead(key));
        if (key === COLD_KEY) {
          await waitFor(
            'the look-up',
            () => front.waiting,
            (waiting) => waiting === 1,
          );
          front.answerLookUps(true);
        }
        await head;
        await sendInChunks(client, body, pieceBytes);
        await client.until('the digest', ({ received }) => received.includes(digestOf(body)));
        await client.untilClosed();
        assert.match(client.received, /\r\nconnection: close\r\n/i);
        await untilNothingIsLent();
      });
    }
  }

  test('takes no more than four times what has come', async () => {
    const client = await RawClient.open(front.port);
    await client.write(chunkedHead(WARM_KEY));
    const body = bodyOf(3_000_000);
    let sent = 0;
    for (const upTo of [1, 20_000, 300_000, 3_000_000]) {
      await client.write(chunkOf(body.subarray(sent, upTo)));
      sent = upTo;
      await waitFor(
        `a buffer for ${sent} bytes`,
        () => front.buffers.lentBytes,
        (bytes) => bytes >= sent,
      );
      assert.ok(front.buffers.lentBytes <= 2 * Math.max(16_384, 4 * sent) + 2048, `${front.buffers.lentBytes}`);
    }
    client.leave();
    await untilNothingIsLent();
  });

  test('over the limit is 413 and names the limit, however it goes on', async () => {
    const client = await RawClient.open(front.port);
    await client.write(chunkedHead(WARM_KEY));
    await sendInChunks(client, bodyOf(BODY_LIMIT_BYTES + 1), 1 << 20);
    await client.untilAnswered();
    assert.deepEqual(finalStatuses(client.received), [413]);
    assert.ok(client.received.includes(`the limit of ${BODY_LIMIT_BYTES} bytes`), client.received);
    await client.untilClosed();
    await untilNothingIsLent();
  });

  test('that has no end is answered, and read no further than it is dropped', async () => {
    const client = await RawClient.open(front.port);
    await client.write(chunkedHead(WARM_KEY));
    const piece = chunkOf(Buffer.alloc(1 << 20, ' '));
    for (let pieces = 0; pieces < 400 && !client.isClosed; pieces += 1) await client.write(piece);
    await client.untilClosed();
    await untilNothingIsLent();
  });

  for (const [name, sent] of [
    ['stops', chunkOf(bodyOf(5000)).toString()],
    ['never begins', ''],
  ] as const) {
    test(`that ${name} is 408 after its time`, async () => {
      const client = await RawClient.open(front.port);
      await client.write(chunkedHead(WARM_KEY) + sent);
      await waitFor(
        'the body to be watched',
        () => front.server.arrivingBodies,
        (bodies) => bodies === 1,
      );
      front.server.tick(1000);
      front.server.tick(61_000);
      front.server.tick(61_000);
      front.server.tick(66_000);
      await client.untilAnswered();
      assert.deepEqual(finalStatuses(client.received), [408]);
      client.leave();
      await untilNothingIsLent();
    });
  }

  test('that is empty is no JSON, and said so', async () => {
    const client = await RawClient.open(front.port);
    await client.write(chunkedHead(WARM_KEY) + LAST_CHUNK);
    await client.untilClosed();
    assert.deepEqual(finalStatuses(client.received), [400]);
  });
});

describe('a response to a request in chunks', () => {
  let front: HttpFront;
  let handled = 0;
  let streaming: Exchange | null = null;
  before(async () => {
    const stream = (exchange: Exchange): void => {
      handled += 1;
      exchange.body.receive({
        take: (_, isLast) => {
          if (isLast) streaming = exchange;
        },
      });
    };
    front = await startHttpFront([{ method: 'POST', path: '/v1/stream', envelope: 'platform', handle: stream }]);
  });
  after(() => front?.stop());

  const TEN = Buffer.from('0123456789');
  const END = HTTP_FRONT === 'uws' ? '\r\n0\r\nx-complete: true\r\n\r\n' : '\r\n0\r\n\r\n';
  const LENGTH = [/content-length: 10\r\n/i, '0123456789'] as const;

  async function open(): Promise<{ client: RawClient; exchange: Exchange }> {
    streaming = null;
    handled = 0;
    const client = await RawClient.open(front.port);
    await client.write(chunkedHead('k', '/v1/stream') + chunkOf(TEN).toString() + LAST_CHUNK);
    const exchange = await waitFor(
      'the exchange',
      () => streaming,
      (found) => found !== null,
    );
    assert.ok(exchange !== null);
    return { client, exchange };
  }

  test('in pieces ends with its last chunk, and its connection when the client takes no leave', async () => {
    const { client, exchange } = await open();
    exchange.cork(() => {
      exchange.begin(200, ['content-type', 'text/plain']);
      exchange.write(TEN);
    });
    exchange.cork(() => {
      exchange.write(TEN);
      exchange.end();
    });
    await client.until('the end', ({ received }) => received.endsWith(END));
    assert.match(client.received, /\r\nconnection: close\r\n[^]*\r\n\r\na\r\n0123456789\r\na\r\n0123456789\r\n0\r\n/i);
    assert.equal(front.server.openExchanges, 0);
    // node:http closes it when all is written.
    if (HTTP_FRONT === 'uws') assert.equal(client.isClosed, false, 'what its socket has not taken yet is not lost');
    front.server.tick(1000);
    front.server.tick(6000);
    await client.untilClosed();
  });

  test('in pieces: what follows ends the connection and reaches no handler', async () => {
    const { client, exchange } = await open();
    exchange.cork(() => {
      exchange.begin(200, ['content-type', 'text/plain']);
      exchange.write(TEN);
      exchange.end();
    });
    await client.until('the end', ({ received }) => received.endsWith(END));
    await client.write(headOf('k', 0, 'POST', '/v1/stream'));
    await client.untilClosed();
    assert.equal(handled, 1);
    assert.deepEqual(finalStatuses(client.received), [200]);
  });

  test('of a known length is whole for the client, in one piece and in two', async () => {
    const inTwo = HTTP_FRONT === 'uws' ? ([/chunked/i, '456789'] as const) : LENGTH;
    for (const pieces of [[TEN], [TEN.subarray(0, 4), TEN.subarray(4)]]) {
      const { client, exchange } = await open();
      exchange.cork(() => {
        exchange.begin(200, ['content-type', 'text/plain']);
        for (const piece of pieces) exchange.writeOfTotal(piece, TEN.length);
      });
      exchange.cork(() => exchange.end());
      const [head, body] = pieces.length === 1 ? LENGTH : inTwo;
      await client.until('the body', ({ received }) => received.includes(body));
      assert.match(client.received, head);
      front.server.tick(1000);
      front.server.tick(6000);
      await client.untilClosed();
    }
  });

  test('that breaks off has no last chunk', async () => {
    const { client, exchange } = await open();
    exchange.cork(() => {
      exchange.begin(200, []);
      exchange.write(TEN);
    });
    exchange.cut();
    await client.untilClosed();
    assert.match(client.received, /0123456789(\r\n)?$/);
  });
});
