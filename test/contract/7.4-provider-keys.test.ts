// Spec 7.4: the routes that manage own provider keys, on an installation and a provider that knows some keys. Their
// seven codes, what is stored, what is shown, and that nothing else is.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { type FakeUpstream, ONE_TOKEN_REPLY, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import type { ReceivedRequest } from '../support/request-reader.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const GOOD = 'sk-good-0123456789-planted-mark-4711';
const BAD = 'sk-bad-0123456789-planted-mark-4712';
const CODES: Readonly<Record<string, number>> = {
  invalid_request: 400,
  byok_disabled: 403,
  byok_kind_not_allowed: 403,
  not_found: 404,
  key_rejected: 422,
  byok_encryption_unconfigured: 503,
};
const PATH = '/v1/admin/active-org';
const CREDENTIALS = `${PATH}/provider-credentials`;

function answer(request: ReceivedRequest): Script {
  const key = request.header('authorization') ?? '';
  if (key === `Bearer ${BAD}`) return { status: 401, body: '{"error":{"message":"Incorrect API key"}}' };
  if (key.startsWith('Bearer sk-silent')) return { instead: 'close' };
  return request.path.endsWith('/chat/completions') ? { body: JSON.stringify(COMPLETION) } : ONE_TOKEN_REPLY;
}

const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

