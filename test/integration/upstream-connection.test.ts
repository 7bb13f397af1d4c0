// Connections to providers on real sockets: what goes over the wire, when a connection is used again and when never,
// each fault told once, backpressure, and TLS (failures ST4, ST5, S12).
//
// A process of its own: it changes whom the process trusts of TLS.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates, type TLSSocket, type TlsOptions } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { Client } from 'undici';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { seededRandom, splitBytes } from '../support/byte-splits.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Answer, type RawProvider, startRawProvider } from '../support/raw-provider.ts';
import { callTo, HeldClock, originAt } from '../support/upstream-calls.ts';
import { pause, waitFor } from '../support/waiting.ts';

const clock = new HeldClock();
const opened: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of opened) await one.close();
});

async function provider(answer: Answer, options: { host?: string; timeouts?: object } = {}) {
  const raw = await startRawProvider(answer);
  const origin = originAt(`http://${options.host ?? '127.0.0.1'}:${raw.port}`, clock, options.timeouts);
  opened.push(raw, origin);
  return { raw, origin };
}

const hello = (socket: Socket): unknown => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
const isClosed = (raw: RawProvider, index: number) =>
  waitFor('the connection to close', () => raw.sockets[index]?.readableEnded || raw.sockets[index]?.destroyed, Boolean);

describe('a request', () => {
  test('is on the wire what undici sends, in one piece and in several', async () => {
    const { raw, origin } = await provider(hello);
    const headers = ['authorization', 'Bearer k', 'accept-language', 'd\xe9'];
    const body = Buffer.alloc(100, 'x');
    await callTo(origin, { path: '/v1?q=1', headers, body }).ended;
    await callTo(origin, { path: '/v1?q=1', headers, body: { pieces: [body], pooled: null } }).ended;
    await callTo(origin, {
      path: '/v1?q=1',
      headers,
      body: { pieces: [body.subarray(0, 1), body.subarray(1, 60), body.subarray(60)], pooled: null },
    }).ended;
    const client = new Client(`http://127.0.0.1:${raw.port}`);
    await (await client.request({ method: 'POST', path: '/v1?q=1', headers, body })).body.text();
    for (const method of ['GET', 'DELETE', 'PUT'] as const) {
      await callTo(origin, { method, path: '/v1/x', body: null }).ended;
      await (await client.request({ method, path: '/v1/x', body: null })).body.text();
    }
    await client.close();
    const [first, ...others] = raw.requests.slice(0, 4);
    for (const other of others) assert.equal(other, first);
    for (const at of [4, 6, 8]) assert.equal(raw.requests[at], raw.requests[at + 1]);
  });

  test('that would be two is never sent', async () => {
    const { raw, origin } = await provider(hello);
    const told = callTo(origin, { headers: ['x', 'a\r\n\r\nGET / HTTP/1.1'] });
    assert.equal(told.reply.end, null, 'told before the call was returned');
    assert.equal((await told.ended).end, 'connect_failed');
    assert.deepEqual([raw.sockets.length, origin.openCalls], [0, 0]);
  });

  test('of any size arrives whole', async () => {
    const { raw, origin } = await provider(hello);
    for (const bytes of [0, 1, 65_536, 5_000_000]) {
      const memory = Buffer.alloc(bytes, 'b');
      const pieces = [memory.subarray(0, bytes >> 1), memory.subarray(bytes >> 1)];
      const told = await callTo(origin, { body: { pieces, pooled: null } }).ended;
      assert.deepEqual([told.end, raw.requests.at(-1)?.split('\r\n\r\n')[1]?.length], ['end', bytes]);
    }
    assert.equal(raw.sockets.length, 1);
  });
});

