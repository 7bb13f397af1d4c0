// HEAD: an answer without a body, also where the answer is a refusal; with one, a proxy would read it as the response
// to the next request.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { startHttpFront } from '../support/http-front.ts';
import { waitFor } from '../support/waiting.ts';

test('a HEAD is answered with a head alone, and the connection goes on', async () => {
  const front = await startHttpFront([
    {
      method: 'GET',
      path: '/v1/models',
      envelope: 'platform',
      handle: (exchange) => exchange.answerJson(200, '{"a":1}'),
    },
  ]);
  const socket = connect(Number(new URL(front.url).port), '127.0.0.1');
  await once(socket, 'connect');
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
  });
  const exchange = async (head: string, isDone: (answer: string) => boolean, body = ''): Promise<string> => {
    received = '';
    socket.write(`${head}\r\nHost: gate.test\r\n\r\n${body}`);
    return waitFor(`the answer to ${head}`, () => received, isDone, 5_000);
  };
  try {
    for (const [path, status] of [
      ['/', 404],
      ['/v1/models', 405],
    ] as const) {
      const answer = await exchange(`HEAD ${path} HTTP/1.1`, (text) => text.includes('\r\n\r\n'));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(answer, /\r\nContent-Length: [1-9]\d*\r\n/i);
      assert.ok(answer.endsWith('\r\n\r\n'), answer);
    }
    // Had a body followed, it would stand before this.
    const answer = await exchange('GET /v1/models HTTP/1.1', (text) => text.endsWith('}'));
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"a":1\}$/);
    const last = await exchange(
      'HEAD / HTTP/1.1\r\nTransfer-Encoding: chunked',
      (text) => socket.closed && text !== '',
      '0\r\n\r\n',
    );
    assert.match(last, /^HTTP\/1\.1 404 [^]*\r\n\r\n$/, 'also where the connection ends with it');
  } finally {
    socket.destroy();
    await front.stop();
  }
});

test('a HEAD says the length also where the process is on its way out, and a 304 says none', async () => {
  const unsent = (path: string, status: number, unsentBytes: number | null): Route => ({
    method: 'GET',
    answersHead: true,
    path,
    envelope: 'platform',
    handle: (exchange) => exchange.send({ status, headers: [], body: '', unsentBytes }),
  });
  const front = await startHttpFront([unsent('/file', 200, 12), unsent('/known', 304, null)]);
  front.server.draining = true;
  try {
    for (const [head, length] of [
      ['HEAD /file', '12'],
      ['GET /known', undefined],
    ] as const) {
      const socket = connect(front.port, '127.0.0.1');
      let answer = '';
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
      socket.write(`${head} HTTP/1.1\r\nHost: gate.test\r\n\r\n`);
      await waitFor(
        'the answer',
        () => answer,
        (text) => text.endsWith('\r\n\r\n'),
      );
      socket.destroy();
      assert.match(answer, /\r\nConnection: close\r\n/i);
      assert.equal(/\r\nContent-Length: (\d+)\r\n/i.exec(answer)?.[1], length);
    }
  } finally {
    await front.stop();
  }
});
