// How a request's body is taken in: nothing for a declared length, nothing but what came with the head before it is
// known whose it is, no more than a few times what has come, and all of it back when the client leaves. On raw sockets;
// memory is what the pool of buffers says it has lent.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  bodyOf,
  COLD_KEY,
  digestOf,
  headOf,
  type IntakeFront,
  OTHER_WARM_KEY,
  startIntakeFront,
  WARM_KEY,
} from '../support/intake-front.ts';
import { RawClient } from '../support/raw-client.ts';
import { finalStatuses } from '../support/raw-connection.ts';
import { waitFor } from '../support/waiting.ts';

const MEGABYTE = 1 << 20;

async function withFront(
  run: (front: IntakeFront) => Promise<void>,
  options: Parameters<typeof startIntakeFront>[0] = {},
): Promise<void> {
  const front = await startIntakeFront(options);
  try {
    await run(front);
  } finally {
    await front.stop();
  }
  assert.equal(front.buffers.lent, 0);
  assert.equal(front.buffers.lentBytes, 0);
}

/** Whatever was sent before is read by now, unless the server does not read it: others are served. */
async function serveOther(front: IntakeFront): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    const client = await RawClient.open(front.port);
    const body = bodyOf(300_000, `other${round}.`);
    await client.write(Buffer.concat([Buffer.from(headOf(WARM_KEY, body.length)), body]));
    await client.until('the other to be served', ({ received }) => received.includes(digestOf(body)));
    client.leave();
  }
}

function untilOpen(front: IntakeFront, exchanges: number): Promise<number> {
  return waitFor(
    'the exchanges to be open',
    () => front.server.openExchanges,
    (open) => open === exchanges,
  );
}

