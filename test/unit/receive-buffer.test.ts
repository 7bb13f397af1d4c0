// A process of its own: it looks at what comes in one tick, which other tests would hold up. What a tick takes of a
// connection is bounded by the size of its receive buffer.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Exchange } from '../../src/http/exchange.ts';
import { boundReceiveBuffers } from '../../src/http/receive-buffer.ts';
import { atTickEnd } from '../../src/platform/event-loop/tick.ts';
import { startHttpFront } from '../support/http-front.ts';
import { HTTP_FRONT } from '../support/http-front-name.ts';

const BODY_BYTES = 100_000_000;
/**
 * uWebSockets.js reads half a megabyte at once, and goes on where a read was as long. Under node:http libuv reads 64 KB
 * some thirty times and then sees to the others.
 */
const TICK_BYTES = { uws: 524_288, node: 40 * 65_536 };

describe('the receive buffer of a connection', { skip: process.platform !== 'linux' && 'it is set on Linux' }, () => {
  test('is smaller than one read, so that a tick takes no more of a body that is held', async () => {
    const ticks: number[] = [];
    const front = await startHttpFront([
      { method: 'POST', path: '/body', envelope: 'platform', handle: (exchange) => readSlowly(exchange, ticks) },
    ]);
    assert.ok(await boundReceiveBuffers(front.port));
    const client = connect(front.port, '127.0.0.1');
    client.write(`POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`);
    client.write(Buffer.alloc(BODY_BYTES));
    await new Promise((resolve) => client.once('data', resolve));
    client.destroy();
    await front.stop();
    assert.equal(
      ticks.reduce((sum, bytes) => sum + bytes, 0),
      BODY_BYTES,
    );
    assert.ok(Math.max(...ticks) < TICK_BYTES[HTTP_FRONT], `${Math.max(...ticks)} bytes in a tick`);
  });

  test('stays as it is where nobody listens', async () => {
    assert.equal(await boundReceiveBuffers(1), false);
  });
});

/** Lets more come only now and then, so that the client has filled what there is of buffers. */
async function readSlowly(exchange: Exchange, ticks: number[]): Promise<void> {
  let ofTick = 0;
  let isWhole = false;
  exchange.body.hold();
  exchange.body.receive({
    take: (bytes, isLast) => {
      if (ofTick === 0)
        atTickEnd(() => {
          ticks.push(ofTick);
          ofTick = 0;
        });
      ofTick += bytes.length;
      isWhole ||= isLast;
      exchange.body.hold();
    },
  });
  while (!isWhole) {
    await sleep(2);
    exchange.body.resume();
  }
  exchange.answer(200, [], '');
}