describe('own provider keys', () => {
  let upstream: FakeUpstream;
  /** Answers anybody, and counts. */
  let open: Server;
  let answered = 0;
  let tollgate: Front;
  let tenant: Tenant;
  let stranger: Tenant;
  const grant = (id: string, body: Json) =>
    ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${id}/byok`, body);

  before(async () => {
    upstream = await startFakeUpstream(answer);
    const yaml = testConfiguration({ upstreamUrl: upstream.url });
    const nowhere = `  - { id: nowhere, base_url: "http://127.0.0.1:${await findFreePort()}", api_key: sk-nobody }\n`;
    open = createServer((_, response) => {
      answered += 1;
      response.setHeader('content-type', 'application/json').end('{"data":[]}');
    });
    await new Promise<void>((resolve) => open.listen(0, '127.0.0.1', resolve));
    const openUrl = `http://127.0.0.1:${(open.address() as AddressInfo).port}`;
    const opened = `  - { id: open, base_url: "${openUrl}", api_key: sk-nobody }\n`;
    const served = `  - id: sim/open
    kind: text
    context_length: 1000
    tokenizer: o200k_base
    served_by: [{ provider: open, model: m, apis: [chat_completions] }]
  - id: sim/everywhere
    kind: text
    context_length: 1000
    tokenizer: o200k_base
    served_by: [{ provider: upstream, model: m, apis: [chat_completions, messages, responses] }]\n`;
    tollgate = await startFront({
      configurationYaml: yaml
        .replace('providers:\n', `providers:\n${nowhere}${opened}`)
        .replace('models:\n', `models:\n${served}`),
      env: { ADMIN_TOKEN },
    });
    tenant = await Tenant.create(tollgate.url, 'keyed');
    stranger = await Tenant.create(tollgate.url, 'strange');
    await grant(tenant.id, { enabled: true });
    await grant(stranger.id, { enabled: true });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
    open?.closeAllConnections();
    open?.close();
  });

  const call = async (method: string, path: string, body?: Json | string, as = tenant) => {
    const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const headers = { authorization: `Bearer ${as.owner.token}` };
    const reply = await httpCall(`${tollgate.url}${path}`, { method, headers, ...content });
    const text = reply.body.toString();
    assert.doesNotMatch(text, /planted-mark/);
    return { status: reply.status, body: JSON.parse(text) as Json, data: (JSON.parse(text) as { data: Json }).data };
  };
  const refused = async (code: string, method: string, path: string, body?: Json | string, as = tenant) => {
    const reply = await call(method, path, body, as);
    assert.deepEqual([reply.status, reply.body['code']], [CODES[code], code], JSON.stringify(reply.body));
    assert.deepEqual(Object.keys(reply.body), ['code', 'error', 'request_id']);
    return String(reply.body['error']);
  };
  let made = 0;
  const wanted = (fields: Json = {}): Json => ({
    kind: 'upstream',
    name: `key ${(made += 1)}`,
    secret: GOOD,
    ...fields,
  });
  const create = async (fields: Json = {}, as = tenant) => {
    const reply = await call('POST', CREDENTIALS, wanted(fields), as);
    assert.equal(reply.status, 201, JSON.stringify(reply.body));
    return reply.data;
  };

  test('a key that its provider accepts is stored and never shown again', async () => {
    const asked = upstream.requests.length;
    const key = await create();
    assert.deepEqual(
      [key['state'], key['label'], key['fallback'], key['place']],
      ['active', '…4711', 'inherit', 'before'],
    );
    assert.match(String(key['fingerprint']), /^[0-9a-f]{8}$/);
    const verifying = upstream.requests.slice(asked).map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(verifying, ['GET /v1/models']);
    assert.deepEqual((await call('GET', `${CREDENTIALS}/${String(key['id'])}`)).data, key);
    assert.equal((await create())['fingerprint'], key['fingerprint']);
    assert.notEqual((await create({ secret: `${GOOD}x` }))['fingerprint'], key['fingerprint']);
  });

  test('key_rejected: refused, or silent; stored all the same when it is not to be verified', async () => {
    await refused('key_rejected', 'POST', CREDENTIALS, wanted({ secret: BAD }));
    await refused('key_rejected', 'POST', CREDENTIALS, wanted({ secret: 'sk-silent' }));
    const key = await create({ secret: BAD, verify: false });
    assert.equal(key['state'], 'unverified');
    await refused('key_rejected', 'POST', `${CREDENTIALS}/${String(key['id'])}/verify`);
    assert.equal((await call('GET', `${CREDENTIALS}/${String(key['id'])}`)).data['state'], 'invalid');
  });

  test('model_map names a model without a price while the fee is a share of one: invalid_request', async () => {
    const unpriced = { model_map: { 'sim/small': 'dear-model' } };
    await grant(tenant.id, { fee: { percent: '5' } });
    await refused('invalid_request', 'POST', CREDENTIALS, wanted(unpriced));
    const key = await create({ model_map: { 'sim/small': 'sim-large' } });
    const path = `${CREDENTIALS}/${String(key['id'])}`;
    await refused('invalid_request', 'PATCH', path, unpriced);
    await grant(tenant.id, { fee: null });
    assert.equal((await call('PATCH', path, unpriced)).status, 200);
  });

  test('a provider that answers a key that nobody has proves nothing', async () => {
    const key = await create({ kind: 'open' });
    assert.equal(key['state'], 'unverified');
    assert.match(String(key['state_reason']), /accepts any key/);
    const calls = answered;
    assert.equal((await create({ kind: 'open' }))['state'], 'unverified');
    // It is asked so once a day.
    assert.equal(answered, calls + 1);
  });

  test('invalid_request: a field, JSON, a name that is taken, what is not in the organization', async () => {
    const { name } = await create();
    const foreignTeam = await stranger.addTeam();
    const bodies: (Json | string)[] = [
      '{',
      '[]',
      {},
      wanted({ secret: 'has a space' }),
      wanted({ secret: '' }),
      wanted({ name }),
      wanted({ name: 'a\u0000b' }),
      wanted({ unknown: 1 }),
      wanted({ models: ['no/such'] }),
      wanted({ teams: [foreignTeam] }),
      wanted({ kind: 'nobody' }),
      wanted({ kind: 'azure' }),
      wanted({ kind: 'azure', settings: { resource: '../etc' } }),
      wanted({ base_url: 'https://elsewhere.test' }),
      wanted({ place: 'beside' }),
      wanted({ expires_at: '2020-01-01T00:00:00Z' }),
      wanted({ model_map: { 'a b': 'c' } }),
    ];
    for (const body of bodies) await refused('invalid_request', 'POST', CREDENTIALS, body);
  });

  test('invalid_request: a custom host that cannot be called, also when nobody is asked there', async () => {
    await grant(stranger.id, { custom_base_url: true });
    const hosts = ['127.0.0.1', '0x7f.1', '2130706433', '127.0.0.1.', '[::1]', '[::ffff:7f00:1]', '10.0.0.1'];
    const more = ['localhost', 'a.localhost', 'LOCALHOST.', '169.254.169.254', '[64:ff9b::a00:1]', 'llm.test:8443'];
    for (const host of [...hosts, ...more]) {
      const body = wanted({ kind: 'custom', base_url: `https://${host}/v1`, verify: false });
      assert.match(
        await refused('invalid_request', 'POST', CREDENTIALS, body, stranger),
        /"base_url" is not valid: it (must not|has a port)/,
        host,
      );
    }
    for (const host of ['llm.test', '93.184.216.34', 'llm.test:443', 'localhost.llm.test', '127.0.0.1.llm.test'])
      await create({ kind: 'custom', base_url: `https://${host}/v1`, verify: false }, stranger);
    await grant(stranger.id, { custom_base_url: false });
  });

  test('not_found: what is absent and what is another organization’s look the same', async () => {
    const foreign = await create({}, stranger);
    const words = new Set<string>();
    for (const id of [String(foreign['id']), '00000000-0000-4000-8000-000000000000', 'nonsense']) {
      for (const [method, rest, body] of [
        ['GET', '', undefined],
        ['PATCH', '', { place: 'after' }],
        ['DELETE', '', undefined],
        ['POST', '/verify', undefined],
        ['POST', '/rotate', { secret: GOOD }],
      ] as const)
        words.add(await refused('not_found', method, `${CREDENTIALS}/${id}${rest}`, body));
    }
    assert.equal(words.size, 1);
  });

  test('byok_disabled and byok_kind_not_allowed: nothing is sent to a provider then', async () => {
    const key = String((await create({}, stranger))['id']);
    const asked = upstream.requests.length;
    await grant(stranger.id, { kinds: ['groq'] });
    await refused('byok_kind_not_allowed', 'POST', CREDENTIALS, wanted(), stranger);
    await refused('byok_kind_not_allowed', 'POST', CREDENTIALS, wanted({ kind: 'custom', base_url: 'https://a.test' }));
    await refused('byok_kind_not_allowed', 'POST', `${CREDENTIALS}/${key}/verify`, undefined, stranger);
    await grant(stranger.id, { enabled: false });
    await refused('byok_disabled', 'POST', CREDENTIALS, wanted(), stranger);
    await refused('byok_disabled', 'POST', `${CREDENTIALS}/${key}/rotate`, { secret: GOOD }, stranger);
    assert.equal(upstream.requests.length, asked);
    await grant(stranger.id, { enabled: true, kinds: null });
  });

  test('what the platform grants: kinds, fee, how many', async () => {
    assert.deepEqual(await grant(stranger.id, { fee: { percent: '2.5' }, credentials_max: 0 }), {
      enabled: true,
      kinds: null,
      custom_base_url: false,
      fee: { percent: '2.50' },
      credentials_max: 0,
    });
    const path = `/v1/admin/organizations/${stranger.id}/byok`;
    await refused('invalid_request', 'POST', CREDENTIALS, wanted(), stranger);
    for (const body of [
      { custom_base_url: true },
      { kinds: ['nobody'] },
      { fee: { percent: '101' } },
      { kinds: 'all' },
    ]) {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const reply = await httpCall(`${tollgate.url}${path}`, { method: 'PATCH', headers, body: JSON.stringify(body) });
      assert.equal(reply.status, 400, reply.body.toString());
    }
    const fee = { per_request: '0.001' };
    assert.deepEqual((await grant(stranger.id, { fee, custom_base_url: true, credentials_max: 50 }))['fee'], fee);
    await grant(stranger.id, { fee: null, custom_base_url: false });
  });

  test('templates are the kinds that are open', async () => {
    const kinds = (await call('GET', `${PATH}/byok-templates`)).data as unknown as readonly Json[];
    const azure = kinds.find(({ kind }) => kind === 'azure');
    assert.deepEqual(azure?.['settings'], [{ name: 'resource', required: true }]);
    assert.ok(kinds.some(({ kind }) => kind === 'upstream'));
    assert.ok(!kinds.some(({ kind }) => kind === 'custom' || kind === 'ollama'));
  });

  test('a change, a rotation, a removal; each is in the audit log without a secret', async () => {
    const { id } = await create({ expires_at: '2030-01-01T00:00:00Z' });
    const path = `${CREDENTIALS}/${String(id)}`;
    const fields = { name: 'renamed', place: 'after', fallback: 'on', models: ['sim/small'], expires_at: null };
    const changed = (await call('PATCH', path, fields)).data;
    for (const [field, value] of Object.entries(fields)) assert.deepEqual(changed[field], value, field);
    assert.equal((await call('PATCH', path, { enabled: false })).data['state'], 'disabled');
    assert.equal((await call('PATCH', path, { enabled: true })).data['state'], 'unverified');
    assert.equal((await call('POST', `${path}/verify`)).data['state'], 'active');
    await refused('invalid_request', 'PATCH', path, { base_url: 'https://elsewhere.test' });
    await refused('invalid_request', 'PATCH', path, { expires_at: '2020-01-01T00:00:00Z' });
    await refused('key_rejected', 'POST', `${path}/rotate`, { secret: BAD });
    const rotated = (await call('POST', `${path}/rotate`, { secret: `${GOOD}4713`, overlap_seconds: 60 })).data;
    assert.equal(rotated['label'], '…4713');
    assert.notEqual(rotated['previous_secret_until'], null);
    assert.deepEqual((await call('DELETE', path)).data, { removed: true });
    await refused('not_found', 'GET', path);
    const entries = (await call('GET', `${PATH}/audit?limit=100`)).data as unknown as readonly Json[];
    const actions = entries
      .filter((entry) => (entry['target'] as Json | undefined)?.['id'] === id || entry['target_id'] === id)
      .map(({ action }) => action);
    const expected = ['create', 'update', 'update', 'update', 'state', 'rotate', 'remove'].map(
      (what) => `own_key.${what}`,
    );
    assert.deepEqual(actions.toReversed(), expected);
  });

  test('settings, order and who would serve', async () => {
    const other = await Tenant.create(tollgate.url, 'ordering');
    await grant(other.id, { enabled: true });
    const [one, two] = [await create({ name: 'one' }, other), await create({ name: 'two' }, other)];
    const explain = async () => {
      const { data } = await call('GET', `${PATH}/byok/explain?model=sim/small&api=chat_completions`, undefined, other);
      return (data['attempts'] as readonly Json[]).map((attempt) => attempt['credential_name'] ?? 'the service');
    };
    assert.deepEqual(await explain(), ['one', 'two']);
    const settings = await call('PATCH', `${PATH}/byok/settings`, { fallback: true }, other);
    assert.deepEqual(settings.data, { enabled: true, fallback: true, classifier: 'service', budgets: 'fee' });
    assert.deepEqual(await explain(), ['one', 'two', 'the service']);
    const order = { kind: 'upstream', before: [two['id']], after: [one['id']] };
    await call('PUT', `${PATH}/byok/order`, order, other);
    assert.deepEqual(await explain(), ['two', 'the service', 'one']);
    await refused('invalid_request', 'PUT', `${PATH}/byok/order`, { kind: 'upstream', before: [two['id']] }, other);
    await refused('not_found', 'GET', `${PATH}/byok/explain?model=no/such&api=messages`, undefined, other);
  });

  test('the list comes in pages, oldest first, also where keys are put in another order or removed meanwhile', async () => {
    const other = await Tenant.create(tollgate.url, 'paging');
    await grant(other.id, { enabled: true });
    const ids: string[] = [];
    for (const place of ['after', 'before', 'after', 'before', 'before'])
      ids.push(String((await create({ place, verify: false }, other))['id']));
    const [first, second, third, fourth, fifth] = ids;
    const reorder = () => {
      const order = { kind: 'upstream', before: [fifth, second, fourth], after: [third, first] };
      return call('PUT', `${PATH}/byok/order`, order, other);
    };
    const removeFirst = () => call('DELETE', `${CREDENTIALS}/${String(first)}`, undefined, other);
    const meanwhile = [reorder, removeFirst];
    const pages: (readonly unknown[])[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const query: string = `limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const { body } = await call('GET', `${CREDENTIALS}?${query}`, undefined, other);
      pages.push((body['data'] as readonly Json[]).map(({ id }) => id));
      cursor = body['next_cursor'] as string | null;
      await meanwhile.shift()?.();
    }
    assert.deepEqual(pages, [[first, second], [third, fourth], [fifth]]);
    const { body } = await call('GET', CREDENTIALS, undefined, other);
    const whole = (body['data'] as readonly Json[]).map(({ id }) => id);
    assert.deepEqual([whole, body['next_cursor']], [[second, third, fourth, fifth], null]);
    await refused('invalid_request', 'GET', `${CREDENTIALS}?cursor=x`, undefined, other);
    await refused('invalid_request', 'GET', `${CREDENTIALS}?limit=101`, undefined, other);
  });

  test('who would serve an inference key, by its team and its user', async () => {
    const other = await Tenant.create(tollgate.url, 'explaining');
    await grant(other.id, { enabled: true });
    const team = await other.addTeam();
    const [bound, free] = [await other.addKey({ team_id: team, user_id: other.owner.userId }), await other.addKey()];
    await create({ name: 'of the team', teams: [team] }, other);
    await create({ name: 'of the owner', users: [other.owner.userId] }, other);
    const path = `${PATH}/byok/explain?model=sim/small&api=chat_completions`;
    const explain = async (query: string) => {
      const { data } = await call('GET', `${path}${query}`, undefined, other);
      return (data['attempts'] as readonly Json[]).map((attempt) => attempt['credential_name'] ?? 'the service');
    };
    assert.deepEqual(await explain(`&api_key_id=${bound.id}`), ['of the team', 'of the owner']);
    assert.deepEqual(await explain(`&api_key_id=${bound.id}&team_id=${team}`), ['of the team', 'of the owner']);
    assert.deepEqual(await explain(`&api_key_id=${free.id}`), ['the service']);
    const contradictions = [`team_id=${team}`, `user_id=${other.owner.userId}`];
    for (const said of contradictions)
      await refused('invalid_request', 'GET', `${path}&api_key_id=${free.id}&${said}`, undefined, other);
    const foreign = await stranger.addKey();
    await refused('not_found', 'GET', `${path}&api_key_id=${foreign.id}`, undefined, other);
    // What the platform does not let the organization use is as absent here as in the list of models.
    const access = `/v1/admin/organizations/${other.id}/model-access`;
    await ask(tollgate.url, ADMIN_TOKEN, 'PUT', access, { allowed_models: ['sim/open'] });
    const hidden = () => call('GET', path, undefined, other);
    await waitFor('the list to be followed', hidden, ({ status }) => status === 404);
    await refused('not_found', 'GET', path, undefined, other);
  });

  test('prices of one’s own', async () => {
    const path = `${PATH}/model-prices/sim/small`;
    await refused('not_found', 'GET', path);
    const price = { input: '0.5', output: '1.25', service_tiers: { flex: '0.5' } };
    assert.deepEqual((await call('PUT', path, price)).data, { model: 'sim/small', price });
    assert.deepEqual((await call('GET', `${PATH}/model-prices`)).data, [{ model: 'sim/small', price }]);
    await refused('invalid_request', 'PUT', path, { input: 0.5 });
    await refused('invalid_request', 'PUT', path, { input: '1', output: '1', from: '2030-01-01' });
    // By prices without a bound a record could be rated at more than the ledger holds: it would not be posted, nor a
    // fee be taken for it.
    const dear = { calls: { web_search: { usd: '10000000', max: 3 } } };
    for (const wrong of [{ output: '9'.repeat(30) }, { output: '10000000' }, { request: '10000000.5' }, dear])
      await refused('invalid_request', 'PUT', path, { input: '1', output: '1', ...wrong });
    await refused('invalid_request', 'PUT', path, { input: '1', output: '1', service_tiers: { flex: '10000000' } });
    assert.equal((await call('PUT', path, { input: '9999999', output: '9999999.999999' })).status, 200);
    // A thousand models may have one, and gateways read all of them when one has changed.
    const tiers = (count: number) => Array.from({ length: count }, (_, at) => ({ from_input: at + 1, input: '1' }));
    assert.equal((await call('PUT', path, { input: '1', output: '1', tiers: tiers(100) })).status, 200);
    await refused('invalid_request', 'PUT', path, { input: '1', output: '1', tiers: tiers(200) });
    await refused('not_found', 'PUT', `${PATH}/model-prices/no/such`, price);
    assert.deepEqual((await call('DELETE', path)).data, { removed: true });
    await refused('not_found', 'DELETE', path);
  });

  test('byok_encryption_unconfigured: a secret that was moved to another organization opens nothing', async () => {
    const [moved, target] = [await create(), await create({}, stranger)];
    const client = new pg.Client({ connectionString: tollgate.postgresUrl });
    await client.connect();
    try {
      await client.query(
        'UPDATE own_keys SET secret_sealed = (SELECT secret_sealed FROM own_keys WHERE id = $1) WHERE id = $2',
        [moved['id'], target['id']],
      );
      const path = `${CREDENTIALS}/${String(target['id'])}/verify`;
      await refused('byok_encryption_unconfigured', 'POST', path, undefined, stranger);
      const { rows } = await client.query<{ everything: string }>(
        `SELECT (SELECT string_agg(t::text, '') FROM own_keys t) || (SELECT string_agg(t::text, '') FROM audit_log t)
           AS everything`,
      );
      assert.doesNotMatch(rows[0]?.everything ?? '', /planted-mark|706c616e7465642d6d61726b/);
    } finally {
      await client.end();
    }
    assert.doesNotMatch(tollgate.output(), /planted-mark/);
  });

  describe('of a provider that is changed afterwards', () => {
    const MOVED = '/v1/admin/providers/moved';
    const admin = (method: string, path: string, body?: Json) => ask(tollgate.url, ADMIN_TOKEN, method, path, body);
    const openUrl = () => `http://127.0.0.1:${(open.address() as AddressInfo).port}`;
    /** Changed by whoever may change it, who gives it a key of the operator's. */
    const change = async (fields: Json) => {
      const { version } = await admin('GET', MOVED);
      await admin('PUT', MOVED, { base_url: upstream.url, api_key: 'sk-nobody', ...fields, version });
    };
    const stateOf = async (id: unknown) => (await call('GET', `${CREDENTIALS}/${String(id)}`)).data;
    const becomes = (id: unknown, state: string) =>
      waitFor(
        `the key to be ${state}`,
        () => stateOf(id),
        (data) => data['state'] === state,
      );
    const generate = async (secret: string) => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
      const messages = [{ role: 'user', content: 'hi' }];
      const body = JSON.stringify({ model: 'sim/moved', max_tokens: 50, messages });
      const reply = await httpCall(`${tollgate.url}/v1/chat/completions`, { method: 'POST', headers, body });
      return [reply.status, (JSON.parse(reply.body.toString()) as { error?: Json }).error?.['code']];
    };
    const calls = () => upstream.requests.length + answered;

    before(async () => {
      await admin('PUT', MOVED, { base_url: upstream.url, api_key: 'sk-nobody' });
      const served_by = [{ provider: 'moved', model: 'm', apis: ['chat_completions'] }];
      await admin('PUT', '/v1/admin/models/sim/moved', { context_length: 1000, tokenizer: 'o200k_base', served_by });
      const templates = async () => (await call('GET', `${PATH}/byok-templates`)).data as unknown as readonly Json[];
      await waitFor('the kind', templates, (kinds) => kinds.some(({ kind }) => kind === 'moved'));
    });

    const changes: readonly [words: string, fields: () => Json, reason: RegExp][] = [
      ['another address', () => ({ base_url: openUrl() }), /its provider has another address now/],
      ['another name of it', () => ({ base_url: upstream.url.replace('127.0.0.1', 'localhost') }), /another address/],
      ['another header', () => ({ auth: 'x-api-key' }), /its provider has another header now/],
      ['another authority', () => ({ tls: { ca: '/etc/ssl/other.pem' } }), /its provider has another tls\.ca now/],
    ];
    for (const [words, fields, reason] of changes) {
      test(`${words}: the key is not sent there until it is entered again`, async () => {
        await change({});
        const { id } = await create({ kind: 'moved', verify: false });
        await becomes(id, 'unverified');
        const { secret } = await tenant.addKey();
        assert.deepEqual(await generate(secret), [200, undefined]);
        await change(fields());
        assert.match(String((await becomes(id, 'secret_needed'))['state_reason']), reason);
        const before = calls();
        assert.deepEqual(await generate(secret), [503, 'byok_key_unavailable']);
        await refused('key_rejected', 'POST', `${CREDENTIALS}/${String(id)}/verify`);
        const explained = await call('GET', `${PATH}/byok/explain?model=sim/moved&api=chat_completions`);
        assert.deepEqual(
          (explained.data['not_tried'] as readonly Json[])
            .filter((one) => one['credential_id'] === id)
            .map((one) => one['reason']),
          ['secret_needed'],
        );
        assert.equal(calls(), before);
        const rotation = { secret: GOOD, verify: false, overlap_seconds: 60 };
        const rotated = (await call('POST', `${CREDENTIALS}/${String(id)}/rotate`, rotation)).data;
        assert.deepEqual([rotated['state'], rotated['previous_secret_until']], ['unverified', null]);
        // It is the new place's alone now.
        await change({});
        if (words !== 'another authority') await becomes(id, 'secret_needed');
        await call('DELETE', `${CREDENTIALS}/${String(id)}`);
      });
    }

    test('a key of a version that did not say where it is for: where its provider was before the change', async () => {
      await change({});
      const { id } = await create({ kind: 'moved', verify: false });
      const client = new pg.Client({ connectionString: tollgate.postgresUrl });
      await client.connect();
      try {
        await client.query('UPDATE own_keys SET given_for = NULL WHERE id = $1', [id]);
      } finally {
        await client.end();
      }
      assert.equal((await stateOf(id))['state'], 'unverified');
      await change({ base_url: openUrl() });
      await becomes(id, 'secret_needed');
      await call('DELETE', `${CREDENTIALS}/${String(id)}`);
    });
  });

  /** Of a stored secret: its format in a byte, the id of its master key in eight, then what is encrypted. */
  const flipped = (place: string): string =>
    `set_byte(t.secret_sealed, ${place}, get_byte(t.secret_sealed, ${place}) # 1)`;
  const DAMAGES = {
    'moved from another organization': 'w.secret_sealed',
    'with a flipped byte at its end': flipped('length(t.secret_sealed) - 1'),
    'with a flipped byte in its data key': flipped('40'),
    'of a master key that nobody has': flipped('3'),
  };
  for (const [index, [damage, sealed]] of Object.entries(DAMAGES).entries()) {
    test(`a secret ${damage}: byok_key_unavailable, and no provider is asked with any key`, async () => {
      const victim = await Tenant.create(tollgate.url, `damaged-${index}`);
      await grant(victim.id, { enabled: true });
      const [whole, damaged] = [await create(), await create({}, victim)];
      const { secret } = await victim.addKey();
      const client = new pg.Client({ connectionString: tollgate.postgresUrl });
      await client.connect();
      const update = `UPDATE own_keys AS t SET secret_sealed = ${sealed} FROM own_keys AS w WHERE t.id = $1 AND w.id = $2`;
      try {
        await client.query(update, [damaged['id'], whole['id']]);
      } finally {
        await client.end();
      }
      const asked = upstream.requests.length;
      for (const [path, inForm] of [
        ['chat/completions', (error: Json) => [error['type'], error['code']]],
        ['messages', (error: Json) => [error['type'], error['type']]],
        ['responses', (error: Json) => [error['code'], error['code']]],
      ] as const) {
        const content = path === 'responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] };
        const body = JSON.stringify({ model: 'sim/everywhere', max_tokens: 50, ...content });
        const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
        const reply = await httpCall(`${tollgate.url}/v1/${path}`, { method: 'POST', headers, body });
        const text = reply.body.toString();
        assert.equal(reply.status, 503, text);
        const code = 'byok_key_unavailable';
        assert.deepEqual(inForm((JSON.parse(text) as { error: Json }).error), [code, code], text);
        assert.doesNotMatch(text, /planted-mark/);
      }
      assert.equal(upstream.requests.length, asked);
      assert.doesNotMatch(tollgate.output(), /planted-mark/);
    });
  }
});
