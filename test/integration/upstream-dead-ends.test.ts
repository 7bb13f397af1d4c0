// Proxies, providers and token endpoints that accept a connection and then lead nowhere: every call ends within its
// time limit, and so does every socket that was opened for it, at whatever step it stood.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import type { Provider, RequestSettings } from '../../src/domain/models/provider.ts';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { postRequest } from '../../src/platform/egress/post-request.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { UpstreamCall } from '../../src/upstream/call.ts';
import { providerCredential } from '../../src/upstream/credential.ts';
import { type ProviderCallOptions, ProviderCalls } from '../../src/upstream/providers.ts';
import { NO_PROXIES } from '../../src/upstream/proxy-of.ts';
import type { FormAnswer } from '../../src/upstream/tokens/obtain-token.ts';
import { formPoster } from '../../src/upstream/tokens/post-form.ts';
import { verifyProvider } from '../../src/upstream/verify-provider.ts';
import { HeldClock } from '../support/upstream-calls.ts';
import { pause, waitFor } from '../support/waiting.ts';

const CERTIFICATE = fileURLToPath(new URL('../support/tls/localhost-certificate.pem', import.meta.url));
const KEY = fileURLToPath(new URL('../support/tls/localhost-key.pem', import.meta.url));
const pem = { cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) };
/** Nobody is asked for it: every proxy here leads nowhere. */
const BEHIND = 'https://provider.test';

interface DeadEnd {
  readonly port: number;
  /** Connections that the other side has not closed. */
  readonly open: () => number;
  /** How many there ever were. */
  readonly accepted: () => number;
  close(): void;
}

async function startDeadEnd(act: (socket: Socket) => void, tlsProtocol?: 'h2'): Promise<DeadEnd> {
  const open = new Set<Socket>();
  let accepted = 0;
  const accept = (socket: Socket): void => {
    accepted += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    act(socket);
    socket.resume();
  };
  const server: Server =
    tlsProtocol === undefined
      ? createServer(accept)
      : createTlsServer({ ...pem, ALPNProtocols: [tlsProtocol] }, accept);
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = {
    port: (server.address() as AddressInfo).port,
    open: () => open.size,
    accepted: () => accepted,
    close: () => {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
  ends.push(end);
  return end;
}

const ends: DeadEnd[] = [];
after(() => {
  for (const end of ends) end.close();
});

/** After the first bytes of the other side. */
const onceAsked = (answer: (socket: Socket, asked: Buffer) => void) => (socket: Socket) =>
  void socket.once('data', (asked) => answer(socket, asked));

/** One byte, then another, without end. */
function drip(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++] ?? 'x'), 5);
  socket.on('close', () => clearInterval(timer));
}

interface Case {
  readonly name: string;
  /** Of the provider; default: https. */
  readonly provider?: 'http' | 'https';
  readonly scheme: 'http' | 'socks5' | 'direct';
  readonly act: (socket: Socket) => void;
  readonly settings?: Partial<RequestSettings>;
  readonly options?: ProviderCallOptions;
  readonly tls?: 'h2';
  /** The other side ends it, so that no time passes. */
  readonly isRefused?: true;
  /** A request has gone out, and others may wait behind it. */
  readonly isUp?: true;
}

const silent = (): void => undefined;
const CONNECTED = 'HTTP/1.1 200 Connected\r\n\r\n';

