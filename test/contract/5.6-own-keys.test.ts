// Spec 5.6 and 7.4: who serves a request of an organization that has provider keys of its own, what its client is told,
// what is charged and what is recorded, for each answer that an own key can get.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { howMany } from '../support/at-length.ts';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Front, startFront } from '../support/front.ts';
import { CONTRACT_MODELS } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import type { ReceivedRequest } from '../support/request-reader.ts';
import { PROVIDER_KEY, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

/** Of each dialect: its path, a request, a reply with 10 tokens in and 4 out, whole and as a stream. */
const DIALECTS = {
  chat: {
    path: '/v1/chat/completions',
    body: { model: 'sim/small', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] },
    whole: { choices: [{ message: { content: 'ok' } }], usage: { prompt_tokens: 10, completion_tokens: 4 } },
    events: [
      '{"choices":[{"delta":{"content":"ok"}}]}',
      '{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}',
      '[DONE]',
    ],
  },
  responses: {
    path: '/v1/responses',
    body: { model: 'sim/small', max_output_tokens: 50, input: 'hi' },
    whole: {
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      output: [],
      usage: { input_tokens: 10, output_tokens: 4 },
    },
    events: [
      JSON.stringify({
        type: 'response.completed',
        response: { id: 'resp_1', status: 'completed', output: [], usage: { input_tokens: 10, output_tokens: 4 } },
      }),
    ],
  },
  messages: {
    path: '/v1/messages',
    body: { model: 'sim/small', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] },
    whole: { type: 'message', content: [{ type: 'text', text: 'ok' }], usage: { input_tokens: 10, output_tokens: 4 } },
    events: [
      '{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}',
      '{"type":"message_stop"}',
    ],
  },
} as const;
type DialectName = keyof typeof DIALECTS;
const DIALECT_NAMES = Object.keys(DIALECTS) as DialectName[];

/** What a provider answers to a key that ends so. */
const ANSWERS: Readonly<Record<string, Script>> = {
  refused: { status: 401, body: '{"error":{"message":"Incorrect API key provided: sk-own-****"}}' },
  scope: { status: 403, body: '{"error":{"message":"You have insufficient permissions for this operation."}}' },
  spent: { status: 402, body: '{"error":{"message":"Insufficient balance"}}' },
  quota: { status: 429, body: '{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}' },
  rate: {
    status: 429,
    headers: [
      ['content-type', 'application/json'],
      ['retry-after', '20'],
    ],
    body: '{"error":{"message":"Slow down"}}',
  },
  failing: { status: 500, body: '{"error":{"message":"We broke"}}' },
  elsewhere: { status: 302, headers: [['location', 'http://127.0.0.1:9/']], body: '' },
  wrong: { status: 400, body: '{"error":{"message":"Invalid value: max_tokens"}}' },
};
/** Those that the matrix below has no row for. */
const BESIDE = new Set(['elsewhere']);
/** Whose own answer the client gets where nobody else may serve; to all others byok_key_unavailable. */
const RELAYED: Readonly<Record<string, number>> = { rate: 429, failing: 500, wrong: 400 };
/** Where the request itself is at fault nobody else is asked. */
const OF_THE_REQUEST = 'wrong';
const REASONS: Readonly<Record<string, string>> = {
  refused: 'key_refused',
  scope: 'model_not_permitted',
  spent: 'quota_exhausted',
  quota: 'quota_exhausted',
  rate: 'rate_limited',
  failing: 'provider_failed',
};

/** How organizations are billed, and what a request costs each that the service serves. */
const BILLINGS = {
  free: { service: 0 },
  billed: { service: 0.0000525 },
  percent: { service: 0.0000525 },
  request: { service: 0.0000525 },
} as const;
type BillingName = keyof typeof BILLINGS;

function served({ path, body }: ReceivedRequest): Script {
  const dialect = Object.values(DIALECTS).find((one) => path.startsWith(one.path)) ?? DIALECTS.chat;
  const isStream = body.includes('"stream":true');
  if (!isStream) return { headers: [['content-type', 'application/json']], body: JSON.stringify(dialect.whole) };
  const named = dialect.path === '/v1/chat/completions' ? '' : null;
  const events = dialect.events.map((data) =>
    named === null ? `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n` : `data: ${data}\n\n`,
  );
  return { headers: [['content-type', 'text/event-stream']], body: events.join(''), framing: 'chunked' };
}

