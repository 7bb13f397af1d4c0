// Calls to providers over each transport: our own HTTP/1.1 client and undici, directly and through proxies, over
// HTTP/1.1 and HTTP/2, with certificates of our own. What a call tells is the same over all of them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants, createSecureServer, type Http2SecureServer } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import type { Provider, RequestSettings } from '../../src/domain/models/provider.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import type { UpstreamCall } from '../../src/upstream/call.ts';
import { providerCredential } from '../../src/upstream/credential.ts';
import { type ProviderCallOptions, ProviderCalls } from '../../src/upstream/providers.ts';
import { NO_PROXIES } from '../../src/upstream/proxy-of.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';
import { findFreePort } from '../support/free-port.ts';
import { startRawProvider } from '../support/raw-provider.ts';
import { HeldClock } from '../support/upstream-calls.ts';
import { pause, waitFor } from '../support/waiting.ts';

const CERTIFICATE = fileURLToPath(new URL('../support/tls/localhost-certificate.pem', import.meta.url));
const KEY = fileURLToPath(new URL('../support/tls/localhost-key.pem', import.meta.url));
const pem = { cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) };

/** What the provider saw of a request, which is its reply. */
interface Seen {
  readonly method: string;
  readonly path: string;
  readonly version: string;
  readonly authorization: string | undefined;
  readonly body: string;
  /** The name in the client's certificate. */
  readonly certificate: string | null;
}

let provider: Http2SecureServer;
let url: string;
const sockets = new Set<Socket>();
let connections = 0;
/** How many requests have asked for each act. */
const asked = new Map<string, number>();
/** What a provider over HTTP/1.1 sends before it ends the connection: nothing, or bytes of a reply. */
const LAST_WORDS: Readonly<Record<string, string>> = {
  goodbye: '',
  'part-of-a-head': 'HTTP/1.1 20',
  'one-byte': 'H',
  'interim-reply': 'HTTP/1.1 100 Continue\r\n\r\n',
  'no-http': 'SSH-2.0-OpenSSH_9.2\r\n',
};

const REPLY_WITHOUT_LENGTH = 'HTTP/1.1 200 OK\r\n\r\nhalf of a reply';
/** Answers by the path: `/v1/chat/completions?do=...`. */
function answer(request: IncomingMessage, body: string, respond: IncomingMessage['socket'], reply: Reply): void {
  const seen: Seen = {
    method: request.method ?? '',
    path: request.url ?? '',
    version: request.httpVersion,
    authorization: request.headers.authorization,
    body,
    certificate: String((respond as TLSSocket).getPeerCertificate?.().subject?.CN),
  };
  const act = new URL(request.url ?? '/', 'http://x').searchParams.get('do');
  if (act !== null) asked.set(act, (asked.get(act) ?? 0) + 1);
  if (act === 'silence') return;
  const lastWords = LAST_WORDS[act ?? ''];
  if (lastWords !== undefined) {
    respond.end(lastWords);
    return;
  }
  if (act === 'hang-up') {
    reply.cut();
    return;
  }
  if (act === 'interim') reply.interim();
  reply.head(act === 'long-head' ? LONG_HEAD : {});
  if (act === 'trailers') reply.trailers();
  if (act === 'cut') {
    reply.write('half of a reply');
    setTimeout(() => reply.cut(), 20);
    return;
  }
  if (act?.startsWith('reset-')) {
    reply.write('half of a reply');
    setTimeout(() => reply.reset(Number(act.slice('reset-'.length))), 20);
    return;
  }
  if (act === 'head-alone') {
    reply.flush();
    return;
  }
  if (act === 'half') {
    reply.write('half of a reply');
    return;
  }
  if (act === 'pieces') {
    for (let index = 0; index < 200; index += 1) reply.write(`piece ${index} ${'x'.repeat(4_000)};`);
    reply.end('');
    return;
  }
  reply.end(JSON.stringify(seen));
}

/** 12 KB, more than nginx takes by default. Over HTTP/2 Node takes 128 lines at most. */
const LONG_HEAD = Object.fromEntries(
  Array.from({ length: 110 }, (_, index) => [`X-RateLimit-Number-${index}`, 'y'.repeat(90)]),
);

