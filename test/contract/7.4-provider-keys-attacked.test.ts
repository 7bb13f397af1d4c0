// Spec 7.4: the routes that manage own provider keys, attacked from outside: what is of a wrong type, too large, of
// another organization or another role, and changes of one key at the same moment. Every answer is one of the
// documented ones, and none repeats a secret.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, type Person, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';

type Json = Readonly<Record<string, unknown>>;

const SECRET = 'sk-planted-mark-0123456789-4711';
const PATH = '/v1/admin/active-org';
const CREDENTIALS = `${PATH}/provider-credentials`;
const NOBODY = '00000000-0000-4000-8000-000000000000';

/** Whatever the field, none of these is what it wants. */
const STRANGE_VALUES: readonly string[] = [
  'true',
  '-1',
  '1e400',
  '9007199254740993',
  '{}',
  '[[]]',
  '[null]',
  '{"__proto__":{"a":1}}',
  '"\\u0000"',
  '"\\ud800"',
  '"a\\r\\nx-injected: 1"',
  JSON.stringify('é'.repeat(5_000)),
];

describe('own provider keys, attacked', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let tenant: Tenant;
  let stranger: Tenant;
  let member: Person;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN },
    });
    tenant = await Tenant.create(tollgate.url, 'attacked');
    stranger = await Tenant.create(tollgate.url, 'beside');
    member = await tenant.addPerson('member');
    const grant = { enabled: true, credentials_max: 1_000, custom_base_url: true };
    for (const { id } of [tenant, stranger])
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${id}/byok`, grant);
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const call = async (method: string, path: string, body?: Json | string, token = tenant.owner.token) => {
    const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = await httpCall(`${tollgate.url}${path}`, { method, headers, ...content });
    const text = reply.body.toString();
    assert.doesNotMatch(text, /planted-mark/);
    assert.equal(reply.headers['x-injected'], undefined);
    return { status: reply.status, body: JSON.parse(text) as Json & { readonly data: Json } };
  };
  let made = 0;
  const wanted = (fields: Json = {}): Json => ({
    kind: 'upstream',
    name: `key ${(made += 1)}`,
    secret: SECRET,
    verify: false,
    ...fields,
  });
  const create = async (fields: Json = {}): Promise<string> => {
    const reply = await call('POST', CREDENTIALS, wanted(fields));
    assert.equal(reply.status, 201, JSON.stringify(reply.body));
    return String(reply.body.data['id']);
  };
  const refuses = async (status: number, code: string, ...request: Parameters<typeof call>): Promise<void> => {
    const reply = await call(...request);
    assert.deepEqual(
      [reply.status, reply.body['code']],
      [status, code],
      JSON.stringify(request.slice(0, 3)).slice(0, 300),
    );
    assert.deepEqual(Object.keys(reply.body), ['code', 'error', 'request_id']);
  };

  test('a value of a wrong type in any field of any route: invalid_request', async () => {
    const credential = `${CREDENTIALS}/${await create()}`;
    const grant = `/v1/admin/organizations/${tenant.id}/byok`;
    const routes: readonly (readonly [method: string, path: string, whole: () => Json, fields: readonly string[]])[] = [
      [
        'POST',
        CREDENTIALS,
        () => wanted(),
        [...Object.keys(wanted()), ...KEY_FIELDS, 'settings', 'base_url', 'unknown'],
      ],
      [
        'PATCH',
        credential,
        () => ({}),
        [...KEY_FIELDS, 'name', 'enabled', 'secret', 'kind', 'base_url', 'settings', 'state'],
      ],
      ['POST', `${credential}/rotate`, () => ({ secret: SECRET }), ['secret', 'verify', 'overlap_seconds', 'name']],
      ['PATCH', `${PATH}/byok/settings`, () => ({}), ['fallback', 'classifier', 'budgets', 'enabled', 'fee']],
      ['PUT', `${PATH}/byok/order`, () => ({ kind: 'upstream', before: [] }), ['kind', 'before', 'after', 'id']],
      [
        'PUT',
        `${PATH}/model-prices/sim/small`,
        () => ({ input: '1', output: '1' }),
        ['input', 'output', 'terms', 'tiers'],
      ],
      ['PATCH', grant, () => ({}), ['enabled', 'kinds', 'custom_base_url', 'fee', 'credentials_max', 'fallback']],
    ];
    const wrong: string[] = [];
    for (const [method, path, whole, fields] of routes) {
      const token = path === grant ? ADMIN_TOKEN : tenant.owner.token;
      for (const field of fields) {
        for (const value of STRANGE_VALUES) {
          if (isFitting(field, value)) continue;
          const others = Object.entries(whole()).filter(([name]) => name !== field);
          const parts = others.map(([name, known]) => `${JSON.stringify(name)}:${JSON.stringify(known)}`);
          const body = `{${[...parts, `${JSON.stringify(field)}:${value}`].join(',')}}`;
          const reply = await call(method, path, body, token);
          if (reply.status !== 400 || reply.body['code'] !== 'invalid_request')
            wrong.push(`${method} ${path} ${field}: ${value.slice(0, 40)} → ${reply.status}`);
        }
      }
      for (const body of ['{', 'null', '[]', '"x"', `${'['.repeat(50_000)}`, `{"a":${'[0],'.repeat(9)}}`])
        await refuses(400, 'invalid_request', method, path, body, token);
    }
    assert.deepEqual(wrong, []);
  });

  test('what a header could not carry is no secret', async () => {
    const path = `${CREDENTIALS}/${await create()}/rotate`;
    const words = ['a\r\nb', 'a\nb', 'a\u0000b', 'a b', ' a', 'a\t', 'ä', '🔑', '\u007f', 'a'.repeat(4_097), ''];
    for (const secret of words.map((word) => (word === '' ? '' : `${word}planted-mark`))) {
      await refuses(400, 'invalid_request', 'POST', CREDENTIALS, wanted({ secret }));
      await refuses(400, 'invalid_request', 'POST', path, { secret, verify: false });
    }
    await create({ secret: '~'.repeat(4_096) });
  });

  test('names that people give, and the longest of each field', async () => {
    for (const name of ['schlüssel 🔑', '鍵', '__proto__', 'a'.repeat(200), '🔑'.repeat(200)]) await create({ name });
    const map = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`model-${at}`, 'm'.repeat(200)]));
    await create({ model_map: map });
    await refuses(400, 'invalid_request', 'POST', CREDENTIALS, wanted({ model_map: { ...map, more: 'm' } }));
    await refuses(400, 'invalid_request', 'POST', CREDENTIALS, wanted({ name: 'a'.repeat(201) }));
    // Its own property of that name, as JSON has it.
    const odd = `${JSON.stringify(wanted()).slice(0, -1)},"model_map":{"__proto__":"m","constructor":"m"}}`;
    const { status, body } = await call('POST', CREDENTIALS, odd);
    assert.ok(status === 201 || (status === 400 && body['code'] === 'invalid_request'), JSON.stringify(body));
    const explained = await call('GET', `${PATH}/byok/explain?model=sim/small&api=chat_completions`);
    assert.equal(explained.status, 200, JSON.stringify(explained.body));
  });

  test('who is no administrator of the organization reads and changes nothing', async () => {
    const id = await create();
    const foreign = stranger.owner.token;
    const requests = [
      ['GET', `${CREDENTIALS}/${id}`, undefined],
      ['PATCH', `${CREDENTIALS}/${id}`, { place: 'after' }],
      ['POST', `${CREDENTIALS}/${id}/verify`, undefined],
      ['POST', `${CREDENTIALS}/${id}/rotate`, { secret: SECRET, verify: false }],
      ['DELETE', `${CREDENTIALS}/${id}`, undefined],
    ] as const;
    const asked = upstream.requests.length;
    for (const [method, path, body] of requests) {
      await refuses(404, 'not_found', method, path, body, foreign);
      assert.equal((await call(method, path, body, member.token)).status, 403);
      assert.equal((await call(method, path, body, 'nonsense')).status, 401);
    }
    await refuses(400, 'invalid_request', 'PUT', `${PATH}/byok/order`, { kind: 'upstream', before: [id] }, foreign);
    const grant = `/v1/admin/organizations/${tenant.id}/byok`;
    for (const token of [foreign, member.token, tenant.owner.token])
      assert.notEqual((await call('PATCH', grant, { fee: null }, token)).status, 200);
    for (const list of ['provider-credentials', 'byok/order', 'byok/usage', 'model-prices']) {
      assert.equal((await call('GET', `${PATH}/${list}`, undefined, member.token)).status, 403, list);
      assert.ok(!JSON.stringify((await call('GET', `${PATH}/${list}`, undefined, foreign)).body).includes(id), list);
    }
    for (const [field, ids] of [
      ['teams', [await stranger.addTeam()]],
      ['api_keys', [(await stranger.addKey()).id]],
      ['users', [await stranger.addMember('member')]],
      ['teams', [NOBODY]],
    ] as const)
      await refuses(400, 'invalid_request', 'PATCH', `${CREDENTIALS}/${id}`, { [field]: ids });
    assert.equal((await call('GET', `${CREDENTIALS}/${id}`)).body.data['place'], 'before');
    assert.equal(upstream.requests.length, asked);
  });

  test('twenty creations of one name at a time: one is made, the others are refused', async () => {
    const body = wanted({ name: 'only one' });
    const replies = await Promise.all(Array.from({ length: 20 }, () => call('POST', CREDENTIALS, body)));
    const codes = replies.map(({ status, body: told }) => `${status} ${JSON.stringify(told['code'])}`);
    assert.deepEqual(codes.toSorted(), ['201 undefined', ...Array.from({ length: 19 }, () => '400 "invalid_request"')]);
  });

  test('changes, rotations, verifications and a removal of one key at a time', async () => {
    for (let round = 0; round < 10; round += 1) {
      const path = `${CREDENTIALS}/${await create()}`;
      const replies = await Promise.all([
        ...Array.from({ length: 4 }, (_, at) =>
          call('POST', `${path}/rotate`, { secret: `${SECRET}${at}`, overlap_seconds: 60 }),
        ),
        ...Array.from({ length: 4 }, () => call('POST', `${path}/verify`)),
        call('PATCH', path, { name: `renamed ${round}` }),
        call('DELETE', path),
        call('DELETE', path),
        ...Array.from({ length: 4 }, () => call('POST', `${path}/verify`)),
      ]);
      for (const { status, body } of replies)
        assert.ok(
          status === 200 || (status === 404 && body['code'] === 'not_found'),
          `${status} ${JSON.stringify(body)}`,
        );
      assert.equal(replies.slice(9, 11).filter(({ status }) => status === 200).length, 1);
      await refuses(404, 'not_found', 'GET', path);
    }
  });
});

const KEY_FIELDS = ['place', 'fallback', 'models', 'teams', 'api_keys', 'users', 'model_map', 'expires_at'];

/** The few of the strange values that some field takes. */
function isFitting(field: string, value: string): boolean {
  if (value === 'true') return ['verify', 'enabled', 'fallback', 'custom_base_url'].includes(field);
  // A member `__proto__` of a map is dropped, so the map is empty.
  return ['{}', '{"__proto__":{"a":1}}'].includes(value) && ['model_map', 'settings'].includes(field);
}
