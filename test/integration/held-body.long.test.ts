// Bodies of which more came than was asked for, and that are left with their clients, or answered, long after that.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Exchange } from '../../src/http/exchange.ts';
import { startHttpFront } from '../support/http-front.ts';

/** uWebSockets.js closes what it waits for after ten seconds, which it counts in steps of four. */
const HELD_MS = 18_000;
const BODY_BYTES = 256_000_000;

test('a body that is held is there as long as it is, however much of it came at once', async () => {
  let received = 0;
  let piecesOfTick = 0;
  let heldAt = 0;
  const handle = (exchange: Exchange): void => {
    const { body } = exchange;
    body.hold();
    // Held again behind each piece until two have come in one tick: the second one came although it was held.
    const resume = (): void => {
      if (piecesOfTick > 1 && heldAt === 0) {
        heldAt = received;
        setTimeout(() => body.resume(), HELD_MS);
        return;
      }
      piecesOfTick = 0;
      if (heldAt === 0) body.hold();
      body.resume();
    };
    body.receive({
      take: (bytes, isLast) => {
        received += bytes.length;
        piecesOfTick += 1;
        if (heldAt === 0) body.hold();
        if (piecesOfTick === 1) setTimeout(resume, 20);
        if (isLast) exchange.answer(200, [], String(received));
      },
    });
  };
  const front = await startHttpFront([{ method: 'POST', path: '/v1/held', envelope: 'platform', handle }]);
  try {
    const socket = connect(front.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (text) => (answer += text.toString()));
    const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => undefined));
    socket.write(`POST /v1/held HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`);
    socket.write(Buffer.alloc(BODY_BYTES));
    await ended;
    assert.ok(heldAt > 0, 'nothing came while it was held');
    assert.match(answer, new RegExp(`^HTTP/1.1 200 [^]*${BODY_BYTES}`), `held behind ${heldAt} of ${BODY_BYTES}`);
  } finally {
    await front.stop();
  }
});

test('a body that came whole although it was held is answered when it is, however late', async () => {
  let pieces = 0;
  const handle = (exchange: Exchange): void => {
    exchange.body.hold();
    exchange.body.receive({
      take: (_bytes, isLast) => {
        pieces += 1;
        if (isLast) setTimeout(() => exchange.answer(200, [], 'late'), HELD_MS);
      },
    });
  };
  const front = await startHttpFront([{ method: 'POST', path: '/v1/late', envelope: 'platform', handle }]);
  try {
    const socket = connect(front.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (text) => (answer += text.toString()));
    const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => undefined));
    const chunks = '3\r\nbeg\r\n3\r\nun \r\n3\r\nend\r\n0\r\n\r\n';
    socket.write(`POST /v1/late HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`);
    await ended;
    assert.ok(pieces > 1, 'it came in one piece');
    assert.match(answer, /^HTTP\/1.1 200 [^]*late/);
  } finally {
    await front.stop();
  }
});