const CASES: readonly Case[] = [
  { name: 'a proxy that never answers CONNECT', scheme: 'http', act: silent },
  { name: 'the same over HTTP/2', scheme: 'http', act: silent, settings: { http: 2 } },
  {
    name: 'a proxy that answers CONNECT byte by byte',
    scheme: 'http',
    act: onceAsked((socket) => drip(socket, 'HTTP/1.1 200 Connected\r\nx: ')),
  },
  {
    name: 'the same over HTTP/2 ',
    scheme: 'http',
    act: onceAsked((socket) => drip(socket, 'HTTP/1.1 200 Connected\r\nx: ')),
    settings: { http: 2 },
  },
  {
    name: 'a proxy that says again and again that it goes on',
    scheme: 'http',
    act: onceAsked((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
      socket.on('close', () => clearInterval(timer));
    }),
  },
  {
    name: 'a proxy behind which no TLS begins',
    scheme: 'http',
    act: onceAsked((socket) => socket.write(CONNECTED)),
  },
  {
    name: 'a proxy behind which no TLS begins, over HTTP/2',
    scheme: 'http',
    act: onceAsked((socket) => socket.write(CONNECTED)),
    settings: { http: 2 },
  },
  {
    name: 'a proxy that wants a password',
    scheme: 'http',
    act: onceAsked((socket) => {
      socket.write('HTTP/1.1 407 Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n');
    }),
    isRefused: true,
  },
  {
    name: 'a proxy that cannot go on, with a body that does not end',
    scheme: 'http',
    act: onceAsked((socket) => socket.write('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 99999\r\n\r\nno')),
    isRefused: true,
  },
  {
    name: 'a proxy that hangs up on CONNECT',
    scheme: 'http',
    act: onceAsked((socket) => socket.destroy()),
    isRefused: true,
  },
  {
    name: 'a proxy that speaks no HTTP',
    scheme: 'http',
    act: onceAsked((socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n')),
    isRefused: true,
  },
  ...[
    ['a body', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'],
    ['chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
    ['a banner', `${CONNECTED}SSH-2.0-OpenSSH_9.2\r\n`],
    ['a reply nobody asked for', `${CONNECTED}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno`],
  ].map(
    ([what = '', answer = '']): Case => ({
      name: `a proxy that says ${what} behind its answer to CONNECT`,
      provider: 'http',
      scheme: 'http',
      act: onceAsked((socket) => socket.write(answer)),
      isRefused: true,
    }),
  ),
  { name: 'a SOCKS proxy that does not greet', scheme: 'socks5', act: silent },
  {
    name: 'a SOCKS proxy that does not connect',
    scheme: 'socks5',
    act: onceAsked((socket) => socket.write(Buffer.from([5, 0]))),
  },
  {
    name: 'a SOCKS proxy that greets half',
    scheme: 'socks5',
    act: onceAsked((socket) => socket.write(Buffer.from([5]))),
  },
  {
    name: 'a SOCKS proxy behind which no TLS begins',
    scheme: 'socks5',
    act: onceAsked((socket) => {
      socket.once('data', () => socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])));
      socket.write(Buffer.from([5, 0]));
    }),
  },
  {
    name: 'a SOCKS proxy that refuses to connect',
    scheme: 'socks5',
    act: onceAsked((socket) => {
      socket.once('data', () => socket.write(Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])));
      socket.write(Buffer.from([5, 0]));
    }),
    isRefused: true,
  },
  { name: 'a provider that begins no TLS', scheme: 'direct', act: silent },
  { name: 'the same, with undici', scheme: 'direct', act: silent, options: { client: 'undici' } },
  { name: 'the same, with HTTP/2', scheme: 'direct', act: silent, settings: { http: 2 } },
  {
    name: 'a provider that never sends its HTTP/2 settings',
    scheme: 'direct',
    act: silent,
    settings: { http: 2 },
    tls: 'h2',
    isUp: true,
  },
];

function providerOf({ provider = 'https', scheme, settings }: Case, { port }: DeadEnd): Provider {
  const proxy = `${scheme}://127.0.0.1:${port}`;
  return {
    id: 'p',
    baseUrl: scheme === 'direct' ? `https://localhost:${port}` : `${provider}://provider.test`,
    apiKey: 'sk-1',
    auth: 'bearer',
    onDisconnect: 'cancel',
    timeouts: { connectMs: 5_000, firstByteMs: 10_000 },
    requests: {
      ...readRequestSettings({}),
      tls: { ca: CERTIFICATE },
      ...(scheme === 'direct' ? {} : { proxy }),
      ...settings,
    },
  };
}

function callProvider(
  calls: ProviderCalls,
  to: Provider,
): { readonly call: UpstreamCall; readonly end: Promise<string> } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const call = calls.call(
    to,
    {
      method: 'POST',
      api: 'chat_completions',
      path: '/v1/chat/completions',
      query: '',
      providerModel: 'm',
      streamed: false,
      credential: providerCredential(to),
      headers: [],
      body: Buffer.from('{}'),
    },
    {
      onReplyStart: (status) => resolve(String(status)),
      onReplyData: () => undefined,
      onReplyPause: () => undefined,
      onReplyEnd: () => resolve('end'),
      onKeyRefused: () => resolve('key refused'),
      onReplyFault: (fault) => resolve(fault),
    },
  );
  return { call, end: promise };
}

/** For what never comes. */
const WITHIN_MS = 500;
/** For what does, however busy the machine is. */
const COMES_WITHIN_MS = 20_000;

/** For one call: where a connection is lost before its request could go out, another one may be tried. */
const CONNECTIONS_MAX = 2;