interface Reply {
  /** Replies before the reply, which nobody has asked for. */
  interim(): void;
  head(more: Readonly<Record<string, string>>): void;
  trailers(): void;
  flush(): void;
  write(text: string): void;
  end(text: string): void;
  cut(): void;
  /** Of HTTP/2. */
  reset(code: number): void;
}

interface Told {
  readonly status: number | null;
  readonly headers: readonly string[];
  readonly body: string;
  readonly end: string;
}

/** A call and what it told; `onCall` may do something to it. */
function callProvider(
  calls: ProviderCalls,
  to: Provider,
  act: string,
  onCall: (call: UpstreamCall) => void = () => undefined,
  onData: () => void = () => undefined,
): { readonly call: UpstreamCall; readonly told: Promise<Told> } {
  const told = Promise.withResolvers<Told>();
  let status: number | null = null;
  let headers: readonly string[] = [];
  let body = '';
  const end = (how: string): void => told.resolve({ status, headers, body, end: how });
  const call = calls.call(
    to,
    {
      method: 'POST',
      api: 'chat_completions',
      path: '/v1/chat/completions',
      query: act === '' ? '' : `do=${act}`,
      providerModel: 'm',
      streamed: false,
      credential: providerCredential(to),
      headers: ['content-type', 'application/json'],
      body: { pieces: [Buffer.from('{"model":'), Buffer.from(act === 'large' ? LARGE : '"m"}')], pooled: null },
    },
    {
      onReplyStart: (found, all) => {
        status = found;
        headers = all;
        onCall(call);
      },
      onReplyData: (chunk) => {
        body += chunk.toString('latin1');
        onData();
      },
      onReplyPause: () => undefined,
      onReplyEnd: () => end('end'),
      onKeyRefused: () => end('key_refused'),
      onReplyFault: (fault) => end(fault),
    },
  );
  return { call, told: told.promise };
}

/** The end of a body; a few of them are more than is sent over HTTP/2 before the provider says that it may go on. */
const LARGE = `"${'m'.repeat(16_384)}"}`;

const TLS = { ca: CERTIFICATE, cert: CERTIFICATE, key: KEY };

interface Transport {
  readonly name: string;
  readonly options: () => ProviderCallOptions;
  readonly settings: Partial<RequestSettings>;
  readonly version: '1.1' | '2.0';
  readonly proxied?: 'http' | 'socks5';
}

let tunnel: { readonly url: string; readonly seen: string[]; close(): void };
let socks: { readonly url: string; readonly seen: string[]; close(): void };

const TRANSPORTS: readonly Transport[] = [
  { name: 'own client', options: () => ({}), settings: {}, version: '1.1' },
  { name: 'undici', options: () => ({ client: 'undici' }), settings: {}, version: '1.1' },
  { name: 'undici, HTTP/2', options: () => ({}), settings: { http: 2 }, version: '2.0' },
  {
    name: 'an HTTP proxy of the environment',
    options: () => ({ proxies: { ...NO_PROXIES, https: tunnel.url } }),
    settings: {},
    version: '1.1',
    proxied: 'http',
  },
  {
    name: 'a SOCKS5 proxy',
    options: () => ({ proxies: { ...NO_PROXIES, https: socks.url } }),
    settings: {},
    version: '1.1',
    proxied: 'socks5',
  },
];

const SPLITS: readonly SplitPlan[] = [
  { kind: 'whole' },
  { kind: 'each_byte' },
  { kind: 'random', seed: 1, bytesMax: 30 },
];