describe('a connection is used again', () => {
  test('the last used first, one call at a time', async () => {
    const { raw, origin } = await provider((socket, request) =>
      request.includes('/slow') ? setTimeout(hello, 50, socket) : hello(socket),
    );
    await Promise.all([callTo(origin, { path: '/slow' }).ended, callTo(origin).ended]);
    assert.equal(raw.sockets.length, 2);
    for (let call = 0; call < 5; call++) await callTo(origin).ended;
    assert.deepEqual([raw.sockets.length, origin.openCalls], [2, 0]);
    const slow = raw.sockets.findIndex((socket) => socket.bytesRead > 4 * 60);
    await callTo(origin, {}, true).ended;
    assert.equal(raw.sockets.length, 3, 'a new connection was asked for');
    assert.notEqual(slow, -1);
  });

  const NEVER_AGAIN: Readonly<Record<string, string>> = {
    'connection: close': 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello',
    'HTTP/1.0': 'HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello',
    'a second reply in one piece with the first':
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil',
    'a body longer than declared': 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello!',
    'a 204 with a body': 'HTTP/1.1 204 OK\r\ncontent-length: 5\r\n\r\nevil!',
    'a keep-alive too short to use': 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 5\r\n\r\nhello',
  };
  for (const [name, reply] of Object.entries(NEVER_AGAIN)) {
    test(`but not after ${name}`, async () => {
      const { raw, origin } = await provider((socket) => socket.write(reply));
      const told = await callTo(origin).ended;
      assert.deepEqual([told.end, told.body], ['end', reply.includes(' 204 ') ? '' : 'hello']);
      await isClosed(raw, 0);
      await callTo(origin).ended;
      assert.equal(raw.sockets.length, 2);
    });
  }

  test('but not when bytes nobody asked for lay on it: they are never the reply to another request', async () => {
    // The second reply comes in a segment of its own, right behind the first.
    const { raw, origin } = await provider((socket, request) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n${/id=(....)/.exec(request)?.[1]}`);
      if (request.includes('evil'))
        setImmediate(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil'));
    });
    for (let round = 0; round < 50; round++) {
      assert.equal((await callTo(origin, { path: '/evil?id=abcd' }).ended).body, 'abcd');
      await pause(2);
      const told = await callTo(origin, { path: '/?id=1234' }).ended;
      assert.equal(told.body, '1234');
    }
    assert.ok(raw.sockets.length > 1);
  });

  test('but not when such bytes, or its end, wait unread: the request is not even sent', async () => {
    const { raw, origin } = await provider(hello);
    for (const act of [
      (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil'),
      (socket: Socket) => socket.end(),
    ]) {
      await callTo(origin).ended;
      const sent = raw.requests.length;
      // The kernel has it before the call is made, the event loop has not.
      act(raw.sockets.at(-1) as Socket);
      const told = await callTo(origin).ended;
      assert.deepEqual([told.end, told.body, raw.requests.length], ['stale_connection', '', sent]);
      assert.equal((await callTo(origin, {}, true).ended).body, 'hello');
    }
  });

  test('but not while the request is still being sent', async () => {
    const early = await new Promise<{ port: number; close(): Promise<void>; sockets: Socket[] }>((resolve) => {
      const sockets: Socket[] = [];
      const server = createServer((socket) => {
        sockets.push(socket);
        socket.on('error', () => undefined);
        // It answers the head and never reads the body.
        socket.once('readable', () => {
          socket.read(100);
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno');
        });
      });
      server.listen(0, '127.0.0.1', () => {
        const close = () =>
          new Promise<void>((done) => {
            for (const socket of sockets) socket.destroy();
            server.close(() => done());
          });
        resolve({ port: (server.address() as { port: number }).port, close, sockets });
      });
    });
    opened.push(early);
    const origin = originAt(`http://127.0.0.1:${early.port}`, clock);
    const told = await callTo(origin, { body: Buffer.alloc(50_000_000) }).ended;
    assert.deepEqual([told.status, told.end], [413, 'end']);
    assert.equal((await callTo(origin, { body: Buffer.alloc(1) }).ended).status, 413);
    assert.equal(early.sockets.length, 2);
    await origin.close();
  });

  test('until its time is over: 4 s, or what the server says less a second', async () => {
    const { raw, origin } = await provider((socket, request) =>
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-length: 0\r\n${request.includes('/hint') ? 'keep-alive: timeout=3\r\n' : ''}\r\n`,
      ),
    );
    for (const [path, keptMs] of [
      ['/', 4_000],
      ['/hint', 2_000],
    ] as const) {
      const before = raw.sockets.length;
      await callTo(origin, { path }, true).ended;
      clock.timeMs += keptMs - 1;
      origin.trim();
      await callTo(origin, { path }).ended;
      assert.equal(raw.sockets.length, before + 1, 'kept');
      clock.timeMs += keptMs;
      await callTo(origin, { path }).ended;
      assert.equal(raw.sockets.length, before + 2, 'not lent, even before the clock has looked');
      clock.timeMs += keptMs;
      origin.trim();
      await isClosed(raw, before + 1);
    }
  });

  test('until the server closes it, which no call notices', async () => {
    const { raw, origin } = await provider(hello);
    for (let round = 0; round < 20; round++) {
      await callTo(origin).ended;
      raw.sockets.at(-1)?.end();
      await pause(5);
    }
    assert.equal((await callTo(origin).ended).end, 'end');
  });

  test('until the origin closes: calls under way end first', async () => {
    const { raw, origin } = await provider((socket, _, { anywhere }) =>
      anywhere === 0 ? hello(socket) : setTimeout(hello, 50, socket),
    );
    await callTo(origin).ended;
    const told = callTo(origin, {}, true);
    await waitFor(
      'both',
      () => raw.requests.length,
      (count) => count === 2,
    );
    await origin.close();
    await isClosed(raw, 0);
    assert.equal((await told.ended).body, 'hello');
    await isClosed(raw, 1);
  });
});

describe('a fault is told once, and which it is', () => {
  test('connect_failed: nobody listens, no such name, no answer in time', async () => {
    for (const url of [`http://127.0.0.1:${await findFreePort()}`, 'http://no-such-host.invalid']) {
      assert.equal((await callTo(originAt(url, clock)).ended).end, 'connect_failed', url);
    }
    // Reserved for documentation (RFC 5737): nothing answers, or the system has no way there, which is as good.
    const origin = originAt('http://192.0.2.1', clock, { connectMs: 1_000 });
    const told = callTo(origin);
    clock.timeMs += 1_001;
    origin.trim();
    assert.equal((await told.ended).end, 'connect_failed');
    assert.equal(origin.openCalls, 0);
  });

  const BEFORE_A_REPLY: Readonly<Record<string, (socket: Socket) => unknown>> = {
    'an end': (socket) => socket.end(),
    'a reset': (socket) => socket.resetAndDestroy(),
  };
  for (const [name, act] of Object.entries(BEFORE_A_REPLY)) {
    test(`${name} before the reply: no_reply on a new connection, stale_connection on a kept one`, async () => {
      const { origin } = await provider((socket, request) => (request.includes('/lost') ? act(socket) : hello(socket)));
      assert.equal((await callTo(origin, { path: '/lost' }).ended).end, 'no_reply');
      await callTo(origin).ended;
      assert.equal((await callTo(origin, { path: '/lost' }).ended).end, 'stale_connection');
      assert.equal((await callTo(origin, {}, true).ended).end, 'end');
      assert.equal(origin.openCalls, 0);
    });

    test(`${name} on a kept connection: the same request goes once more, on a new one, and both faults are counted`, async () => {
      let losses = 1;
      const requests: string[] = [];
      const { origin } = await provider((socket, request) => {
        requests.push(request);
        return request.includes('/lost') && losses-- > 0 ? act(socket) : hello(socket);
      });
      const faults: string[] = [];
      const observer = {
        wordings: [],
        onFault: (fault: string) => faults.push(fault),
        onKeyRefused: () => undefined,
      };
      await callTo(origin).ended;
      const body = Buffer.from('{"model":"m"}');
      const told = callTo(origin, { path: '/lost', body }, false, observer);
      assert.deepEqual([(await told.ended).end, told.reply.body, faults], ['end', 'hello', ['stale_connection']]);
      assert.equal(requests.length, 3);
      assert.equal(requests[1], requests[2]);
      losses = 2;
      const lost = callTo(origin, { path: '/lost', body }, false, observer);
      assert.equal((await lost.ended).end, 'no_reply');
      assert.deepEqual(faults, ['stale_connection', 'stale_connection', 'no_reply']);
      assert.equal(origin.openCalls, 0);
    });
  }

  test('bytes that begin no reply: no_reply at once, though the connection stays open', async () => {
    const { raw, origin } = await provider((socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'));
    assert.equal((await callTo(origin).ended).end, 'no_reply');
    await isClosed(raw, 0);
  });

  const UNREADABLE: Readonly<Record<string, string>> = {
    'no HTTP': 'SSH-2.0-OpenSSH_9.6\r\n\r\n',
    'a head that is cut': 'HTTP/1.1 200 OK\r\nx',
    'headers of 100 KB': `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`,
    'two framings': 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  };
  for (const [name, reply] of Object.entries(UNREADABLE)) {
    test(`${name}: no_reply, on a kept connection too, for the provider has done its work`, async () => {
      const { raw, origin } = await provider((socket, request) =>
        request.includes('/bad') ? socket.end(reply, 'latin1') : hello(socket),
      );
      assert.equal((await callTo(origin, { path: '/bad' }).ended).end, 'no_reply');
      await callTo(origin).ended;
      assert.equal((await callTo(origin, { path: '/bad' }).ended).end, 'no_reply');
      await isClosed(raw, 1);
    });
  }

  const CUTS: Readonly<Record<string, (socket: Socket) => unknown>> = {
    'an end within the length': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'),
    'an end within the chunks': (socket) =>
      socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n'),
    'a chunk that is none': (socket) =>
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n'),
    'a reset where only the end of the connection ends the reply': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\nhello');
      setTimeout(() => socket.resetAndDestroy(), 20);
    },
  };
  for (const [name, act] of Object.entries(CUTS)) {
    test(`cut: ${name}; what came before it was handed on`, async () => {
      const { raw, origin } = await provider(act);
      const told = await callTo(origin).ended;
      assert.deepEqual([told.end, told.body], ['cut', 'hello']);
      await waitFor(
        'the connection to close',
        () => raw.sockets[0]?.destroyed || raw.sockets[0]?.readableEnded,
        Boolean,
      );
    });
  }

  for (const guard of [undefined, new EgressGuard({ anyPort: true, allowPrivate: true, allowed: [] })])
    test(`cut: a reset that comes together with the last bytes of a reply without length${guard === undefined ? '' : ', to a guarded address'}`, async () => {
      const raw = await startRawProvider((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
      const origin = originAt(`http://127.0.0.1:${raw.port}`, clock, {}, guard);
      opened.push(raw, origin);
      const told = callTo(origin);
      await told.started;
      told.call.pause();
      const [socket] = raw.sockets;
      const closed = once(socket as Socket, 'close');
      socket?.write('hello');
      socket?.resetAndDestroy();
      await closed;
      told.call.resume();
      const reply = await told.ended;
      assert.deepEqual([reply.end, reply.body], ['cut', 'hello']);
    });

  test('the end of the connection is the end of a reply that declares none', async () => {
    const { origin } = await provider((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'));
    const told = await callTo(origin).ended;
    assert.deepEqual([told.end, told.body], ['end', 'hello']);
  });

  test('first_byte_timeout: neither silence nor half a head is a reply; an interim reply buys time', async () => {
    for (const start of ['', 'HTTP/1.1 200 OK\r\nx: ']) {
      const { raw, origin } = await provider((socket) => socket.write(start), { timeouts: { firstByteMs: 1_000 } });
      const told = callTo(origin);
      await waitFor(
        'the request',
        () => raw.requests.length,
        (count) => count === 1,
      );
      await pause(20);
      clock.timeMs += 1_001;
      origin.trim();
      assert.equal((await told.ended).end, 'first_byte_timeout');
      await isClosed(raw, 0);
    }
    const { raw, origin } = await provider(() => undefined, { timeouts: { firstByteMs: 1_000 } });
    const told = callTo(origin);
    await waitFor(
      'the request',
      () => raw.requests.length,
      (count) => count === 1,
    );
    clock.timeMs += 900;
    raw.sockets[0]?.write('HTTP/1.1 103 Early Hints\r\n\r\n');
    await pause(50);
    clock.timeMs += 900;
    origin.trim();
    assert.equal(told.reply.end, null);
    clock.timeMs += 200;
    origin.trim();
    assert.equal((await told.ended).end, 'first_byte_timeout');
  });

  test('the total timeout ends every call: without a reply, within one, and while its reader has paused it', async () => {
    const { origin } = await provider(
      (socket, request) =>
        request.includes('/mute') ? undefined : socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'),
      { timeouts: { totalMs: 10_000 } },
    );
    const [mute, begun, paused] = [callTo(origin, { path: '/mute' }), callTo(origin), callTo(origin)];
    await Promise.all([begun.started, paused.started]);
    paused.call.pause();
    await pause(20);
    clock.timeMs += 10_000;
    origin.trim();
    assert.deepEqual([mute.reply.end, begun.reply.end, paused.reply.end], [null, null, null]);
    clock.timeMs += 1;
    origin.trim();
    assert.deepEqual([mute.reply.end, begun.reply.end, paused.reply.end], ['total_timeout', 'cut', 'cut']);
    assert.equal(origin.openCalls, 0);
  });

  test('cut: a reply that stalls, but not one that its reader has paused', async () => {
    const { origin } = await provider((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'), {
      timeouts: { idleMs: 1_000 },
    });
    const told = callTo(origin);
    await told.started;
    told.call.pause();
    clock.timeMs += 5_000;
    origin.trim();
    assert.equal(told.reply.end, null);
    told.call.resume();
    clock.timeMs += 1_000;
    origin.trim();
    assert.equal(told.reply.end, null);
    clock.timeMs += 1;
    origin.trim();
    assert.equal((await told.ended).end, 'cut');
  });

  test('idle_timeout: a reply of which nothing comes behind its head', async () => {
    const { origin } = await provider((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n'), {
      timeouts: { idleMs: 1_000 },
    });
    const told = callTo(origin);
    await told.started;
    clock.timeMs += 1_000;
    origin.trim();
    assert.equal(told.reply.end, null);
    clock.timeMs += 1;
    origin.trim();
    assert.equal((await told.ended).end, 'idle_timeout');
  });

  test('a listener that throws loses its call, not the process', async () => {
    const { origin } = await provider(hello);
    for (const [event, fault] of [
      ['onStart', 'cut'],
      ['onData', 'cut'],
    ] as const) {
      const warned = new Promise((resolve) => process.once('warning', resolve));
      const told = callTo(origin);
      told[event] = () => {
        throw new Error('a bug of ours');
      };
      assert.equal((await told.ended).end, fault);
      await warned;
    }
    assert.equal((await callTo(origin).ended).end, 'end');
  });
});

describe('a reply that may refuse the key', () => {
  const COMPLAINT = '{"error":{"message":"API key not valid"}}';
  const answering = (head: string, piece: string) => (socket: Socket) =>
    socket.write(`HTTP/1.1 ${head}\r\n\r\n${piece}`);

  test('is told as such, whole or cut, and its connection is kept where it was whole', async () => {
    const { raw, origin } = await provider((socket, request) => {
      if (request.includes('/whole')) answering(`400 x\r\ncontent-length: ${COMPLAINT.length}`, COMPLAINT)(socket);
      else socket.end(`HTTP/1.1 403 x\r\ncontent-length: 999\r\n\r\n${COMPLAINT.replace('API', 'Your API')}`);
    });
    for (const path of ['/whole', '/whole', '/cut']) {
      const told = await callTo(origin, { path }).ended;
      assert.deepEqual([told.end, told.status, told.body], ['key_refused', null, '']);
    }
    assert.deepEqual([origin.openCalls, raw.sockets.length], [0, 1]);
  });

  test('is told as any other where what has come of it says nothing, and goes on when the rest comes late', async () => {
    const { raw, origin } = await provider(answering('400 x\r\ncontent-length: 9', 'hello'));
    const told = callTo(origin);
    await told.started;
    assert.deepEqual([told.reply.status, told.reply.body, told.reply.end], [400, 'hello', null]);
    raw.sockets[0]?.write('late');
    await told.ended;
    assert.deepEqual([told.reply.body, told.reply.end], ['hellolate', 'end']);
  });

  test('and is given up meanwhile: nothing is told', async () => {
    const { raw, origin } = await provider(answering('403 x\r\ncontent-length: 9', 'hello'));
    const told = callTo(origin);
    await waitFor('the request', () => raw.requests.length, Boolean);
    await pause(20);
    told.call.abort();
    await isClosed(raw, 0);
    assert.deepEqual([told.reply.status, told.reply.end, origin.openCalls], [null, null, 0]);
  });
});

describe('a call that is given up', () => {
  test('before it is connected, before it is sent, before its reply, within its reply: the provider sees it, the listener hears nothing', async () => {
    const { raw, origin } = await provider((socket, request) =>
      request.includes('/mute')
        ? undefined
        : socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${request.includes('/long') ? 99 : 5}\r\n\r\nhello`),
    );
    const told = [callTo(origin)];
    told[0]?.call.abort();
    await callTo(origin).ended;
    told.push(callTo(origin));
    told[1]?.call.abort();
    told.push(callTo(origin, { path: '/mute' }), callTo(origin, { path: '/long' }));
    await told[3]?.started;
    await waitFor(
      'all requests',
      () => raw.requests.length,
      (count) => count === 3,
    );
    told[2]?.call.abort();
    told[3]?.call.abort();
    told[3]?.call.abort();
    for (const call of [told[0], told[3]]) {
      call?.call.pause();
      call?.call.resume();
    }
    await waitFor(
      'all connections to close',
      () => raw.sockets.every((socket) => socket.readableEnded || socket.destroyed),
      Boolean,
    );
    assert.deepEqual(
      told.map(({ reply }) => reply.end),
      [null, null, null, null],
    );
    assert.deepEqual([origin.openCalls, told[3]?.reply.body], [0, 'hello']);
  });

  test('at its first word: nothing more is told', async () => {
    const { origin } = await provider(hello);
    const told = callTo(origin);
    told.onStart = () => told.call.abort();
    await told.started;
    await pause(20);
    assert.deepEqual([told.reply.body, told.reply.end, origin.openCalls], ['', null, 0]);
  });

  test('unheard to its end, its connection is kept; a long one is cut', async () => {
    const { raw, origin } = await provider((socket, request) => {
      const bytes = request.includes('/long') ? 200_000 : 5_000;
      socket.write(`HTTP/1.1 500 x\r\ncontent-length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`);
    });
    for (const [path, connections] of [
      ['/', 1],
      ['/long', 2],
    ] as const) {
      const told = callTo(origin, { path });
      told.onStart = () => told.call.discard();
      await told.started;
      await waitFor(
        'its end',
        () => origin.openCalls,
        (open) => open === 0,
      );
      assert.deepEqual([told.reply.body, told.reply.end], ['', null]);
      await callTo(origin).ended;
      assert.equal(raw.sockets.length, connections);
    }
  });

  test('unheard, it has two seconds to end, whatever it sends meanwhile', async () => {
    const { raw, origin } = await provider((socket) =>
      socket.write('HTTP/1.1 503 x\r\ncontent-length: 9\r\n\r\nhello'),
    );
    const told = callTo(origin);
    told.onStart = () => told.call.discard();
    await told.started;
    clock.timeMs += 2_000;
    raw.sockets[0]?.write('x');
    origin.trim();
    await pause(20);
    assert.equal(origin.openCalls, 1);
    clock.timeMs += 1;
    origin.trim();
    assert.deepEqual([origin.openCalls, told.reply.end], [0, null]);
    await isClosed(raw, 0);
  });

  test('unheard, it is cut at once where its request is not wholly written', async () => {
    const { raw, origin } = await provider(() => undefined);
    const told = callTo(origin, { body: Buffer.alloc(50_000_000) });
    told.onStart = () => told.call.discard();
    await waitFor('the connection', () => raw.sockets.length, Boolean);
    raw.sockets[0]?.pause().write('HTTP/1.1 503 x\r\ncontent-length: 9\r\n\r\nhello');
    await told.started;
    await waitFor(
      'its end',
      () => origin.openCalls,
      (open) => open === 0,
    );
    assert.equal(told.reply.end, null);
  });
});

describe('backpressure', () => {
  for (const framing of ['content-length: 20000000', 'transfer-encoding: chunked']) {
    test(`a paused reader is sent no more than what is under way (${framing})`, async () => {
      const { origin } = await provider((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
        const piece = 'y'.repeat(100_000);
        for (let count = 0; count < 200; count++)
          socket.write(framing.includes('chunked') ? `186a0\r\n${piece}\r\n` : piece);
        if (framing.includes('chunked')) socket.write('0\r\n\r\n');
      });
      const told = callTo(origin);
      told.onStart = () => told.call.pause();
      await told.started;
      await pause(100);
      const pausedBytes = told.reply.body.length;
      assert.ok(pausedBytes <= 65_536, `${pausedBytes} bytes came while paused`);
      await pause(50);
      assert.equal(told.reply.body.length, pausedBytes);
      told.call.resume();
      const { end, body } = await told.ended;
      assert.deepEqual([end, body.length], ['end', 20_000_000]);
      // Paused once, it is a connection like any other.
      const again = callTo(origin);
      assert.equal((await again.ended).body.length, 20_000_000);
    });
  }
});

/**
 * Answers whatever each read brings, in its own thread; asked by a message, it tells how many connections there were.
 */
async function startInstantTlsProvider(
  certificate: TlsOptions,
): Promise<{ readonly port: number; readonly worker: Worker }> {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    let connections = 0;
    const server = require('node:tls').createServer(workerData, (socket) => {
      connections += 1;
      socket.setNoDelay(true).on('error', () => undefined);
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\\r\\ncontent-length: 5\\r\\n\\r\\nhello'));
    });
    parentPort.on('message', () => parentPort.postMessage(connections));
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(source, { eval: true, workerData: certificate });
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  return { port, worker };
}

const EVIL = 'HTTP/1.1 200 OK\r\nx-id: evil\r\ncontent-length: 4\r\n\r\nevil';

describe('many calls at once', () => {
  test('each gets its own reply, however framed and cut, whatever became of the others', async () => {
    const random = seededRandom(20_261_120);
    const { origin } = await provider((socket, request) => {
      const id = /id=(\d+)/.exec(request)?.[1] as string;
      const body = `${id},`.repeat(1 + Math.floor(random() ** 3 * 3_000));
      const kind = Math.floor(random() * 6);
      const head = `HTTP/1.1 200 OK\r\nx-id: ${id}\r\n`;
      const chunks = () =>
        splitBytes(Buffer.from(body), { kind: 'random', seed: Number(id), bytesMax: 900 }).map(
          (chunk) => `${chunk.length.toString(16)}\r\n${chunk.toString()}\r\n`,
        );
      const replies = [
        `${head}content-length: ${body.length}\r\n\r\n${body}`,
        `${head}transfer-encoding: chunked\r\n\r\n${chunks().join('')}0\r\n\r\n`,
        `${head}connection: close\r\n\r\n${body}`,
        `${head}content-length: ${body.length}\r\n\r\n${body}${EVIL}`,
        `${head}transfer-encoding: chunked\r\n\r\n${chunks().join('')}x`,
        `${head}content-length: ${body.length + 9}\r\n\r\n${body}`,
      ];
      void send(socket, Buffer.from(replies[kind] as string), Number(id), kind === 2 || kind === 5);
    });
    let ended = 0;
    const loop = async (start: number): Promise<void> => {
      for (let id = start; id < start + 40; id++) {
        const told = callTo(origin, { path: `/?id=${id}` });
        if (id % 7 === 0) {
          told.onData = () => told.call.abort();
          await Promise.race([told.ended, pause(5)]);
          told.call.abort();
          continue;
        }
        const reply = await told.ended;
        if (reply.end === 'stale_connection') continue;
        assert.ok(reply.end === 'end' || reply.end === 'cut', reply.end ?? '');
        assert.ok(reply.headers.includes(String(id)), `${id} got ${reply.headers.join()}`);
        assert.equal(reply.body.replaceAll(`${id},`, ''), '');
        ended += 1;
      }
    };
    await Promise.all(Array.from({ length: 25 }, (_, index) => loop(1_000 + index * 100)));
    assert.ok(ended > 500, `${ended} ended`);
    await waitFor(
      'all to end',
      () => origin.openCalls,
      (open) => open === 0,
    );
  });
});

/**
 * In pieces, but for a stray reply: it comes with the last bytes of its forerunner. One that comes later is in time for
 * the next request, and nobody can tell.
 */
async function send(socket: Socket, bytes: Buffer, seed: number, closes: boolean): Promise<void> {
  const last = bytes.length - (bytes.subarray(-EVIL.length).equals(Buffer.from(EVIL)) ? EVIL.length + 1 : 0);
  for (const piece of [
    ...splitBytes(bytes.subarray(0, last), { kind: 'random', seed, bytesMax: 4_000 }),
    bytes.subarray(last),
  ]) {
    if (socket.destroyed) return;
    socket.write(piece);
    if (piece.length % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (closes) socket.end();
}

describe('TLS', () => {
  const file = (name: string) => readFileSync(new URL(`../support/tls/localhost-${name}.pem`, import.meta.url), 'utf8');
  const certificate = { key: file('key'), cert: file('certificate'), ALPNProtocols: ['h2', 'http/1.1'] };
  const trust = (certificates: readonly string[]) =>
    setDefaultCACertificates([...getCACertificates('bundled'), ...certificates]);

  async function tlsProvider(answer: Answer, options: object, host = 'localhost') {
    const raw = await startRawProvider(answer, { ...certificate, ...options });
    const origin = originAt(`https://${host}:${raw.port}`, clock);
    opened.push(raw, origin);
    return { raw, origin };
  }

  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${maxVersion}: calls, kept connections, long bodies both ways, the name asked for, a session resumed`, async () => {
      trust([certificate.cert]);
      const long = 'z'.repeat(1_000_000);
      const { raw, origin } = await tlsProvider(
        (socket) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${long.length}\r\n\r\n${long}`),
        { maxVersion },
      );
      const memory = Buffer.alloc(1_000_000, 'b');
      const pieces = [memory.subarray(0, 10), memory.subarray(10)];
      for (const onNewConnection of [false, false, true]) {
        const told = await callTo(origin, { body: { pieces, pooled: null } }, onNewConnection).ended;
        assert.deepEqual([told.end, told.body === long], ['end', true]);
        assert.equal(raw.requests.at(-1)?.split('\r\n\r\n')[1], 'b'.repeat(1_000_000));
      }
      const sockets = raw.sockets as readonly (TLSSocket & { servername: string })[];
      assert.equal(sockets[0]?.servername, 'localhost');
      assert.deepEqual(
        sockets.map((socket) => [socket.alpnProtocol, socket.getProtocol(), socket.isSessionReused()]),
        [
          ['http/1.1', maxVersion, false],
          ['http/1.1', maxVersion, true],
        ],
      );
    });

    test(`${maxVersion}: another's certificate is refused, however often it is tried`, async () => {
      trust([certificate.cert]);
      const { raw, origin } = await tlsProvider(hello, { maxVersion }, '127.0.0.1');
      for (let attempt = 0; attempt < 3; attempt++) assert.equal((await callTo(origin).ended).end, 'connect_failed');
      assert.deepEqual(raw.requests, []);
    });

    test(`${maxVersion}: a certificate that nobody vouches for is refused`, async () => {
      trust([]);
      const { raw, origin } = await tlsProvider(hello, { maxVersion });
      for (let attempt = 0; attempt < 3; attempt++) assert.equal((await callTo(origin).ended).end, 'connect_failed');
      assert.deepEqual(raw.requests, []);
    });

    test(`${maxVersion}: pauses, cuts and bytes nobody asked for are what they are without`, async () => {
      trust([certificate.cert]);
      const { raw, origin } = await tlsProvider(
        (socket, request) => {
          if (request.includes('/long'))
            socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n${'x'.repeat(5_000_000)}`);
          else if (request.includes('/cut')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello');
          else
            socket.write(
              'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil',
            );
        },
        { maxVersion },
      );
      const told = callTo(origin, { path: '/long' });
      told.onStart = () => told.call.pause();
      await told.started;
      await pause(100);
      assert.ok(told.reply.body.length < 500_000, `${told.reply.body.length} bytes came while paused`);
      told.call.resume();
      assert.equal((await told.ended).body.length, 5_000_000);
      assert.deepEqual((({ end, body }) => [end, body])(await callTo(origin, { path: '/cut' }).ended), [
        'cut',
        'hello',
      ]);
      assert.equal((await callTo(origin).ended).body, 'hello');
      assert.equal((await callTo(origin).ended).body, 'hello');
      assert.equal(raw.sockets.length, 3);
    });
  }

  test('a provider that answers at once is called over a handful of connections', async () => {
    trust([certificate.cert]);
    // In a thread of its own: the answer is there before this one has ended the tick that sent the request.
    const { port, worker } = await startInstantTlsProvider(certificate);
    const origin = originAt(`https://localhost:${port}`, clock);
    const loop = async (): Promise<void> => {
      for (let call = 0; call < 50; call++)
        assert.equal((await callTo(origin, { body: Buffer.alloc(1_000, 'b') }).ended).body, 'hello');
    };
    await Promise.all([loop(), loop(), loop(), loop()]);
    const counted = new Promise<number>((resolve) => worker.once('message', resolve));
    worker.postMessage('connections?');
    const connections = await counted;
    await origin.close();
    await worker.terminate();
    assert.ok(connections <= 8, `${connections} connections for 200 calls`);
  });

  test('a plain server where TLS is spoken, and TLS where a plain one is: connect_failed and no_reply', async () => {
    const { raw } = await provider((socket) => socket.destroy());
    const speaksTls = originAt(`https://localhost:${raw.port}`, clock);
    const told = callTo(speaksTls);
    await waitFor(
      'the hello',
      () => raw.sockets[0]?.bytesRead ?? 0,
      (bytes) => bytes > 0,
    );
    raw.sockets[0]?.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    assert.equal((await told.ended).end, 'connect_failed');
    const { raw: tls } = await tlsProvider(hello, {});
    assert.equal((await callTo(originAt(`http://localhost:${tls.port}`, clock)).ended).end, 'no_reply');
  });
});

test('a connection is lent for ten minutes at most, however often it is used', async () => {
  const held = new HeldClock();
  const raw = await startRawProvider(hello);
  const origin = originAt(`http://127.0.0.1:${raw.port}`, held);
  opened.push(raw, origin);
  for (let seconds = 0; seconds < 600; seconds += 3) {
    assert.equal((await callTo(origin).ended).end, 'end');
    held.timeMs += 3_000;
  }
  assert.equal(raw.sockets.length, 1);
  assert.equal((await callTo(origin).ended).end, 'end');
  assert.equal(raw.sockets.length, 2);
});