/** Not by one of undici's or the system's own limits, which are minutes. */
const allClosed = (end: DeadEnd) => waitFor('every socket to be closed', end.open, (open) => open === 0, 10_000);

describe('a call that leads nowhere ends, and so does its socket:', () => {
  for (const one of CASES) {
    test(one.name, async () => {
      const end = await startDeadEnd(one.act, one.tls);
      const clock = new HeldClock();
      const calls = new ProviderCalls(new MetricsRegistry(), clock, one.options ?? {});
      const to = providerOf(one, end);
      const made = Array.from({ length: 3 }, () => callProvider(calls, to));
      if (one.isRefused === undefined) {
        await waitFor('a connection', end.accepted, (accepted) => accepted > 0);
        // Whatever there is to say is said meanwhile, and none of it is a sign of life.
        await pause(60);
        for (const waitedMs of [3_000, 3_000, ...(one.isUp === undefined ? [] : [6_000])]) {
          calls.trim();
          clock.timeMs += waitedMs;
        }
        calls.trim();
      }
      const [first, ...others] = await Promise.all(made.map((each) => each.end));
      assert.equal(first, one.isUp === undefined ? 'connect_failed' : 'first_byte_timeout');
      for (const other of others) assert.equal(other, 'connect_failed');
      assert.ok(end.accepted() <= CONNECTIONS_MAX * made.length, `${end.accepted()} connections`);
      await allClosed(end);
      await calls.close();
    });

    test(`${one.name}, and the call is given up before`, async () => {
      const end = await startDeadEnd(one.act, one.tls);
      const calls = new ProviderCalls(new MetricsRegistry(), new HeldClock(), one.options ?? {});
      const { call } = callProvider(calls, providerOf(one, end));
      await waitFor('a connection', end.accepted, (accepted) => accepted > 0);
      call.abort();
      await calls.close();
      await allClosed(end);
    });
  }
});

describe('a call whose name is never looked up ends:', () => {
  const proxy = 'http://proxy.test:3128';
  const TRANSPORTS: readonly (readonly [string, Partial<RequestSettings>, ProviderCallOptions])[] = [
    ['own client', {}, {}],
    ['undici', {}, { client: 'undici' }],
    ['HTTP/2', { http: 2 }, {}],
    ['a proxy', { proxy }, {}],
    ['a proxy, HTTP/2', { proxy, http: 2 }, {}],
    ['a SOCKS proxy', { proxy: 'socks5://proxy.test:1080' }, {}],
  ];
  for (const [name, settings, options] of TRANSPORTS) {
    test(name, async () => {
      const clock = new HeldClock();
      const looked: string[] = [];
      const resolve = (host: string): void => void looked.push(host);
      const calls = new ProviderCalls(new MetricsRegistry(), clock, { ...options, resolve });
      const { requests, ...provider } = providerOf({ name, scheme: 'direct', act: silent }, { port: 9 } as DeadEnd);
      const to = { ...provider, baseUrl: BEHIND, requests: { ...readRequestSettings({}), ...requests, ...settings } };
      const { end } = callProvider(calls, to);
      await waitFor(
        'the look-up',
        () => looked.length,
        (count) => count > 0,
      );
      calls.trim();
      clock.timeMs += 6_000;
      calls.trim();
      assert.equal(await end, 'connect_failed');
      assert.deepEqual(looked, [settings.proxy === undefined ? 'provider.test' : 'proxy.test']);
      await calls.close();
    });
  }
});

describe('a verification that leads nowhere ends, and so does its socket:', { concurrency: true }, () => {
  for (const one of CASES.filter(({ scheme }) => scheme !== 'direct')) {
    test(one.name, async () => {
      const end = await startDeadEnd(one.act);
      const calls = new ProviderCalls(new MetricsRegistry(), new HeldClock());
      const { result } = await verifyProvider(providerOf(one, end), calls);
      assert.equal(result, 'unreachable');
      await allClosed(end);
      await calls.close();
    });
  }
});

