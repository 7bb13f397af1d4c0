// Who serves when the first provider cannot: the next one, before a byte of a reply; a provider that asks for a pause
// gets it; the body that reaches whoever serves is the client's but for the model.

import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fillModel, oddBody } from '../support/body-splices.ts';
import { type FakeUpstream, type ReceivedRequest, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { providersConfiguration, type ServedModel } from '../support/provider-configuration.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const USAGE = { prompt_tokens: 3, completion_tokens: 2, input_tokens: 3, output_tokens: 2 };
const GOOD: Script = { body: JSON.stringify({ choices: [], data: [{}], usage: USAGE }) };
const refused = (status: number, ...headers: readonly (readonly [string, string])[]): Script => ({
  status,
  headers: [['content-type', 'application/json'], ...headers],
  body: JSON.stringify({ error: { message: `busy ${status}` } }),
});

/** What the first and the second provider answer, in order; the last answer is repeated. */
interface Case {
  readonly first: readonly Script[];
  readonly second?: readonly Script[];
}

const CASES = {
  answers: { first: [GOOD] },
  fails: { first: [refused(500)] },
  refuses500: { first: [refused(500)] },
  refuses502: { first: [refused(502)] },
  refuses503: { first: [refused(503, ['retry-after', '2']), GOOD] },
  refuses504: { first: [refused(504)] },
  refuses529: { first: [refused(529)] },
  refuses429: { first: [refused(429, ['retry-after', '2']), GOOD] },
  refusesUntilDate: { first: [refused(429, ['retry-after', 'Fri, 31 Dec 2094 23:59:59 GMT'])] },
  refusesWithoutTime: { first: [refused(429)] },
  refusesRequest: { first: [refused(400)] },
  allPause: { first: [refused(429, ['retry-after', '40'])], second: [refused(503, ['retry-after', '20'])] },
  retryAfterOn200: {
    first: [{ body: JSON.stringify({ choices: [], usage: USAGE }), headers: [['retry-after', '60']] }],
  },
  cutAfterHead: { first: [{ body: 'x'.repeat(100), fault: { kind: 'cut', afterBytes: 0 } }] },
  cutAfterBytes: { first: [{ body: 'x'.repeat(100), fault: { kind: 'reset', afterBytes: 50 } }] },
  saysNothing: { first: [{ instead: 'reset' }] },
  longHeaders: { first: [GOOD, { body: '{}', headers: [['x-long', 'h'.repeat(10_000_000)]] }] },
  noHttp: { first: [GOOD, { body: '{}', headers: [['bad header', '\x01']] }] },
} as const satisfies Record<string, Case>;
type CaseName = keyof typeof CASES;

const MODELS: readonly ServedModel[] = [
  ...Object.keys(CASES).map((name) => ({
    id: `test/${name}`,
    deployments: [
      { provider: 'first', model: `${name}-at-the-first` },
      { provider: 'second', model: `${name}-2` },
    ],
  })),
  { id: 'test/alone', deployments: [{ provider: 'first', model: 'answers-at-the-first' }] },
  {
    id: 'test/gone',
    deployments: [
      { provider: 'gone', model: 'gone' },
      { provider: 'second', model: 'gone-2' },
    ],
  },
  {
    id: 'test/early',
    deployments: [
      { provider: 'early', model: 'a-very-much-longer-name-than-the-public-one-so-that-the-body-moves-in-its-buffer' },
      { provider: 'second', model: 'e' },
    ],
  },
  {
    id: 'test/form',
    kind: 'image',
    deployments: [
      { provider: 'first', model: 'form-at-the-first' },
      { provider: 'second', model: 'f' },
    ],
  },
];

const ROUTES = [
  { path: '/v1/chat/completions', fields: { messages: [] } },
  { path: '/v1/responses', fields: { input: 'hi', store: false } },
  { path: '/v1/messages', fields: { messages: [], max_tokens: 9 } },
] as const;

describe('failover and cooldown', () => {
  let first: FakeUpstream;
  let second: FakeUpstream;
  let early: EarlyRefuser;
  let tollgate: Front;
  let ledger: LedgerView;

  before(async () => {
    first = await startFakeUpstream(answering('first'));
    second = await startFakeUpstream(answering('second'));
    early = await startEarlyRefuser();
    const configurationYaml = providersConfiguration(
      [
        { id: 'first', url: first.url },
        { id: 'second', url: second.url },
        { id: 'gone', url: `http://127.0.0.1:${await findFreePort()}` },
        { id: 'early', url: early.url },
      ],
      MODELS,
    );
    tollgate = await startFront({ configurationYaml });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await Promise.all([first?.close(), second?.close(), early?.close()]);
  });

  const ask = (name: CaseName | 'gone' | 'alone', route: (typeof ROUTES)[number] = ROUTES[0]): Promise<HttpAnswer> =>
    send(route.path, JSON.stringify({ model: `test/${name}`, ...route.fields }), 'application/json');
  const send = (path: string, body: string | Buffer, contentType: string): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}${path}`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': contentType },
      body,
    });
  // So that no test begins with an address that has failed in the one before.
  beforeEach(async () => assert.equal((await ask('alone')).status, 200));

  const callsOf = (upstream: FakeUpstream, name: string): number =>
    upstream.requests.filter(({ body }) => caseOf(body) === name).length;

  async function assertProvider(answer: HttpAnswer, provider: string): Promise<void> {
    const id = String(answer.headers['x-service-execution-id']);
    const [row] = await waitFor(
      `execution ${id} to be posted`,
      () =>
        ledger.query(
          `SELECT provider, provider_model, outcome, price_version FROM generations
            WHERE id = $1 AND outcome IS NOT NULL`,
          [id],
        ),
      (rows) => rows.length === 1,
    );
    assert.equal(row?.provider, provider);
    assert.equal(String(row?.provider_model).endsWith('-2'), provider === 'second');
  }

  test(
    'a provider that refuses connections is passed over on every route, ' + 'and the record names who served',
    async () => {
      for (const route of ROUTES) {
        const answer = await ask('gone', route);
        assert.equal(answer.status, 200, answer.body.toString('utf8'));
        await assertProvider(answer, 'second');
      }
      assert.equal(callsOf(second, 'gone'), ROUTES.length);
    },
  );

  test('the calls of a request that several were called for are recorded with their times, of others none', async () => {
    const attemptsOf = async (answer: HttpAnswer): Promise<unknown> => {
      const id = String(answer.headers['x-service-execution-id']);
      const [row] = await waitFor(
        `execution ${id} to be posted`,
        () => ledger.query('SELECT attempts::text FROM generations WHERE id = $1 AND outcome IS NOT NULL', [id]),
        (rows) => rows.length === 1,
      );
      return JSON.parse(String(row?.attempts));
    };
    assert.equal(await attemptsOf(await ask('alone')), null);
    const attempts = (await attemptsOf(await ask('refuses502'))) as Record<string, unknown>[];
    const shown = attempts.map(({ provider, cause, status }) => ({ provider, cause, status }));
    assert.deepEqual(shown, [
      { provider: 'first', cause: 'status', status: 502 },
      { provider: 'second', cause: null, status: null },
    ]);
    const [begun, given, again, end] = attempts.flatMap(({ started_ms, ended_ms }) => [started_ms, ended_ms]);
    assert.ok(Number(begun) <= Number(given) && Number(given) <= Number(again) && end === null);
    await assertProvider(await ask('answers'), 'first');
  });

  test('three failures in a row: the address is passed over without an attempt, for every model of it', async () => {
    const answered = callsOf(first, 'answers');
    for (const _ of ROUTES) await assertProvider(await ask('fails'), 'second');
    await assertProvider(await ask('fails'), 'second');
    await assertProvider(await ask('answers'), 'second');
    assert.deepEqual([callsOf(first, 'fails'), callsOf(first, 'answers')], [ROUTES.length, answered]);
    // Where there is no other one it is tried all the same, and its answer ends the pause.
    assert.equal((await ask('alone')).status, 200);
    await assertProvider(await ask('answers'), 'first');
  });

  for (const name of ['refuses500', 'refuses502', 'refuses504', 'refuses529', 'refusesWithoutTime'] as const) {
    test(`${name}: the next one serves, and the first is asked again the next time`, async () => {
      const [earlier, earlierSecond] = [callsOf(first, name), callsOf(second, name)];
      for (const [index, route] of ROUTES.entries()) {
        const answer = await ask(name, route);
        assert.equal(answer.status, 200, answer.body.toString('utf8'));
        await assertProvider(answer, 'second');
        assert.deepEqual(
          [callsOf(first, name) - earlier, callsOf(second, name) - earlierSecond],
          [index + 1, index + 1],
        );
      }
    });
  }

  for (const name of ['refuses503', 'refuses429'] as const) {
    test(`${name}: with Retry-After the first has its pause and then serves again`, async () => {
      const startedMs = performance.now();
      await assertProvider(await ask(name), 'second');
      assert.equal((await ask(name, ROUTES[1])).status, 200);
      assert.equal(callsOf(first, name), 1, 'on any route');
      await waitFor(
        'the first to be asked again',
        async () => {
          assert.equal((await ask(name)).status, 200);
          return callsOf(first, name);
        },
        (calls) => calls === 2,
      );
      assert.ok(performance.now() - startedMs >= 2_000, 'not before its time');
    });
  }

  test('a date is a time too', async () => {
    assert.equal((await ask('refusesUntilDate')).status, 200);
    assert.equal((await ask('refusesUntilDate')).status, 200);
    assert.deepEqual([callsOf(first, 'refusesUntilDate'), callsOf(second, 'refusesUntilDate')], [1, 2]);
  });

  test('a provider’s 400 is the answer', async () => {
    const answer = await ask('refusesRequest');
    assert.deepEqual([answer.status, answer.body.toString('utf8')], [400, '{"error":{"message":"busy 400"}}']);
    await assertProvider(answer, 'first');
    assert.equal(callsOf(second, 'refusesRequest'), 0);
  });

  test(
    'when none is left: the last one’s answer as it is, and then 429 upstream_cooldown until the first ' +
      'of them may be asked',
    async () => {
      const last = await ask('allPause');
      assert.deepEqual(
        [last.status, last.headers['retry-after'], last.body.toString('utf8')],
        [503, '20', '{"error":{"message":"busy 503"}}'],
      );
      for (const route of ROUTES) {
        const answer = await ask('allPause', route);
        assert.equal(answer.status, 429);
        const seconds = Number(answer.headers['retry-after']);
        const milliseconds = Number(answer.headers['retry-after-ms']);
        assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 20, `Retry-After: ${seconds}`);
        assert.ok(milliseconds >= 1 && Math.ceil(milliseconds / 1000) === seconds, `retry-after-ms: ${milliseconds}`);
        assert.equal(answer.headers['x-should-retry'], 'true');
        assert.match(
          String(answer.headers['x-service-execution-id']),
          /^[0-9a-f-]{36}$/,
          'a refused request has a record',
        );
        const body = JSON.parse(answer.body.toString('utf8')) as Record<string, unknown>;
        assert.deepEqual(
          [body['error'], body['retryable'], body['retry_after_seconds']],
          ['upstream_cooldown', true, seconds],
        );
      }
      assert.deepEqual([callsOf(first, 'allPause'), callsOf(second, 'allPause')], [1, 1]);
    },
  );

  test('Retry-After on a 200 begins no pause', async () => {
    for (let round = 1; round <= 2; round += 1) {
      const answer = await ask('retryAfterOn200');
      assert.deepEqual([answer.status, answer.headers['retry-after']], [200, '60']);
      assert.deepEqual([callsOf(first, 'retryAfterOn200'), callsOf(second, 'retryAfterOn200')], [round, 0]);
    }
  });

  test('a reply that began is never begun anew', async () => {
    for (const name of ['cutAfterHead', 'cutAfterBytes'] as const) {
      for (const route of ROUTES) {
        const answer = await ask(name, route);
        // Of what had no byte the client has seen nothing: it gets a refusal of ours.
        const isRefused = name === 'cutAfterHead';
        assert.deepEqual([answer.status, answer.complete], isRefused ? [502, true] : [200, false]);
      }
      assert.deepEqual([callsOf(first, name), callsOf(second, name)], [ROUTES.length, 0], name);
    }
  });

  test('a request that may have been served is not sent to another', async () => {
    const answer = await ask('saysNothing');
    assert.equal(answer.status, 502);
    assert.equal(callsOf(second, 'saysNothing'), 0);
    assert.ok(callsOf(first, 'saysNothing') <= 2, 'once more only where the connection was a kept one');
  });

  test('a reply that cannot be read is a reply, on a kept connection too', async () => {
    for (const name of ['longHeaders', 'noHttp'] as const) {
      assert.equal((await ask(name)).status, 200);
      const answer = await ask(name);
      assert.equal(answer.status, 502);
      assert.equal(
        (JSON.parse(answer.body.toString('utf8')) as { error: { code: string } }).error.code,
        'upstream_unreachable',
      );
      assert.deepEqual([callsOf(first, name), callsOf(second, name)], [2, 0], name);
    }
  });

  test('each provider gets the client’s bytes with its own model', async () => {
    const hole = oddBody({ stream: false, padBytes: 300_000 });
    const answer = await send('/v1/chat/completions', fillModel(hole, 'test/refuses500'), 'application/json');
    assert.equal(answer.status, 200);
    assert.equal(first.requests.at(-1)?.body.toString('utf8'), fillModel(hole, 'refuses500-at-the-first'));
    assert.equal(second.requests.at(-1)?.body.toString('utf8'), fillModel(hole, 'refuses500-2'));
    const form = (model: string): Buffer =>
      writeForm('b', [
        { name: 'prompt', value: 'a cat' },
        { name: 'model', value: model },
        { name: 'image[]', filename: 'a.png', value: Buffer.alloc(90_000, '\r\n--') },
      ]);
    const edited = await send('/v1/images/edits', form('test/form'), 'multipart/form-data; boundary=b');
    assert.equal(edited.status, 200, edited.body.toString('utf8'));
    assert.ok(first.requests.at(-1)?.body.equals(form('form-at-the-first')));
    assert.ok(second.requests.at(-1)?.body.equals(form('f')));
  });

  test('also while the first is still being sent what it has already refused', async () => {
    const hole = oddBody({ stream: false, padBytes: 12_000_000 });
    const answer = await send('/v1/chat/completions', fillModel(hole, 'test/early'), 'application/json');
    assert.equal(answer.status, 200, answer.body.toString('utf8'));
    assert.ok(second.requests.at(-1)?.body.equals(Buffer.from(fillModel(hole, 'e'))));
    assert.deepEqual([first.violations, second.violations], [[], []]);
  });
});

/** Answers by the case that the provider's model names. */
function answering(provider: 'first' | 'second'): (request: ReceivedRequest) => Script {
  const calls = new Map<string, number>();
  return ({ body }) => {
    const name = caseOf(body);
    if (name === 'form') return provider === 'first' ? refused(500) : GOOD;
    const scripts: readonly Script[] = (CASES as Record<string, Case>)[name]?.[provider] ?? [GOOD];
    const call = calls.get(name) ?? 0;
    calls.set(name, call + 1);
    return scripts[Math.min(call, scripts.length - 1)] ?? GOOD;
  };
}

const CASE_NAME = /"model"\s*:\s*"([A-Za-z0-9]+)(?:-at-the-first|-2)"/;

function caseOf(body: Buffer): string {
  const text = body.toString('latin1');
  return CASE_NAME.exec(text)?.[1] ?? (text.includes('name="model"') ? 'form' : '');
}

interface EarlyRefuser {
  readonly url: string;
  close(): Promise<void>;
}

/** Refuses at the first bytes of a request, and never reads the rest. */
async function startEarlyRefuser(): Promise<EarlyRefuser> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.pause();
      socket.write('HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