describe('a body that comes in', () => {
  for (const key of [WARM_KEY, COLD_KEY]) {
    test(`60 heads that declare 32 MB each take no buffer: ${key}`, () =>
      withFront(async (front) => {
        const clients = await Promise.all(Array.from({ length: 60 }, () => RawClient.open(front.port)));
        for (const client of clients) await client.write(headOf(key, 32 * MEGABYTE));
        await untilOpen(front, 60);
        assert.equal(front.buffers.lentBytes, 0);
        for (const client of clients) client.leave();
        // A connection that is not read for the time of the look-up shows with its end that it was left.
        front.answerLookUps(true);
        await untilOpen(front, 0);
      }));
  }

  test('its buffer is at most four times what has come', () =>
    withFront(async (front) => {
      const client = await RawClient.open(front.port);
      const body = bodyOf(32 * MEGABYTE);
      await client.write(headOf(WARM_KEY, body.length));
      let sent = 0;
      for (const upTo of [1, 20_000, 70_000, 300_000, MEGABYTE, 3 * MEGABYTE]) {
        await client.write(body.subarray(sent, upTo));
        sent = upTo;
        // The smallest buffer, and classes of powers of two, and room for the head.
        const boundBytes = 2 * Math.max(16_384, 4 * sent) + 2048;
        await waitFor(
          `a buffer for ${sent} bytes`,
          () => front.buffers.lentBytes,
          (bytes) => bytes >= sent,
        );
        assert.ok(front.buffers.lentBytes <= boundBytes, `${front.buffers.lentBytes} bytes are lent for ${sent}`);
        assert.equal(front.buffers.lent, 1, 'the buffer before is given back');
      }
      client.leave();
      await untilOpen(front, 0);
    }));

  test('bytes are the same however they are cut, known or not', () =>
    withFront(async (front) => {
      const sizes = fc.constantFrom(17, 2048, 2049, 16_384, 16_385, 65_536, 65_537, 262_144, 1_048_577, 5_000_000);
      const property = fc.asyncProperty(
        sizes,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
        fc.boolean(),
        async (size, cuts, isKnown) => {
          const body = bodyOf(Math.max(size, 40));
          const client = await RawClient.open(front.port);
          const ends = [...cuts.map((cut) => Math.floor(cut * body.length)), body.length].sort((a, b) => a - b);
          // While the credential is looked up the rest of a large body finds no room at the server.
          const first = client.write(
            Buffer.concat([Buffer.from(headOf(isKnown ? WARM_KEY : COLD_KEY, body.length)), body.subarray(0, ends[0])]),
          );
          if (!isKnown) {
            await waitFor(
              'the look-up',
              () => front.waiting,
              (waiting) => waiting === 1,
            );
            front.answerLookUps(true);
          }
          await first;
          for (let index = 1; index < ends.length; index += 1)
            await client.write(body.subarray(ends[index - 1], ends[index]));
          await client.until(`the digest of ${body.length} bytes`, ({ received }) => received.includes(digestOf(body)));
          client.leave();
        },
      );
      await fc.assert(property, { numRuns: 40 });
    }));

  test('while its credential is looked up nothing is taken that did not come with the head', () =>
    withFront(async (front) => {
      const client = await RawClient.open(front.port);
      const body = bodyOf(8 * MEGABYTE);
      await client.write(headOf(COLD_KEY, body.length));
      await untilOpen(front, 1);
      void client.write(body);
      await serveOther(front);
      assert.equal(front.buffers.lentBytes, 0);
      front.answerLookUps(true);
      await client.until('the body to be received', ({ received }) => received.includes(digestOf(body)));
      client.leave();
    }));

  test('what came with the head of an unknown request is all that is kept of it', () =>
    withFront(async (front) => {
      const client = await RawClient.open(front.port);
      const body = bodyOf(8 * MEGABYTE);
      await client.write(Buffer.concat([Buffer.from(headOf(COLD_KEY, body.length)), body.subarray(0, 1000)]));
      await untilOpen(front, 1);
      void client.write(body.subarray(1000));
      await serveOther(front);
      assert.ok(front.buffers.lentBytes < 6000, `${front.buffers.lentBytes} bytes are lent`);
      front.answerLookUps(true);
      await client.until('the body to be received', ({ received }) => received.includes(digestOf(body)));
      client.leave();
    }));

  for (const [name, sentBytes] of [
    ['whose request is here in whole', 20_000],
    ['whose body came in part', 1000],
    ['of whom only the head came', 0],
  ] as const) {
    test(`a client leaves while its credential is looked up, ${name}: nothing goes on and nothing is kept`, () =>
      withFront(async (front) => {
        const body = bodyOf(20_000);
        const client = await RawClient.open(front.port);
        await client.write(Buffer.concat([Buffer.from(headOf(COLD_KEY, body.length)), body.subarray(0, sentBytes)]));
        await untilOpen(front, 1);
        // The rest comes while the connection is not read, so that it is there when the look-up ends, with the end of
        // the connection behind it.
        await client.write(body.subarray(sentBytes));
        client.leave();
        await serveOther(front);
        const served = front.received.length;
        front.answerLookUps(true);
        await untilOpen(front, 0);
        await serveOther(front);
        assert.equal(front.received.length, served + 3, 'only the others were received');
      }));
  }

  describe('read in whole before its connection stood still, as where more lies in the socket than one read takes', () => {
    /** A cold request whose whole body was taken in though its credential is being looked up. */
    async function sendAtOnce(front: IntakeFront): Promise<{ client: RawClient; body: Buffer }> {
      const large = bodyOf(8 * MEGABYTE);
      const body = bodyOf(MEGABYTE);
      for (let round = 0; round < 20; round += 1) {
        const client = await RawClient.open(front.port);
        // The system gives a connection that is read fast a larger buffer.
        for (let warm = 0; warm < 8; warm += 1) {
          await serve(client, large);
          client.received = '';
        }
        void client.write(Buffer.concat([Buffer.from(headOf(COLD_KEY, body.length)), body]));
        await waitFor(
          'the look-up',
          () => front.waiting,
          (waiting) => waiting === 1,
        );
        // All of it is here: of a connection that is not read nobody hears that its client has left.
        const isWhole = front.server.arrivingBodies === 0;
        if (front.buffers.lentBytes >= body.length && isWhole) return { client, body };
        front.answerLookUps(true);
        await client.until('the body to be received', ({ received }) => received.includes(digestOf(body)));
        client.leave();
      }
      throw new Error('this system never keeps as much for a connection as one read takes');
    }

    async function serve(client: RawClient, body: Buffer): Promise<void> {
      void client.write(Buffer.concat([Buffer.from(headOf(WARM_KEY, body.length)), body]));
      await client.until('the body to be received', ({ received }) => received.includes(digestOf(body)));
    }

    test('its client leaves during the look-up: that shows at once', () =>
      withFront(async (front) => {
        const { client } = await sendAtOnce(front);
        client.leave();
        await untilOpen(front, 0);
        const served = front.received.length;
        front.answerLookUps(true);
        await serveOther(front);
        assert.equal(front.received.length, served + 3, 'only the others were received');
      }));

    test('its connection is read again for the next request', () =>
      withFront(async (front) => {
        const { client, body } = await sendAtOnce(front);
        front.answerLookUps(true);
        await client.until('the body to be received', ({ received }) => received.includes(digestOf(body)));
        await serve(client, bodyOf(1000, 'next.'));
        client.leave();
      }));
  });

  test(
    'with as much lent as may be a big body is refused with 503 and Retry-After, and a small one served ' +
      'until the last',
    () =>
      withFront(
        async (front) => {
          const held = front.buffers.acquire(3 * MEGABYTE);
          const big = bodyOf(MEGABYTE);
          const refused = await RawClient.open(front.port);
          await refused.write(headOf(WARM_KEY, big.length));
          await refused.write(big);
          await refused.until('the refusal', ({ received }) => received.includes('\r\n\r\n'));
          assert.deepEqual(finalStatuses(refused.received), [503]);
          assert.match(refused.received, /\r\nretry-after: 1\r\n/i);
          const small = bodyOf(2000);
          const served = await RawClient.open(front.port);
          await served.write(headOf(WARM_KEY, small.length) + small.toString());
          await served.until('the small one to be served', ({ received }) => received.includes(digestOf(small)));
          front.buffers.release(held);
          const again = await RawClient.open(front.port);
          await again.write(headOf(WARM_KEY, big.length));
          await again.write(big);
          await again.until('the big one to be served now', ({ received }) => received.includes(digestOf(big)));
          for (const client of [refused, served, again]) client.leave();
          assert.deepEqual(front.refusals, ['overloaded']);
        },
        { lentBytesMax: 4 * MEGABYTE },
      ),
  );

  test(
    'an organization whose bodies never end gets no more than half of the memory, and others are served ' + 'beside it',
    () =>
      withFront(
        async (front) => {
          const body = bodyOf(MEGABYTE);
          const greedy = await Promise.all(Array.from({ length: 8 }, () => RawClient.open(front.port)));
          for (const client of greedy) {
            await client.write(headOf(WARM_KEY, body.length));
            await client.write(body.subarray(0, -1));
          }
          await waitFor(
            'the refusals',
            () => front.refusals.length,
            (refusals) => refusals >= 4,
          );
          const other = await RawClient.open(front.port);
          await other.write(headOf(OTHER_WARM_KEY, body.length));
          await other.write(body);
          await other.until('the other to be served', ({ received }) => received.includes(digestOf(body)));
          for (const client of [...greedy, other]) client.leave();
          assert.deepEqual(new Set(front.refusals), new Set(['overloaded']));
        },
        { lentBytesMax: 8 * MEGABYTE },
      ),
  );

  test('one that takes longer than it may is 408, and its buffer is back', () =>
    withFront(
      async (front) => {
        const client = await RawClient.open(front.port);
        await client.write(headOf(WARM_KEY, 100_000));
        await client.write(bodyOf(100_000).subarray(0, 5000));
        await waitFor(
          'a buffer',
          () => front.buffers.lent,
          (lent) => lent === 1,
        );
        front.server.tick(1000);
        front.server.tick(60_999);
        assert.equal(front.buffers.lent, 1);
        front.server.tick(61_000);
        assert.equal(front.buffers.lent, 0);
        await client.untilAnswered();
        assert.deepEqual(finalStatuses(client.received), [408]);
        client.leave();
      },
      { limits: { bodyTimeoutMs: 60_000 } },
    ));
});