function keyOf(request: ReceivedRequest): string {
  return (request.header('authorization') ?? '').replace('Bearer ', '');
}

function answer(request: ReceivedRequest): Script {
  const behaviour = /^sk-own-(?:\d+-)?([a-z]+)$/.exec(keyOf(request))?.[1] ?? '';
  const cut = { kind: 'cut', afterBytes: 40 } as const;
  if (behaviour === 'cut') return { ...(served(request) as ScriptedReply), fault: cut };
  return ANSWERS[behaviour] ?? served(request);
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly id: string;
  readonly location: string | undefined;
  readonly isWhole: boolean;
}

const FORMS = [false, true] as const;
const FORMS_APART = howMany({ short: 2, long: 1 });

/** Each answer comes to each dialect, as a stream or whole by turns; at length as both. */
function isTried(answerIndex: number, dialect: DialectName, stream: boolean): boolean {
  return (answerIndex + DIALECT_NAMES.indexOf(dialect) + Number(stream)) % FORMS_APART === 0;
}

describe('own provider keys at work', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  const tenants = new Map<string, { tenant: Tenant; key: string }>();
  let made = 0;

  before(async () => {
    upstream = await startFakeUpstream(answer);
    const yaml = testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS });
    const nowhere = `  - { id: nowhere, base_url: "http://127.0.0.1:${await findFreePort()}", api_key: sk-nobody }\n`;
    const served = `  - id: sim/nowhere
    kind: text
    context_length: 1000
    tokenizer: o200k_base
    served_by: [{ provider: nowhere, model: m, apis: [chat_completions] }]\n`;
    tollgate = await startFront({
      configurationYaml: yaml
        .replace('providers:\n', `providers:\n${nowhere}`)
        .replace('models:\n', `models:\n${served}`),
      env: { ADMIN_TOKEN },
    });
    await addTenant('free', 'none', null);
    await addTenant('billed', 'prepaid', null);
    await addTenant('percent', 'prepaid', { percent: '10' });
    await addTenant('request', 'prepaid', { per_request: '0.001' });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  async function addTenant(name: string, billing: 'none' | 'prepaid', fee: Json | null, amount = '10'): Promise<void> {
    const tenant = await Tenant.create(tollgate.url, `own-${name}`, billing);
    await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, { enabled: true, fee });
    if (billing === 'prepaid')
      await ask(
        tollgate.url,
        ADMIN_TOKEN,
        'POST',
        '/v1/billing/deposits',
        { organization_id: tenant.id, amount, reference: `own-${name}` },
        201,
      );
    const { secret } = await tenant.as('POST', '/keys', { name: 'ci' }, 201);
    tenants.set(name, { tenant, key: String(secret) });
  }

  /** Stores an own key that its provider answers so, alone in its organization, and gives it to `work`. */
  async function withKeys<T>(
    name: string,
    fields: readonly Json[],
    work: (ids: readonly string[]) => Promise<T>,
  ): Promise<T> {
    const { tenant } = tenants.get(name) as { tenant: Tenant };
    const ids: string[] = [];
    for (const more of fields) {
      made += 1;
      const { behaviour, ...others } = more;
      const secret = `sk-own-${made}-${String(behaviour)}`;
      const key = { kind: 'upstream', name: `key ${made}`, secret, verify: false, ...others };
      ids.push(String((await tenant.as('POST', '/provider-credentials', key, 201))['id']));
    }
    try {
      await followed(name);
      return await work(ids);
    } finally {
      // Whoever stores the next key waits until this was heard of, too.
      for (const id of ids) await tenant.as('DELETE', `/provider-credentials/${id}`);
    }
  }

  /** In the organizations of every way to bill, at once. */
  async function ofEachBilling(
    fields: readonly Json[],
    work: (name: BillingName, ids: readonly string[]) => Promise<void>,
  ): Promise<void> {
    const names = Object.keys(BILLINGS) as BillingName[];
    await Promise.all(names.map((name) => withKeys(name, fields, (ids) => work(name, ids))));
  }

  /**
   * What the gateway explains is of the store, so that nothing tells when it has heard of a change. Changes are heard
   * in their order: a gateway that has forgotten a key which was revoked after them has heard of them.
   */
  async function followed(name: string): Promise<void> {
    const { tenant } = tenants.get(name) as { tenant: Tenant };
    const { id, secret } = await tenant.as('POST', '/keys', { name: 'revoked' }, 201);
    const statusOf = async () =>
      (await httpCall(`${tollgate.url}/v1/models`, { headers: { authorization: `Bearer ${String(secret)}` } })).status;
    assert.equal(await statusOf(), 200);
    await tenant.as('DELETE', `/keys/${String(id)}`);
    await waitFor('the gateway to hear of it', statusOf, (status) => status === 401);
  }

  async function send(name: string, dialect: DialectName, stream: boolean, more: Json = {}): Promise<Reply> {
    const { key } = tenants.get(name) as { key: string };
    const { path, body } = DIALECTS[dialect];
    const reply = await httpCall(`${tollgate.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, ...(stream ? { stream: true } : {}), ...more }).replace(
        '"hi"',
        `"hi of ${name}"`,
      ),
    });
    return {
      status: reply.status,
      text: reply.body.toString(),
      id: String(reply.headers['x-service-execution-id'] ?? ''),
      location: reply.headers['location'],
      isWhole: reply.complete,
    };
  }

  async function record(name: string, id: string): Promise<Json> {
    const { key } = tenants.get(name) as { key: string };
    return waitFor(
      `the record of ${id}`,
      async () => {
        const reply = await httpCall(`${tollgate.url}/v1/generation?id=${id}`, {
          headers: { authorization: `Bearer ${key}` },
        });
        return reply.status === 200 ? (JSON.parse(reply.body.toString()) as { data: Json }).data : null;
      },
      (found): found is Json => found !== null && found['billing_status'] !== 'pending',
    ) as Promise<Json>;
  }

  /** All, or those of an organization. A gateway asks about a key that was refused, by a GET. */
  function callsSince(from: number, name?: string): readonly string[] {
    const generations = upstream.requests
      .slice(from)
      .filter(({ method, body }) => method === 'POST' && (name === undefined || body.includes(`"hi of ${name}"`)));
    return generations.map((request) => (keyOf(request) === PROVIDER_KEY ? 'service' : 'own'));
  }

  function assertUnavailable(dialect: DialectName, { status, text }: Reply): void {
    assert.equal(status, 503, text);
    const body = JSON.parse(text) as { error: Json; type?: string };
    const { type, code } = body.error as { type: string; code: string };
    if (dialect === 'chat') assert.deepEqual([type, code], ['byok_key_unavailable', 'byok_key_unavailable']);
    else if (dialect === 'messages') assert.deepEqual([body.type, type], ['error', 'byok_key_unavailable']);
    else assert.deepEqual([type, code], ['server_error', 'byok_key_unavailable']);
    assert.doesNotMatch(text, /sk-own/);
  }

  for (const [index, behaviour] of Object.keys(ANSWERS)
    .filter((name) => !BESIDE.has(name))
    .entries()) {
    describe(`a key that is answered so: ${behaviour}`, () => {
      for (const dialect of DIALECT_NAMES) {
        for (const stream of FORMS.filter((form) => isTried(index, dialect, form))) {
          test(`${dialect}${stream ? ', a stream' : ''}: the service does not step in unasked`, () =>
            ofEachBilling([{ behaviour }], async (name, [id]) => {
              const from = upstream.requests.length;
              const reply = await send(name, dialect, stream);
              assert.deepEqual(callsSince(from, name), ['own'], name);
              const relayed = RELAYED[behaviour];
              if (relayed === undefined) assertUnavailable(dialect, reply);
              else
                assert.deepEqual([reply.status, reply.text], [relayed, (ANSWERS[behaviour] as { body: string }).body]);
              const found = await record(name, reply.id);
              assert.deepEqual(
                [found['credential_source'], found['credential_id'], found['total_cost'], found['fee'] ?? 0],
                ['own', id, 0, 0],
                name,
              );
              // Spec 3.1's matrix of outcomes: what a provider refuses or fails costs nothing, not even a fee.
              assert.equal(found['billing_status'], 'not_billed', name);
              const failures = (found['own_failures'] ?? []) as Json[];
              const reason = REASONS[behaviour];
              assert.deepEqual(
                failures.map((failure) => failure['reason']),
                reason === undefined ? [] : [reason],
              );
            }));

          test(`${dialect}${stream ? ', a stream' : ''}: the service steps in where it may`, () =>
            ofEachBilling([{ behaviour, fallback: 'on' }], async (name, [id]) => {
              const from = upstream.requests.length;
              const reply = await send(name, dialect, stream);
              const found = await record(name, reply.id);
              if (behaviour === OF_THE_REQUEST) {
                assert.deepEqual([reply.status, callsSince(from, name)], [400, ['own']]);
                return;
              }
              assert.equal(reply.status, 200, reply.text);
              assert.deepEqual(callsSince(from, name), ['own', 'service']);
              assert.deepEqual([found['credential_source'], found['credential_id']], ['service', undefined]);
              // What the service serves is charged as if there were no own keys, and has no fee.
              const { service } = BILLINGS[name];
              assert.deepEqual(
                [found['billing_status'], found['total_cost'], found['fee'] ?? 0],
                [service === 0 ? 'not_billed' : 'final', service, 0],
                name,
              );
              assert.deepEqual(
                ((found['own_failures'] ?? []) as Json[]).map((failure) => failure['credential_id']),
                [id],
              );
            }));
        }
      }
    });
  }

  describe('what is charged for a request on an own key', () => {
    for (const [name, status, cost] of [
      ['free', 'not_billed', 0],
      ['billed', 'not_billed', 0],
      ['percent', 'final', 0.00000525],
      ['request', 'final', 0.001],
    ] as const) {
      for (const dialect of DIALECT_NAMES) {
        for (const stream of [false, true]) {
          test(`${name}, ${dialect}${stream ? ', a stream' : ''}`, () =>
            withKeys(name, [{ behaviour: 'good' }], async ([id]) => {
              const from = upstream.requests.length;
              const reply = await send(name, dialect, stream);
              assert.equal(reply.status, 200, reply.text);
              assert.deepEqual(callsSince(from), ['own']);
              const found = await record(name, reply.id);
              assert.deepEqual(
                [found['billing_status'], found['total_cost'], found['rated_cost'], found['credential_id']],
                [status, cost, 0.0000525, id],
              );
              assert.deepEqual(found['fee'], cost === 0 ? undefined : cost);
            }));
        }
      }
    }

    test('without credit the own key serves all the same, and its fallback is refused', async () => {
      await addTenant('poor', 'prepaid', null);
      const { tenant } = tenants.get('poor') as { tenant: Tenant };
      const spent = await ask(tollgate.url, ADMIN_TOKEN, 'GET', `/v1/admin/organizations/${tenant.id}/wallets`);
      assert.ok(spent !== null);
      await withKeys('poor', [{ behaviour: 'good', fallback: 'on' }], async () => {
        // Ten dollars do not cover a million tokens of output.
        const reply = await send('poor', 'chat', false, { max_tokens: 4_000, model: 'sim/uncapped' });
        assert.equal(reply.status, 200, reply.text);
      });
    });

    test('a wallet that affords three fees pays three of many requests at once, and nobody is asked for more', async () => {
      await addTenant('exact', 'prepaid', { per_request: '0.001' }, '0.003');
      for (const fallback of ['off', 'on'])
        await withKeys('exact', [{ behaviour: 'good', fallback }], async () => {
          const from = upstream.requests.length;
          const replies = await Promise.all(Array.from({ length: 12 }, () => send('exact', 'chat', true)));
          const statuses = Map.groupBy(replies, ({ status }) => status);
          // With the second key the wallet is empty.
          const paid = fallback === 'off' ? 3 : 0;
          assert.equal(statuses.get(200)?.length ?? 0, paid, [...statuses.keys()].join());
          assert.equal(statuses.get(402)?.length, 12 - paid);
          assert.deepEqual(
            callsSince(from),
            Array.from({ length: paid }, () => 'own'),
          );
          for (const { id } of statuses.get(200) ?? []) assert.equal((await record('exact', id))['total_cost'], 0.001);
        });
    });

    test('a stream that breaks off after its first byte is nobody else’s to go on with', () =>
      withKeys('request', [{ behaviour: 'cut', fallback: 'on' }, { behaviour: 'good' }], async ([id]) => {
        const from = upstream.requests.length;
        const cut = await send('request', 'chat', true);
        assert.deepEqual([cut.status, cut.isWhole, callsSince(from)], [200, false, ['own']]);
        assert.equal((await record('request', cut.id))['credential_id'], id);
      }));

    test('a host that sends elsewhere is not followed, and its answer is its own', () =>
      withKeys('billed', [{ behaviour: 'elsewhere' }], async () => {
        const from = upstream.requests.length;
        const reply = await send('billed', 'chat', false);
        assert.deepEqual([reply.status, callsSince(from)], [302, ['own']]);
        assert.equal(reply.location, undefined);
      }));

    test('an output without a bound is no matter where only own keys serve', () =>
      withKeys('billed', [{ behaviour: 'good' }], async () => {
        const { key } = tenants.get('billed') as { key: string };
        const reply = await httpCall(`${tollgate.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'sim/uncapped', messages: [{ role: 'user', content: 'hi' }] }),
        });
        assert.equal(reply.status, 200, reply.body.toString());
      }));
  });

  describe('order', () => {
    test('keys before the service, by position, then the service, then keys behind it', () =>
      withKeys(
        'billed',
        [
          { behaviour: 'failing', fallback: 'on' },
          { behaviour: 'spent', fallback: 'on' },
          { behaviour: 'good', place: 'after', fallback: 'on' },
        ],
        async () => {
          const from = upstream.requests.length;
          assert.equal((await send('billed', 'chat', false)).status, 200);
          assert.deepEqual(callsSince(from), ['own', 'own', 'service']);
        },
      ));

    test('a key that was refused is not tried again at once; another one serves', () =>
      withKeys('billed', [{ behaviour: 'refused' }, { behaviour: 'good' }], async ([id]) => {
        const from = upstream.requests.length;
        assert.equal((await send('billed', 'chat', false)).status, 200);
        const second = await send('billed', 'messages', false);
        assert.equal(second.status, 200);
        assert.deepEqual(callsSince(from), ['own', 'own', 'own']);
        const { own_failures } = await record('billed', second.id);
        assert.deepEqual(own_failures, [{ credential_id: id, reason: 'key_refused', status: null }]);
      }));

    test('all own keys cooling down for their rate: 429 with Retry-After, and nobody is called', () =>
      withKeys('billed', [{ behaviour: 'rate' }], async ([id]) => {
        assert.equal((await send('billed', 'chat', false)).status, 429);
        const from = upstream.requests.length;
        const reply = await send('billed', 'chat', false);
        assert.equal(reply.status, 429);
        assert.match(reply.text, /upstream_cooldown/);
        assert.deepEqual(callsSince(from), []);
        const { own_failures } = await record('billed', reply.id);
        assert.deepEqual(own_failures, [{ credential_id: id, reason: 'rate_limited', status: null }]);
      }));

    test('a key whose account is spent cools down, which is shown, until its provider is asked again', () =>
      withKeys('billed', [{ behaviour: 'spent' }], async ([id]) => {
        const { tenant } = tenants.get('billed') as { tenant: Tenant };
        const path = `/provider-credentials/${String(id)}`;
        const explain = () => tenant.as('GET', '/byok/explain?model=sim/small&api=chat_completions');
        const first = await send('billed', 'chat', false);
        assertUnavailable('chat', first);
        const shown = await waitFor(
          'the key to cool down',
          () => tenant.as('GET', path) as Promise<Json>,
          ({ state }) => state === 'cooling_down',
        );
        assert.match(String(shown['state_reason']), /no credit or quota/);
        const restsMs = Date.parse(String(shown['state_until'])) - Date.now();
        assert.ok(restsMs > 4 * 60_000 && restsMs <= 5 * 60_000, `${restsMs}`);
        const { not_tried, refusal } = await explain();
        assert.deepEqual(
          [(not_tried as Json[]).map(({ reason }) => reason), refusal],
          [['quota_exhausted'], 'byok_key_unavailable'],
        );
        // The store's word holds also in a process that has met nothing of it itself.
        await tenant.as('PATCH', '/byok/settings', { budgets: 'fee' });
        await followed('billed');
        const from = upstream.requests.length;
        const second = await send('billed', 'chat', false);
        assertUnavailable('chat', second);
        assert.deepEqual(callsSince(from), []);
        const { own_failures } = await record('billed', second.id);
        assert.deepEqual(own_failures, [{ credential_id: id, reason: 'quota_exhausted', status: null }]);
        const verified = await tenant.as('POST', `${path}/verify`);
        assert.deepEqual([verified['state'], verified['state_until']], ['active', null]);
        await followed('billed');
        assertUnavailable('chat', await send('billed', 'chat', false));
        assert.deepEqual(callsSince(from), ['own']);
      }));

    test('a key that rests for its rate is explained so', () =>
      withKeys('billed', [{ behaviour: 'rate' }], async () => {
        const { tenant } = tenants.get('billed') as { tenant: Tenant };
        assert.equal((await send('billed', 'chat', false)).status, 429);
        const { attempts, not_tried, refusal } = await tenant.as(
          'GET',
          '/byok/explain?model=sim/small&api=chat_completions',
        );
        assert.deepEqual(
          [attempts, (not_tried as Json[]).map(({ reason }) => reason), refusal],
          [[], ['rate_limited'], 'upstream_cooldown'],
        );
      }));

    test('a key of one organization is never called for another', () =>
      withKeys('billed', [{ behaviour: 'good' }], async () => {
        const from = upstream.requests.length;
        assert.equal((await send('free', 'chat', false)).status, 200);
        assert.deepEqual(callsSince(from), ['service']);
      }));

    test('an own key whose provider cannot be reached cannot serve', () =>
      withKeys('free', [{ behaviour: 'good', kind: 'nowhere' }], async ([id]) => {
        const reply = await send('free', 'chat', false, { model: 'sim/nowhere' });
        assertUnavailable('chat', reply);
        const { own_failures } = await record('free', reply.id);
        assert.deepEqual(own_failures, [{ credential_id: id, reason: 'provider_failed', status: null }]);
      }));

    test('during a rotation the secret before is tried where the new one is refused', () =>
      withKeys('billed', [{ behaviour: 'good' }], async ([id]) => {
        const { tenant } = tenants.get('billed') as { tenant: Tenant };
        const rotation = { secret: 'sk-own-refused', overlap_seconds: 600, verify: false };
        await tenant.as('POST', `/provider-credentials/${String(id)}/rotate`, rotation);
        await followed('billed');
        const from = upstream.requests.length;
        assert.equal((await send('billed', 'chat', false)).status, 200);
        assert.deepEqual(callsSince(from), ['own', 'own']);
        // Which rests by now, and the secret before serves on.
        assert.equal((await send('billed', 'messages', false)).status, 200);
        assert.equal((await send('billed', 'chat', true)).status, 200);
        assert.deepEqual(callsSince(from), ['own', 'own', 'own', 'own']);
      }));

    test('what two organizations meet with keys of their own at an address keeps no third from it', async () => {
      await addTenant('bystander', 'prepaid', null);
      const fail = async (name: string) => {
        await withKeys(name, [{ behaviour: 'failing' }], async () => {
          for (let sent = 0; sent < 4; sent += 1) assert.equal((await send(name, 'chat', false)).status, 500);
        });
      };
      await fail('billed');
      await fail('percent');
      await withKeys('bystander', [{ behaviour: 'good', fallback: 'on' }], async () => {
        const from = upstream.requests.length;
        assert.equal((await send('bystander', 'chat', false)).status, 200);
        assert.deepEqual(callsSince(from), ['own']);
      });
    });
  });

  test('a saved response is read and continued with the key that made it, and gone with it', async () => {
    const { key } = tenants.get('billed') as { key: string };
    const read = (): Promise<{ status: number }> =>
      httpCall(`${tollgate.url}/v1/responses/resp_1`, { headers: { authorization: `Bearer ${key}` } });
    await withKeys('billed', [{ behaviour: 'good' }, { behaviour: 'good' }], async () => {
      assert.equal((await send('billed', 'responses', false)).status, 200);
      const maker = keyOf(upstream.requests.at(-1) as ReceivedRequest);
      assert.equal((await read()).status, 200);
      assert.equal(keyOf(upstream.requests.at(-1) as ReceivedRequest), maker);
      assert.equal((await send('billed', 'responses', false, { previous_response_id: 'resp_1' })).status, 200);
      assert.equal(keyOf(upstream.requests.at(-1) as ReceivedRequest), maker);
    });
    assert.equal((await read()).status, 503);
    assertUnavailable('responses', await send('billed', 'responses', false, { previous_response_id: 'resp_1' }));
  });
});