async function writeSplit(socket: Socket, bytes: Buffer, split: SplitPlan): Promise<void> {
  for (const piece of splitBytes(bytes, split)) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The host is a name that is no local one, so that a proxy of the environment is for it. */
const HOST = 'provider.test';

describe('a call over', () => {
  before(async () => {
    provider = createSecureServer({
      ...pem,
      allowHTTP1: true,
      requestCert: true,
      rejectUnauthorized: true,
      ca: [pem.cert],
    });
    provider.on('secureConnection', (socket: Socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    provider.on('request', (request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on('error', () => undefined);
      response.on('error', () => undefined);
      request.on('end', () =>
        answer(request as unknown as IncomingMessage, body, request.socket as Socket, {
          interim: () => {
            response.writeEarlyHints({ link: '</y>; rel=preload' });
            response.writeEarlyHints({ link: '</x>; rel=preload' });
          },
          head: (more) =>
            response.writeHead(200, {
              ...more,
              'content-type': 'application/json',
              'x-request-id': 'r1',
              'x-utf8': 'caf\xc3\xa9',
              'x-latin1': 'caf\xe9',
              ...(request.httpVersion === '2.0' ? {} : { 'x-blanks': ' a b\t ' }),
            }),
          trailers: () => (response as unknown as ServerResponse).addTrailers({ 'x-trailer': 'z' }),
          flush: () => (response as unknown as ServerResponse).flushHeaders(),
          write: (text) => void response.write(text),
          end: (text) => void response.end(text),
          cut: () => (request.httpVersion === '2.0' ? response.stream.close(2) : request.socket.destroy()),
          reset: (code) => response.stream.close(code),
        }),
      );
    });
    provider.listen(0, '127.0.0.1');
    await once(provider, 'listening');
    url = `https://localhost:${(provider.address() as AddressInfo).port}`;
    tunnel = await startTunnel();
    socks = await startSocks();
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    provider?.close();
    tunnel?.close();
    socks?.close();
  });

  for (const { name, options, settings, version, proxied } of TRANSPORTS) {
    describe(name, () => {
      const clock = new HeldClock();
      let metrics: MetricsRegistry;
      let calls: ProviderCalls;
      let to: Provider;
      const settled = (own: Partial<RequestSettings> = {}): RequestSettings => ({
        ...readRequestSettings({}),
        tls: TLS,
        // A local name is never called through the environment's proxy, so here the provider itself says it.
        ...(proxied === undefined ? {} : { proxy: proxied === 'http' ? tunnel.url : socks.url }),
        ...settings,
        ...own,
      });
      before(() => {
        metrics = new MetricsRegistry();
        calls = new ProviderCalls(metrics, clock, options());
        to = { id: name, baseUrl: url, apiKey: 'sk-1', auth: 'bearer', onDisconnect: 'cancel', requests: settled() };
      });
      after(() => calls.close());

      test('carries the request and the reply, over a connection that is kept', async () => {
        const before = connections;
        for (let index = 0; index < 5; index += 1) {
          const { status, headers, body, end } = await callProvider(calls, to, '').told;
          assert.deepEqual([status, end], [200, 'end'], body);
          assert.equal(headers[headers.indexOf('x-request-id') + 1], 'r1');
          const seen = JSON.parse(body) as Seen;
          assert.deepEqual([seen.method, seen.path, seen.version], ['POST', '/v1/chat/completions', version]);
          assert.deepEqual([seen.authorization, seen.body], ['Bearer sk-1', '{"model":"m"}']);
          assert.equal(seen.certificate, 'localhost');
        }
        // undici's pool behind a proxy may open a second one while the first is about to be free.
        assert.ok(connections - before <= (proxied === undefined ? 1 : 2));
      });

      test('reads the values of headers alike: as UTF-8 where they are it, and without blanks around', async () => {
        const { headers } = await callProvider(calls, to, '').told;
        const valueOf = (name: string): string | undefined => headers[headers.indexOf(name) + 1];
        assert.deepEqual([valueOf('x-utf8'), valueOf('x-latin1')], ['caf\u00e9', 'caf\u00e9']);
        if (version === '1.1') assert.equal(valueOf('x-blanks'), 'a b');
      });

      test('passes over interim replies, and over trailers', async () => {
        for (const act of ['interim', 'trailers']) {
          const { status, headers, body, end } = await callProvider(calls, to, act).told;
          assert.deepEqual([status, end], [200, 'end'], act);
          assert.equal((JSON.parse(body) as Seen).method, 'POST');
          assert.ok(!headers.includes('link') && !headers.includes('x-trailer'), act);
        }
      });

      test('takes a head of more than a hundred lines and 12 KB', async () => {
        const { headers, end } = await callProvider(calls, to, 'long-head').told;
        assert.equal(end, 'end');
        for (const [name, value] of Object.entries(LONG_HEAD))
          assert.equal(headers[headers.indexOf(name.toLowerCase()) + 1], value);
      });

      test('waits while it is told to, and loses nothing', async () => {
        const { told } = callProvider(calls, to, 'pieces', (call) => {
          call.pause();
          setTimeout(() => call.resume(), 50);
        });
        const { body, end } = await told;
        const expected = Array.from({ length: 200 }, (_, index) => `piece ${index} ${'x'.repeat(4_000)};`).join('');
        assert.equal(end, 'end');
        assert.equal(body, expected);
      });

      test('tells nothing from within being resumed', async () => {
        let isResuming = false;
        let toldWithin = 0;
        const resume = (call: UpstreamCall): void => {
          isResuming = true;
          call.resume();
          isResuming = false;
        };
        const { told } = callProvider(
          calls,
          to,
          'pieces',
          (call) => {
            call.pause();
            setTimeout(resume, 50, call);
          },
          () => {
            if (isResuming) toldWithin += 1;
          },
        );
        assert.equal((await told).end, 'end');
        assert.equal(toldWithin, 0);
      });

      test('tells a reply that is cut', async () => {
        const { status, body, end } = await callProvider(calls, to, 'cut').told;
        assert.deepEqual([status, body, end], [200, 'half of a reply', 'cut']);
      });

      if (version === '2.0')
        for (const [code, reason] of [
          [constants.NGHTTP2_NO_ERROR, 'no error'],
          [constants.NGHTTP2_CANCEL, 'cancelled'],
          [constants.NGHTTP2_ENHANCE_YOUR_CALM, 'too much'],
        ] as const)
          test(`tells a reply that is cut by a reset whose code is: ${reason}`, async () => {
            const { status, body, end } = await callProvider(calls, to, `reset-${code}`).told;
            assert.deepEqual([status, body, end], [200, 'half of a reply', 'cut']);
          });

      if (version === '1.1') {
        for (const isTogether of [false, true]) {
          // The system tells one together with the last bytes as an end, and so do the proxies here.
          if (isTogether && proxied !== undefined) continue;
          const when = isTogether ? 'that comes together with its last bytes' : 'behind what came of it';
          test(`tells a reply that is cut by a reset ${when}, where only the end of the connection would end it`, async (context) => {
            let reset = (): void => undefined;
            const raw = await startRawProvider((socket) => {
              reset = () => socket.resetAndDestroy();
              socket.write(REPLY_WITHOUT_LENGTH);
              if (isTogether) reset();
            });
            context.after(() => raw.close());
            const plain = { ...to, baseUrl: `http://localhost:${raw.port}` };
            const { status, body, end } = await callProvider(calls, plain, '', undefined, () => reset()).told;
            assert.deepEqual([status, body, end], [200, 'half of a reply', 'cut']);
          });
        }

        test('passes over interim replies however they are split, and not without an end', async (context) => {
          let reply = '';
          let split: SplitPlan = { kind: 'each_byte' };
          const raw = await startRawProvider((socket) => void writeSplit(socket, Buffer.from(reply), split));
          context.after(() => raw.close());
          const plain = { ...to, baseUrl: `http://localhost:${raw.port}` };
          const final = 'HTTP/1.1 200 100\r\ncontent-length: 5\r\n\r\nhello';
          const interim = 'HTTP/1.1 102 Processing\r\nx: y\r\n\r\nHTTP/1.1 102 \r\n\r\n';
          for (const text of [final, `${interim}${final}`, `${interim}HTTP/1.1 103 Early Hints\r\n\r\n${final}`])
            for (const plan of SPLITS) {
              [reply, split] = [text, plan];
              const { status, body, end } = await callProvider(calls, plain, '').told;
              assert.deepEqual([status, body, end], [200, 'hello', 'end'], `${reply} ${split.kind}`);
            }
          split = { kind: 'whole' };
          reply = `HTTP/1.1 102 \r\nx: ${'x'.repeat(70_000)}`;
          assert.equal((await callProvider(calls, plain, '').told).end, 'no_reply');
        });

        test('takes no reply in a coding that nobody asked for', async (context) => {
          const reply = 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n';
          const raw = await startRawProvider((socket) => void socket.write(reply));
          context.after(() => raw.close());
          const plain = { ...to, baseUrl: `http://localhost:${raw.port}` };
          const { body, end } = await callProvider(calls, plain, '').told;
          assert.deepEqual([body, end], ['', 'no_reply']);
        });

        test('takes the end of the connection for the end of a reply that declares none', async (context) => {
          const raw = await startRawProvider((socket) => socket.end(REPLY_WITHOUT_LENGTH));
          context.after(() => raw.close());
          const plain = { ...to, baseUrl: `http://localhost:${raw.port}` };
          const { body, end } = await callProvider(calls, plain, '').told;
          assert.deepEqual([body, end], ['half of a reply', 'end']);
        });
      }

      test('tells a connection that is lost before a reply', async () => {
        assert.equal((await callProvider(calls, to, 'hang-up').told).end, 'no_reply');
      });

      test('sends a request again where a kept connection was dead before a byte of the reply, and never else', async () => {
        const acts = version === '2.0' ? ['hang-up'] : ['hang-up', ...Object.keys(LAST_WORDS)];
        for (const act of acts) {
          assert.equal((await callProvider(calls, to, '').told).end, 'end');
          // undici's pool behind a SOCKS proxy opens another one while the first is about to be free.
          await pause(5);
          asked.clear();
          assert.equal((await callProvider(calls, to, act).told).end, 'no_reply', act);
          const isSentAgain = version === '1.1' && (act === 'hang-up' || act === 'goodbye');
          assert.equal(asked.get(act), isSentAgain ? 2 : 1, act);
        }
      });

      if (version === '2.0')
        test('sends requests again whose session was lost without a word before, on one other', async () => {
          assert.equal((await callProvider(calls, to, '').told).end, 'end');
          const before = connections;
          for (const socket of sockets) socket.destroy();
          const told = await Promise.all([0, 1, 2].map(() => callProvider(calls, to, '').told));
          assert.deepEqual(
            told.map(({ end }) => end),
            ['end', 'end', 'end'],
          );
          assert.equal(connections - before, 1);
        });

      test('tells an address where nobody listens', async () => {
        const nowhere = { ...to, baseUrl: `https://localhost:${await findFreePort()}` };
        assert.equal((await callProvider(calls, nowhere, '').told).end, 'connect_failed');
      });

      test('ends by the time limits of the provider', async () => {
        const limited = { ...to, timeouts: { firstByteMs: 1_000 } };
        const { call, told } = callProvider(calls, limited, 'silence');
        await waitFor('the request to go out', () => call.sent, Boolean);
        calls.trim();
        clock.timeMs += 2_000;
        calls.trim();
        assert.equal((await told).end, 'first_byte_timeout');
      });

      for (const [act, fault] of [
        ['head-alone', 'idle_timeout'],
        ['half', 'cut'],
      ] as const)
        test(`out of time, by its own clock or its caller's, is ${fault} to all where the reply is ${act}`, async () => {
          const limited = { ...to, timeouts: { idleMs: 1_000 } };
          const faults = (): number =>
            Number(new RegExp(`kind="${fault}"\\} (\\d+)`).exec(metrics.render())?.[1] ?? '0');
          const before = faults();
          for (const isCallers of [false, true]) {
            const begun = Promise.withResolvers<void>();
            const onHead = act === 'head-alone' ? () => begun.resolve() : undefined;
            const { call, told } = callProvider(calls, limited, act, onHead, begun.resolve);
            await begun.promise;
            clock.timeMs += 1_001;
            if (isCallers) call.fail('idle_timeout');
            else calls.trim();
            assert.equal((await told).end, fault);
          }
          assert.equal(faults(), before + 2);
        });

      test('is given up, and the provider sees it', async () => {
        const { call, told } = callProvider(calls, to, 'silence');
        await waitFor('the request to go out', () => call.sent, Boolean);
        call.abort();
        assert.equal(call.isOver, true);
        assert.equal(
          await Promise.race([told.then(({ end }) => end), Promise.resolve('nothing is told')]),
          'nothing is told',
        );
        // What comes after it is not hurt.
        assert.equal((await callProvider(calls, to, '').told).end, 'end');
      });

      test('is given up while its request is being sent, and nothing stands still', async () => {
        const given = Array.from({ length: 8 }, () => callProvider(calls, to, 'large').call);
        await waitFor('a request to go out', () => given.some(({ sent }) => sent), Boolean);
        for (const call of given) call.abort();
        assert.equal((await callProvider(calls, to, '').told).end, 'end');
      });

      test('is refused without the certificate that the provider wants', async () => {
        const bare = { ...to, requests: settled({ tls: { ca: CERTIFICATE } }) };
        assert.match((await callProvider(calls, bare, '').told).end, /^(connect_failed|no_reply)$/);
      });

      test('does not go to a provider whose certificate is not trusted', async () => {
        const { tls: _, ...untrusting } = settled();
        assert.equal((await callProvider(calls, { ...to, requests: untrusting }, '').told).end, 'connect_failed');
      });
    });
  }

  test('a proxy sees where a call goes, and nothing of it', () => {
    const port = new URL(url).port;
    assert.ok(
      tunnel.seen.length > 0 && tunnel.seen.every((line) => line.startsWith('CONNECT localhost:')),
      tunnel.seen[0],
    );
    assert.ok(tunnel.seen.some((line) => line.startsWith(`CONNECT localhost:${port} `)));
    assert.ok(socks.seen.includes(`localhost:${port}`));
  });

  test('a proxy that refuses: the provider is not reachable, and no other way is tried', async () => {
    const refusing = createHttpServer().on('connect', (_, socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    refusing.listen(0, '127.0.0.1');
    await once(refusing, 'listening');
    const proxy = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}`;
    const calls = new ProviderCalls(new MetricsRegistry(), new HeldClock());
    const requests = { ...readRequestSettings({}), tls: TLS, proxy };
    const to: Provider = { id: 'p', baseUrl: url, apiKey: 'k', auth: 'bearer', onDisconnect: 'cancel', requests };
    const before = connections;
    assert.equal((await callProvider(calls, to, '').told).end, 'connect_failed');
    assert.equal(connections, before);
    await calls.close();
    refusing.close();
  });

  test('a name that is no local one goes through the proxy of the environment', async () => {
    const calls = new ProviderCalls(new MetricsRegistry(), new HeldClock(), {
      proxies: { ...NO_PROXIES, https: tunnel.url },
    });
    const requests = { ...readRequestSettings({}), tls: TLS };
    const to: Provider = {
      id: 'p',
      baseUrl: `https://${HOST}:9`,
      apiKey: 'k',
      auth: 'bearer',
      onDisconnect: 'cancel',
      requests,
    };
    await callProvider(calls, to, '').told;
    assert.ok(tunnel.seen.includes(`CONNECT ${HOST}:9 undefined`));
    await calls.close();
  });
});

/** A proxy of HTTP's CONNECT that passes everything on. */
async function startTunnel(): Promise<{ readonly url: string; readonly seen: string[]; close(): void }> {
  const seen: string[] = [];
  const open = new Set<Socket>();
  const server = createHttpServer((_, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    seen.push(`CONNECT ${request.url} ${request.headers.authorization}`);
    const [host = '', port = ''] = (request.url ?? '').split(':');
    join(client, { host, port: Number(port) }, () => client.write('HTTP/1.1 200 Connected\r\n\r\n'), open);
  });
  return listenAs('http', server, seen, open);
}

/** A proxy of SOCKS5 (RFC 1928) without authentication that passes everything on. */
async function startSocks(): Promise<{ readonly url: string; readonly seen: string[]; close(): void }> {
  const seen: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((client) => {
    client.once('data', () => {
      client.write(Buffer.from([5, 0]));
      client.once('data', (request) => {
        const isName = request[3] === 3;
        const length = isName ? (request[4] ?? 0) : 4;
        const from = isName ? 5 : 4;
        const host = isName
          ? request.toString('latin1', from, from + length)
          : [...request.subarray(from, from + length)].join('.');
        const port = request.readUInt16BE(from + length);
        seen.push(`${host}:${port}`);
        join(client, { host, port }, () => client.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])), open);
      });
    });
  });
  return listenAs('socks5', server, seen, open);
}

function join(client: Socket, to: { host: string; port: number }, onOpen: () => void, open: Set<Socket>): void {
  const upstream = connect(to, () => {
    onOpen();
    client.pipe(upstream).pipe(client);
  });
  for (const socket of [client, upstream]) {
    open.add(socket);
    socket.on('error', () => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    });
    socket.on('close', () => {
      client.destroy();
      upstream.destroy();
    });
  }
}

async function listenAs(scheme: string, server: Server, seen: string[], open: Set<Socket>) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () => {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
