// Providers and clients that stop in the middle, on the three text dialects: each call ends by a timer of its own, with
// the dialect's error while nothing was sent and with a cut connection afterwards, and leaves nothing behind: no
// exchange, no call, no hold, no socket.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { howMany } from '../support/at-length.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { connectionsAt, readGauges, waitForQuiet } from '../support/gateway-gauges.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { providersConfiguration, type TestProvider } from '../support/provider-configuration.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, OPENING_CREDIT_PICO } from '../support/test-configuration.ts';
import { startUnansweringAddress, type UnansweringAddress } from '../support/unanswering-address.ts';
import { pause, waitFor } from '../support/waiting.ts';

/**
 * Providers by the one timer that is short; all are the same simulated one, but for one that does not take a
 * connection.
 */
const TIMEOUTS: Readonly<Record<string, NonNullable<TestProvider['timeouts']>>> = {
  patient: {},
  'short-connect': { connect_ms: 500 },
  'short-first-byte': { first_byte_ms: 600 },
  'short-idle': { idle_ms: 900 },
  'short-total': { total_ms: 1_500 },
};

interface Route {
  readonly path: string;
  readonly bodyOf: (model: string, content: string, stream: boolean) => string;
  /** The dialect's error object. */
  readonly assertError: (body: unknown, code: string) => void;
}

const ROUTES: readonly Route[] = [
  {
    path: '/v1/chat/completions',
    bodyOf: (model, content, stream) =>
      JSON.stringify({ model, messages: [{ role: 'user', content }], max_tokens: 2_000, stream }),
    assertError: assertOpenaiError,
  },
  {
    path: '/v1/responses',
    bodyOf: (model, input, stream) => JSON.stringify({ model, input, max_output_tokens: 2_000, stream }),
    assertError: assertOpenaiError,
  },
  {
    path: '/v1/messages',
    bodyOf: (model, content, stream) =>
      JSON.stringify({ model, messages: [{ role: 'user', content }], max_tokens: 2_000, stream }),
    assertError: (body) => {
      const { type, error } = body as { type: string; error: { type: string; message: string } };
      assert.deepEqual([type, error.type], ['error', 'api_error']);
      assert.ok(error.message.length > 10);
    },
  },
];

function assertOpenaiError(body: unknown, code: string): void {
  const { error } = body as { error: { type: string; code: string } };
  assert.deepEqual([error.type, error.code], ['server_error', code]);
}

const SLOW_READERS = howMany({ short: 8, long: 100 });

