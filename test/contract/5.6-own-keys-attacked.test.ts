// Spec 5.6: requests on own provider keys, attacked from outside: clients that leave, providers that break off, stall,
// lie and send elsewhere, headers that would choose a credential, and what the platform has taken back meanwhile. A fee
// is taken once or not at all, nothing stays held, and no credential but the own one reaches the provider.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { parseUsd } from '../../src/domain/money/parse-usd.ts';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import type { ReceivedRequest } from '../support/request-reader.ts';
import { PROVIDER_KEY, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const FEE = 0.001;
const DEPOSIT = 10n * 10n ** 12n;
const PATH = '/v1/chat/completions';
const EVENTS = [
  '{"choices":[{"delta":{"content":"ok"}}]}',
  '{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}',
  '[DONE]',
].map((data) => `data: ${data}\n\n`);

const json = (status: number, body: unknown): ScriptedReply => ({
  status,
  headers: [['content-type', 'application/json']],
  body: JSON.stringify(body),
});
const usageOf = (usage: unknown): ScriptedReply =>
  json(200, { choices: [{ message: { content: 'ok' } }], usage: usage as object });

/** What the provider does to a key that ends so. */
const BEHAVIOURS: Readonly<Record<string, Script>> = {
  closing: { instead: 'close' },
  resetting: { instead: 'reset' },
  silent: { instead: 'silence' },
  late: { ...json(200, {}), delayMs: 600 },
  refused: json(401, { error: { message: 'Incorrect API key provided' } }),
  failing: json(500, { error: { message: 'We broke' } }),
  negative: usageOf({ prompt_tokens: -5_000_000, completion_tokens: -5_000_000 }),
  huge: usageOf({ prompt_tokens: 1e15, completion_tokens: 1e15 }),
  fractional: usageOf({ prompt_tokens: 0.5, completion_tokens: '4' }),
  wordless: { ...json(200, {}), body: '' },
};

function keyOf(request: ReceivedRequest): string {
  return (request.header('authorization') ?? '').replace('Bearer ', '');
}

function answer(request: ReceivedRequest): Script {
  const behaviour = /^sk-own-\d+-([a-z]+\d*)$/.exec(keyOf(request))?.[1] ?? '';
  const known = BEHAVIOURS[behaviour];
  if (known !== undefined) return known;
  const stream: ScriptedReply = {
    headers: [['content-type', 'text/event-stream']],
    body: EVENTS.join(''),
    framing: 'chunked',
  };
  if (behaviour === 'cut') return { ...stream, fault: { kind: 'cut', afterBytes: EVENTS[0]?.length ?? 0 } };
  if (behaviour === 'stalling') return { ...stream, fault: { kind: 'stall', afterBytes: EVENTS[0]?.length ?? 0 } };
  if (behaviour.startsWith('moved'))
    return { status: Number(behaviour.slice(5)) || 307, headers: [['location', elsewhere.url]], body: '' };
  return request.body.includes('"stream":true')
    ? stream
    : usageOf({ prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 });
}

let elsewhere: FakeUpstream;

describe('requests on own keys, attacked', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let database: pg.Client;
  let made = 0;

  before(async () => {
    elsewhere = await startFakeUpstream(() => json(200, {}));
    upstream = await startFakeUpstream(answer);
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN },
    });
    database = new pg.Client({ connectionString: tollgate.postgresUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await tollgate?.stop();
    await upstream?.close();
    await elsewhere?.close();
  });

  interface World {
    readonly tenant: Tenant;
    readonly key: string;
    readonly ids: readonly string[];
  }

  /** An organization that pays, with a key of its own for each of the behaviours, in their order. */
  async function world(fee: Json, behaviours: readonly string[], more: Json = {}): Promise<World> {
    made += 1;
    const tenant = await Tenant.create(tollgate.url, `attacked-${made}`, 'prepaid');
    const grant = { enabled: true, fee };
    await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, grant);
    const deposit = { organization_id: tenant.id, amount: '10', reference: `attacked-${made}` };
    await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', deposit, 201);
    const ids: string[] = [];
    for (const [at, behaviour] of behaviours.entries()) {
      const secret = `sk-own-${made}${at}-${behaviour}`;
      const body = { kind: 'upstream', name: `${at}`, secret, verify: false, ...more };
      ids.push(String((await tenant.as('POST', '/provider-credentials', body, 201))['id']));
    }
    const { secret: key } = await tenant.addKey();
    return { tenant, key, ids };
  }

  const bodyOf = (stream: boolean): string =>
    JSON.stringify({
      model: 'sim/small',
      max_tokens: 50,
      messages: [{ role: 'user', content: 'hi' }],
      ...(stream ? { stream } : {}),
    });

  const send = (
    { key }: World,
    { stream = false, headers = {} as Readonly<Record<string, string>>, path = PATH } = {},
  ) =>
    httpCall(`${tollgate.url}${path}`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: bodyOf(stream),
      isOffFormat: true,
    });

  /** Leaves as soon as the first byte of the reply is there, or after so long without one. */
  function leave({ key }: World, at: 'first byte' | number): Promise<void> {
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const sent = httpRequest(`${tollgate.url}${PATH}`, { method: 'POST', headers, agent: false });
      sent.on('close', () => resolve());
      sent.on('error', () => undefined);
      sent.on('response', (response) => {
        response.on('error', () => undefined);
        response.once('data', () => sent.destroy());
      });
      sent.end(bodyOf(true));
      if (at !== 'first byte') setTimeout(() => sent.destroy(), at);
    });
  }

  /** What each request was charged, once all are settled; the wallet has nothing held then, and lacks just these. */
  async function chargesOf({ tenant, key }: World, count: number): Promise<readonly number[]> {
    const { rows } = await waitFor(
      `${count} records`,
      () =>
        database.query<{ charge: string; credential_source: string }>(
          `SELECT coalesce(charge, 0)::text AS charge FROM generations
            WHERE organization_id = $1 AND billing_status <> 'pending'`,
          [tenant.id],
        ),
      (found) => found.rows.length === count,
    );
    const charges = rows.map(({ charge }) => BigInt(charge));
    const { balance } = await waitFor(
      'nothing to be held',
      () => ask(tollgate.url, key, 'GET', '/v1/billing/credits'),
      ({ held }) => Number(held) === 0,
    );
    const spent = charges.reduce((sum, charge) => sum + charge, 0n);
    assert.equal(parseUsd(String(balance)), DEPOSIT - spent);
    return charges.map((charge) => Number(charge) / 1e12);
  }

  test('streams that are cut, stall or are left: one fee each where something came, none where nothing did', async () => {
    for (const [behaviour, act, fee] of [
      ['cut', (one: World) => send(one, { stream: true }), FEE],
      ['good', (one: World) => leave(one, 'first byte'), FEE],
      ['stalling', (one: World) => leave(one, 'first byte'), FEE],
      ['silent', (one: World) => leave(one, 600), 0],
      ['late', (one: World) => leave(one, 600), 0],
      ['closing', (one: World) => send(one, { stream: true }), 0],
      ['resetting', (one: World) => send(one, { stream: true }), 0],
      ['wordless', (one: World) => send(one), 0],
    ] as const) {
      const one = await world({ per_request: `${FEE}` }, [behaviour]);
      await Promise.all([act(one), act(one), act(one)]);
      assert.deepEqual(await chargesOf(one, 3), [fee, fee, fee], behaviour);
    }
  });

  test('what becomes of an own key is in no figure of a provider: no organization can page the operator', async () => {
    const ofProviders = async (): Promise<readonly string[]> =>
      (await httpCall(`${tollgate.adminUrl}/metrics`)).body
        .toString()
        .match(/^tollgate_(upstream_errors_total|provider_latency_seconds_count)\{.*$/gm) ?? [];
    const figures = await ofProviders();
    for (const behaviour of ['closing', 'cut', 'good']) {
      const one = await world({ per_request: `${FEE}` }, [behaviour]);
      await send(one, { stream: true });
      await chargesOf(one, 1);
    }
    assert.deepEqual(await ofProviders(), figures);
  });

  test('an attempt that fails before the one that serves: the fee is taken once, or the service is paid and no fee', async () => {
    for (const first of ['failing', 'refused']) {
      const own = await world({ per_request: `${FEE}` }, [first, first, 'good']);
      assert.equal((await send(own, { stream: true })).status, 200, first);
      assert.deepEqual(await chargesOf(own, 1), [FEE], first);
      const service = await world({ per_request: `${FEE}` }, [first], { fallback: 'on' });
      assert.equal((await send(service)).status, 200, first);
      assert.deepEqual(await chargesOf(service, 1), [0.0000525], first);
    }
    // The operator sees both, and nothing of any organization.
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString();
    assert.match(metrics, /\ntollgate_own_key_requests_total\{[^}]*status_class="2xx"[^}]*\} [1-9]/);
    assert.match(metrics, /\ntollgate_own_key_failures_total\{[^}]*reason="key_refused"[^}]*\} [1-9]/);
    // What was sent and not answered may have been done: nobody else is asked to do it again, and it costs nothing.
    for (const first of ['closing', 'resetting']) {
      const one = await world({ per_request: `${FEE}` }, [first, 'good'], { fallback: 'on' });
      assert.equal((await send(one)).status, 502, first);
      assert.deepEqual(await chargesOf(one, 1), [0], first);
    }
  });

  test('a client that sends a request again pays for each, under whatever name, and leaves nothing held', async () => {
    const one = await world({ per_request: `${FEE}` }, ['good']);
    const headers = { 'x-client-request-id': 'the-same', 'idempotency-key': 'the-same' };
    const replies = await Promise.all(Array.from({ length: 5 }, () => send(one, { headers })));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200, 200],
    );
    assert.deepEqual(await chargesOf(one, 5), [FEE, FEE, FEE, FEE, FEE]);
  });

  test('an idempotency key goes as it is to the account of an own key, and never to the one of the service', async () => {
    const one = await world({ per_request: `${FEE}` }, ['refused'], { fallback: 'on' });
    const from = upstream.requests.length;
    assert.equal((await send(one, { headers: { 'idempotency-key': 'the-same' } })).status, 200);
    const [own, service] = upstream.requests.slice(from);
    assert.equal(own?.header('idempotency-key'), 'the-same');
    assert.match(service?.header('idempotency-key') ?? '', /^[0-9a-f]{64}$/);
  });

  test('usage that makes no sense is no credit, and no share above what was held', async () => {
    for (const behaviour of ['negative', 'huge', 'fractional']) {
      const one = await world({ percent: '100' }, [behaviour]);
      assert.equal((await send(one)).status, 200, behaviour);
      const [cost = -1] = await chargesOf(one, 1);
      // At most 50 tokens of output, and no more tokens of input than the body has bytes.
      assert.ok(cost >= 0 && cost <= 0.001, `${behaviour}: ${cost}`);
    }
  });

  test('no header, query or form of authorization of a client chooses, adds or shows a credential', async () => {
    const one = await world({ per_request: `${FEE}` }, ['good', 'good']);
    const mark = 'sk-mark-of-the-client';
    const names = [
      'api-key x-api-key x-goog-api-key x-goog-user-project openai-organization openai-project proxy-authorization',
      'x-amz-security-token x-amz-date cookie x-credential-id x-provider-credential x-provider-key x-byok-key',
      'x-tollgate-credential x-service-credential x-service-tag x-client-request-id helicone-auth x-portkey-api-key',
      'cf-aig-authorization x-forwarded-authorization x-original-authorization x-http-method-override x-forwarded-host',
      'forwarded host-override x-rewrite-url x-original-url x-upstream-url x-base-url',
    ]
      .join(' ')
      .split(' ');
    const from = upstream.requests.length;
    for (const name of names) {
      const { status, headers } = await send(one, { headers: { [name]: mark } });
      assert.ok([200, 400, 401].includes(status), `${name}: ${status}`);
      assert.doesNotMatch(JSON.stringify(headers), /sk-own/, name);
    }
    for (const query of [`?key=${mark}`, `?api_key=${mark}`, `?access_token=${mark}`, `?credential_id=${one.ids[1]}`])
      await send(one, { path: `${PATH}${query}` });
    for (const form of [
      `Basic ${btoa(`x:${mark}`)}`,
      `Token ${mark}`,
      `bearer ${mark}`,
      mark,
      `Bearer ${mark}, Bearer a`,
    ])
      assert.equal((await send(one, { headers: { authorization: form } })).status, 401, form);
    const seen = upstream.requests.slice(from);
    assert.ok(seen.length > names.length / 2);
    for (const request of seen) {
      assert.match(keyOf(request), /^sk-own-\d+0-good$/);
      const head = JSON.stringify([request.path, request.headers]);
      assert.ok(!head.includes(mark), head);
      assert.ok(!head.includes(one.key), head);
    }
    await chargesOf(one, seen.length);
  });

  test('where the host sends elsewhere nobody goes, whatever the status', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const one = await world({ per_request: `${FEE}` }, [`moved${status}`]);
      const reply = await send(one);
      assert.deepEqual([reply.status, reply.headers['location']], [status, undefined]);
      assert.deepEqual(await chargesOf(one, 1), [0], `${status}`);
    }
    assert.equal(elsewhere.requests.length, 0);
  });

  test('what the platform takes back holds at once: keys stay, serve nothing, and the service does not step in', async () => {
    const one = await world({ per_request: `${FEE}` }, ['good']);
    assert.equal((await send(one)).status, 200);
    const grant = `/v1/admin/organizations/${one.tenant.id}/byok`;
    let sent = 1;
    for (const [closed, open] of [
      [{ kinds: ['groq'] }, { kinds: null }],
      [{ kinds: [] }, { kinds: null }],
      [{ enabled: false }, { enabled: true }],
    ]) {
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', grant, closed);
      const from = upstream.requests.length;
      await waitFor(
        'the gateway to hear of it',
        async () => {
          sent += 1;
          return (await send(one)).status;
        },
        (status) => status === 503,
      );
      assert.ok(upstream.requests.slice(from).every((request) => keyOf(request) !== PROVIDER_KEY));
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', grant, open);
      await waitFor(
        'the gateway to hear of it again',
        async () => {
          sent += 1;
          return (await send(one)).status;
        },
        (status) => status === 200,
      );
    }
    assert.equal((await chargesOf(one, sent)).length, sent);
  });

  test('lesser roles, an inference key and nobody read and change nothing on any route', async () => {
    const { tenant, key, ids } = await world({ per_request: `${FEE}` }, ['good']);
    const team = { id: await tenant.addTeam(), role: 'admin' } as const;
    const tokens = [
      (await tenant.addPerson('member')).token,
      (await tenant.addPerson('member', team)).token,
      key,
      '',
    ] as const;
    const credential = `/provider-credentials/${String(ids[0])}`;
    const routes: readonly (readonly [method: string, path: string, body?: Json])[] = [
      ['GET', '/provider-credentials'],
      ['POST', '/provider-credentials', { kind: 'upstream', name: 'theirs', secret: 'sk-theirs', verify: false }],
      ['GET', credential],
      ['PATCH', credential, { place: 'after' }],
      ['DELETE', credential],
      ['POST', `${credential}/verify`],
      ['POST', `${credential}/rotate`, { secret: 'sk-theirs', verify: false }],
      ['GET', '/byok-templates'],
      ['GET', '/byok/settings'],
      ['PATCH', '/byok/settings', { fallback: true }],
      ['GET', '/byok/order'],
      ['PUT', '/byok/order', { kind: 'upstream', before: [], after: ids }],
      ['GET', '/byok/usage?start_date=2026-01-01&end_date=2026-01-02'],
      ['GET', '/byok/explain?model=sim/small&api=chat_completions'],
      ['GET', '/model-prices'],
      ['GET', '/model-prices/sim/small'],
      ['PUT', '/model-prices/sim/small', { input: '0', output: '0' }],
      ['DELETE', '/model-prices/sim/small'],
    ];
    const all = routes.map(([method, path, body]) => [method, `/v1/admin/active-org${path}`, body] as const);
    const grant = `/v1/admin/organizations/${tenant.id}/byok`;
    const before = await tenant.as('GET', '/provider-credentials');
    const asked = upstream.requests.length;
    for (const token of [...tokens, tenant.owner.token]) {
      const own = [['GET', grant, undefined] as const, ['PATCH', grant, { fee: null }] as const];
      for (const [method, path, body] of token === tenant.owner.token ? own : [...all, ...own]) {
        const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
        const content = body === undefined ? {} : { body: JSON.stringify(body) };
        const { status } = await httpCall(`${tollgate.url}${path}`, { method, headers, ...content });
        assert.ok(status === 401 || status === 403, `${method} ${path}: ${status}`);
      }
    }
    assert.deepEqual(await tenant.as('GET', '/provider-credentials'), before);
    assert.equal((await tenant.as('GET', '/byok/settings'))['fallback'], false);
    assert.equal(upstream.requests.length, asked);
  });
});
