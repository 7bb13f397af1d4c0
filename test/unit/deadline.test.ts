// Deadlines of look-ups: what is late, and what is not although the process stood still.

import assert from 'node:assert/strict';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import { withDeadline } from '../../src/platform/deadline.ts';

test('an answer that lies in its socket when the process goes on is in time', async () => {
  const server = createServer((socket) => socket.end('answer'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    // This process is the server, too: the answer is on its way before it stands still.
    await new Promise((resolve) => server.once('connection', resolve));
    const answer = new Promise((resolve) => client.once('data', (bytes: Buffer) => resolve(bytes.toString())));
    const waiting = withDeadline(answer, 5);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    assert.equal(await waiting, 'answer');
  } finally {
    client.destroy();
    server.close();
  }
});

test('without an answer it rejects, and says how long it has waited', async () => {
  await assert.rejects(withDeadline(new Promise(() => undefined), 5), /no answer within 5 ms/);
});