describe('a POST to a customer that leads nowhere ends, and so does its socket:', { concurrency: true }, () => {
  const CUSTOMERS: readonly (readonly [string, string, (socket: Socket) => void])[] = [
    ['nobody answers', 'http', silent],
    ['no TLS begins', 'https', silent],
    ['a head byte by byte', 'http', onceAsked((socket) => drip(socket, 'HTTP/1.1 200 OK\r\nx: '))],
    ['a body without end', 'http', onceAsked((socket) => drip(socket, 'HTTP/1.1 200 OK\r\n\r\n'))],
    ['interim replies without end', 'http', onceAsked((socket) => drip(socket, 'HTTP/1.1 102 P\r\n\r\n'.repeat(99)))],
  ];
  const guard = new EgressGuard({ anyPort: true, allowPrivate: true, allowed: [] });
  for (const [name, scheme, act] of CUSTOMERS) {
    test(name, async () => {
      const end = await startDeadEnd(act);
      const asked = { headers: {}, body: Buffer.from('{}'), guard, answerBytesMax: 1_000_000 };
      const url = `${scheme}://127.0.0.1:${end.port}/`;
      await assert.rejects(postRequest({ ...asked, url, signal: AbortSignal.timeout(WITHIN_MS) }));
      await allClosed(end);
    });
  }
});

/** Asks for a token, and waits until nothing of that is open. */
async function ask(end: DeadEnd, scheme: Case['scheme'], withinMs = COMES_WITHIN_MS): Promise<FormAnswer> {
  const proxy = `${scheme}://127.0.0.1:${end.port}`;
  const post = formPoster({
    proxy: scheme === 'direct' ? 'none' : proxy,
    proxies: NO_PROXIES,
    tls: { ca: [pem.cert.toString()] },
    withinMs,
  });
  const answer = await post(scheme === 'direct' ? `http://127.0.0.1:${end.port}/token` : `${BEHIND}/token`, { a: 'b' });
  await allClosed(end);
  return answer;
}

test('a token over plain http, which is on this machine, is asked for by no proxy, which would read its secret', async () => {
  const end = await startDeadEnd(onceAsked((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')));
  const proxy = await startDeadEnd((socket) => socket.destroy());
  for (const settings of [
    { proxy: `http://127.0.0.1:${proxy.port}`, proxies: NO_PROXIES },
    { proxy: undefined, proxies: { ...NO_PROXIES, http: `http://127.0.0.1:${proxy.port}` } },
  ]) {
    const answer = await formPoster({ ...settings, tls: {} })(`http://127.0.0.1:${end.port}/token`, { a: 'b' });
    assert.deepEqual(answer, { status: 200, body: '{}' });
  }
  await allClosed(end);
});

describe('a token that cannot be had ends within its time, and so does its socket:', { concurrency: true }, () => {
  for (const one of CASES.filter(({ scheme, settings }) => scheme !== 'direct' && settings === undefined)) {
    test(one.name, async () => {
      assert.equal((await ask(await startDeadEnd(one.act), one.scheme, WITHIN_MS)).status, null);
    });
  }

  const REPLIES: readonly (readonly [name: string, reply: string | null, reason: RegExp | null])[] = [
    ['an endpoint that never answers', null, /did not answer within/],
    ['one that stalls after its head', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n', /did not answer within/],
    ['one that stalls in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"access', /did not answer within/],
    ['one that says too much', `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(70_000)}`, /more than a token/],
    [
      'one that sends 32 MB',
      `HTTP/1.1 200 OK\r\ncontent-length: 33554432\r\n\r\n${'x'.repeat(33_554_432)}`,
      /more than/,
    ],
    ['one that has a head without end', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(100_000)}`, /./],
    ['one that sends more than it says', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}{}{}{}', null],
    ['one that is none of HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', /./],
  ];
  for (const [name, reply, reason] of REPLIES) {
    test(name, async () => {
      const answer = await ask(
        await startDeadEnd(onceAsked((socket) => void (reply === null || socket.write(reply)))),
        'direct',
        reason?.source.startsWith('did not') === true ? WITHIN_MS : COMES_WITHIN_MS,
      );
      if (reason === null) assert.deepEqual(answer, { status: 200, body: '{}' });
      else assert.match(answer.status === null ? answer.reason : `answered ${answer.status}`, reason);
    });
  }

  test('one that ends before what it says', async () => {
    const end = await startDeadEnd(
      onceAsked((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}')),
    );
    assert.equal((await ask(end, 'direct')).status, null);
  });

  test('one that sends elsewhere, where nobody goes', async () => {
    const elsewhere = await startDeadEnd(silent);
    const head = `HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:${elsewhere.port}/\r\n`;
    const end = await startDeadEnd(onceAsked((socket) => socket.write(`${head}content-length: 0\r\n\r\n`)));
    assert.deepEqual(await ask(end, 'direct'), { status: 307, body: '' });
    assert.equal(elsewhere.accepted(), 0);
  });
});