describe('a call that would not end', () => {
  let provider: SimulatedProvider;
  let nowhere: UnansweringAddress;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  let port: number;

  before(async () => {
    provider = await startSimulatedProvider();
    nowhere = await startUnansweringAddress();
    const providers = Object.entries(TIMEOUTS).map(([id, timeouts]) => ({
      id,
      url: 'connect_ms' in timeouts ? nowhere.url : provider.url,
      timeouts,
    }));
    const models = providers.map(({ id }) => ({
      id: `sim/${id}`,
      deployments: [{ provider: id, model: `sim-${id}` }],
    }));
    const deployments = ['short-connect', 'patient'].map((id) => ({ provider: id, model: `sim-${id}` }));
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: providersConfiguration(providers, [...models, { id: 'sim/passed-over', deployments }]),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
    port = Number(new URL(tollgate.url).port);
    assert.deepEqual(Object.values(await readGauges(tollgate)), [0, 0, 0, 0], 'every gauge is there');
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await provider?.stop();
    await nowhere?.close();
  });

  afterEach(() => waitForQuiet(tollgate));

  const ask = (route: Route, timer: string, directives: string, stream: boolean): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}${route.path}`, {
      headers: HEADERS,
      body: route.bodyOf(`sim/${timer}`, `Hello. [[sim: ${directives}]]`, stream),
    });
  const onEveryRoute = async (run: (route: Route, stream: boolean) => Promise<void>): Promise<void> => {
    await Promise.all(ROUTES.flatMap((route) => [true, false].map((stream) => run(route, stream))));
  };

  /** How long after a client that leaves within a call the provider is left. */
  const leave = async (route: Route, directives: string): Promise<number> => {
    const calls = provider.starts().length;
    const socket = await open(requestOf(route, 'patient', directives));
    await waitFor(
      'the provider to be at work',
      () => provider.starts().length > calls && (directives === 'blackhole' || socket.bytesRead > 1_000),
      (yes) => yes,
    );
    const leftAtMs = Date.now();
    socket.destroy();
    const end = await provider.lastEnd();
    assert.equal(end.completed, false);
    return Date.parse(end.at) - leftAtMs;
  };

  const outcomeOf = async (answer: HttpAnswer): Promise<string> => {
    const id = String(answer.headers['x-service-execution-id']);
    const [row] = await waitFor(
      `execution ${id} to be posted`,
      () => ledger.query('SELECT outcome FROM generations WHERE id = $1 AND outcome IS NOT NULL', [id]),
      (rows) => rows.length === 1,
    );
    return String(row?.outcome);
  };

  test('no connection: the dialect’s error', () =>
    onEveryRoute(async (route, stream) => {
      const answer = await ask(route, 'short-connect', 'tokens=2', stream);
      assert.equal(answer.status, 502, answer.body.toString('utf8'));
      assert.match(String(answer.headers['content-type']), /^application\/json/);
      route.assertError(JSON.parse(answer.body.toString('utf8')), 'upstream_unreachable');
      assert.ok(Number(answer.headers['retry-after']) >= 1);
      assert.equal(await outcomeOf(answer), 'connect_failed');
    }));

  test('no connection, and another deployment: that one serves', () =>
    onEveryRoute(async (route, stream) => {
      const answer = await ask(route, 'passed-over', 'tokens=2', stream);
      assert.ok(answer.status === 200 && answer.complete, answer.body.toString('utf8'));
      assert.match(await outcomeOf(answer), /^completed/);
      const [row] = await ledger.query('SELECT provider FROM generations WHERE id = $1', [
        String(answer.headers['x-service-execution-id']),
      ]);
      assert.equal(row?.provider, 'patient');
    }));

  test('no first byte: the dialect’s error', () =>
    onEveryRoute(async (route, stream) => {
      const answer = await ask(route, 'short-first-byte', 'blackhole', stream);
      assert.equal(answer.status, 502, answer.body.toString('utf8'));
      assert.match(String(answer.headers['content-type']), /^application\/json/);
      route.assertError(JSON.parse(answer.body.toString('utf8')), 'upstream_timeout');
      assert.ok(Number(answer.headers['retry-after']) >= 1);
      assert.equal(await outcomeOf(answer), 'no_reply');
    }));

  test('no first byte within the whole time: the dialect’s error', () =>
    onEveryRoute(async (route, stream) => {
      const answer = await ask(route, 'short-total', 'blackhole', stream);
      assert.equal(answer.status, 502, answer.body.toString('utf8'));
      route.assertError(JSON.parse(answer.body.toString('utf8')), 'upstream_timeout');
    }));

  test('headers of 10 MB: the dialect’s error', () =>
    onEveryRoute(async (route, stream) => {
      const answer = await ask(route, 'patient', 'tokens=2 header_bytes=10000000', stream);
      assert.equal(answer.status, 502, answer.body.toString('utf8').slice(0, 300));
      route.assertError(JSON.parse(answer.body.toString('utf8')), 'upstream_unreachable');
      assert.equal(await outcomeOf(answer), 'no_reply');
    }));

  const CUTS: readonly (readonly [name: string, timer: string, directives: string])[] = [
    ['a stall', 'short-idle', 'tokens=20 stall_after=5'],
    ['a reply that takes too long in all', 'short-total', 'tokens=1900 delay_ms=20 bytes=100'],
    ['a reset', 'patient', 'tokens=20 reset_after=5'],
    ['a cut', 'patient', 'tokens=20 cut_after=5'],
    ['a cut in the middle of an event', 'patient', 'tokens=20 cut_mid_event=3'],
  ];

  for (const [name, timer, directives] of CUTS) {
    test(`${name}: never a clean end`, () =>
      onEveryRoute(async (route, stream) => {
        // A whole answer waits for all its tokens before its first byte.
        if (!stream && timer === 'short-total') return;
        const answer = await ask(route, timer, directives, stream).catch(() => null);
        assert.ok(
          answer === null || (answer.status === 200 && !answer.complete),
          `${route.path}: ${answer?.body.toString('utf8').slice(-200)}`,
        );
        if (answer === null) return;
        assert.ok(
          !/\[DONE\]|response\.completed|message_stop/.test(answer.body.toString('utf8')),
          'no event of the end',
        );
        assert.match(await outcomeOf(answer), /^(cut_mid_stream|usage_then_cut)$/);
      }));
  }

  test('a line of a megabyte and bytes that are not UTF-8 pass as they are', () =>
    onEveryRoute(async (route, stream) => {
      const large = await ask(route, 'patient', 'tokens=2 bytes=1000000', stream);
      assert.ok(
        large.status === 200 && large.complete && large.body.length > 1_000_000,
        `${route.path}: ${large.body.length}`,
      );
      const broken = await ask(route, 'patient', 'tokens=2 invalid_utf8', stream);
      assert.ok(
        broken.status === 200 && broken.complete && broken.body.includes(Buffer.from([0xff, 0xc3, 0x28])),
        route.path,
      );
    }));

  test(
    'a client that leaves: the provider is left within a second, before ' + 'the first byte and in mid-stream',
    async () => {
      for (const directives of ['blackhole', 'tokens=1900 delay_ms=30']) {
        for (const route of ROUTES) {
          const tookMs: number[] = [];
          // A machine that stood still for a while does so seldom three times in a row.
          while (tookMs.length < 3 && tookMs.every((ms) => ms >= 1_000)) tookMs.push(await leave(route, directives));
          assert.ok(Math.min(...tookMs) < 1_000, `${route.path}: left ${tookMs.join(', ')} ms later`);
        }
      }
    },
  );

  test(`${SLOW_READERS} slow readers get everything`, async () => {
    const content = 'tokens=3 bytes=400000';
    const whole = await Promise.all(
      ROUTES.map(async (route) => (await ask(route, 'patient', content, true)).body.length),
    );
    await Promise.all(
      Array.from({ length: SLOW_READERS }, async (_, index) => {
        const route = ROUTES[index % ROUTES.length] as Route;
        const socket = await open(requestOf(route, 'patient', content));
        const received = await readSlowly(socket);
        assert.ok(isWhole(received), `${route.path}: the reply came to its end`);
        assert.ok(
          received.length > (whole[index % ROUTES.length] ?? 0),
          `${route.path}: ${received.length} of ${whole.join()}`,
        );
      }),
    );
  });

  test('a client that takes nothing is cut off by uWebSockets.js after ten seconds, however patient the provider is', {
    skip: process.env['HTTP_FRONT'] === 'node' && 'node:http leaves it to the provider’s setting',
  }, async () => {
    const sockets = await Promise.all(ROUTES.map((route) => open(requestOf(route, 'patient', UNREAD))));
    for (const socket of sockets) socket.pause();
    await waitFor(
      'the calls to be under way',
      () => readGauges(tollgate),
      (gauges) => gauges.tollgate_relays_open === ROUTES.length,
    );
    // The setting is three times as long as this waits.
    await waitForQuiet(tollgate);
    const received = await Promise.all(sockets.map(readSlowly));
    for (const text of received) assert.ok(!isWhole(text), 'what they have is not whole');
  });

  test('who leaves while it takes nothing is noticed, and its call ends', async () => {
    const sockets = await Promise.all(ROUTES.map((route) => open(requestOf(route, 'patient', UNREAD))));
    for (const socket of sockets) socket.pause();
    await waitFor(
      'the calls to be under way',
      () => readGauges(tollgate),
      (gauges) => gauges.tollgate_relays_open === ROUTES.length,
    );
    await pause(1_000);
    // One has taken something again meanwhile.
    sockets[0]?.on('data', () => undefined).resume();
    await waitFor(
      'it to read on',
      () => sockets[0]?.bytesRead ?? 0,
      (bytes) => bytes > 1_000_000,
    );
    for (const socket of sockets) socket.resetAndDestroy();
    await waitForQuiet(tollgate);
  });

  test('clients that take nothing are cut off, and their providers with them', async () => {
    for (const timer of ['short-idle', 'short-total']) {
      const sockets = await Promise.all(
        ROUTES.map((route) => open(requestOf(route, timer, 'tokens=3 bytes=14000000'))),
      );
      for (const socket of sockets) socket.pause();
      await waitFor(
        'the calls to be under way',
        () => readGauges(tollgate),
        (gauges) => gauges.tollgate_relays_open > 0,
      );
      await waitForQuiet(tollgate);
      const received = await Promise.all(sockets.map(readSlowly));
      // On a busy machine the time can be over before the first byte, and that is answered.
      for (const text of received)
        assert.ok(!isWhole(text) || text.startsWith('HTTP/1.1 50'), 'what they have is not whole');
    }
  });

  test('nothing is left: the provider saw every call end, the clients are gone, the money agrees', async () => {
    await provider.lastEnd();
    await waitFor(
      'the clients to be left',
      () => connectionsAt(port),
      (connections) => connections === null || connections === 0,
    );
    // As many as were in use at once are kept for the next requests, and no more.
    assert.ok((connectionsAt(Number(new URL(provider.url).port)) ?? 0) <= 110);
    const [row] = await waitFor(
      'every execution to be posted',
      () =>
        ledger.query(
          `SELECT count(*) FILTER (WHERE outcome IS NULL)::int AS open, coalesce(sum(charge), 0)::text AS charged
            FROM generations`,
        ),
      (rows) => rows[0]?.open === 0,
    );
    await waitFor(
      'the wallet to agree',
      async () => OPENING_CREDIT_PICO - (await ledger.wallet('acme')).balance - BigInt(String(row?.charged)),
      (difference) => difference === 0n,
    );
    assert.doesNotMatch(tollgate.output(), /internal_error|uncaught|unhandled|fault while/i);
  });

  function requestOf(route: Route, timer: string, directives: string): string {
    const body = route.bodyOf(`sim/${timer}`, `Hello. [[sim: ${directives}]]`, true);
    const lines = [
      `POST ${route.path} HTTP/1.1`,
      'Host: gateway',
      ...Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}`),
    ];
    return `${[...lines, `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n${body}`;
  }

  async function open(request: string): Promise<Socket> {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(request);
    // Read on its own terms: see `readSlowly`.
    if (!request.includes('delay_ms')) return socket;
    socket.on('data', () => undefined);
    return socket;
  }
});

const HEADERS = {
  authorization: `Bearer ${KEYS.acme}`,
  'content-type': 'application/json',
  'anthropic-version': '2023-06-01',
};

/** Whether a response ends as its head says: a stream that is there at once is sent with its length, as one piece. */
function isWhole(received: string): boolean {
  return isEnd(received.slice(0, HEAD_LENGTH_MAX), received.slice(-LAST_CHUNK.length), received.length);
}

function isEnd(beginning: string, end: string, length: number): boolean {
  const bodyAt = beginning.indexOf('\r\n\r\n') + 4;
  const [, declared] = /^content-length: (\d+)\r$/im.exec(beginning.slice(0, bodyAt)) ?? [];
  return declared === undefined ? end === LAST_CHUNK : length === bodyAt + Number(declared);
}

const HEAD_LENGTH_MAX = 4_096;
/** More than the buffers of all sockets on the way take. */
const UNREAD = 'tokens=3 bytes=40000000';
const LAST_CHUNK = '\r\n0\r\n\r\n';

/** Takes a little at a time, until the end of the response or of the connection. */
async function readSlowly(socket: Socket): Promise<string> {
  // Many megabytes are too much to put together at every look.
  const pieces: string[] = [];
  let [beginning, end, length] = ['', '', 0];
  let ended = false;
  socket.setEncoding('latin1');
  for (const event of ['end', 'error', 'close']) {
    socket.once(event, () => {
      ended = true;
    });
  }
  socket.on('readable', () => undefined);
  while (!ended && !isEnd(beginning, end, length)) {
    await pause(20);
    for (let piece = socket.read() as string | null; piece !== null; piece = socket.read() as string | null) {
      pieces.push(piece);
      if (beginning.length < HEAD_LENGTH_MAX) beginning += piece.slice(0, HEAD_LENGTH_MAX);
      end = (end + piece).slice(-LAST_CHUNK.length);
      length += piece.length;
    }
  }
  socket.destroy();
  return pieces.join('');
}
