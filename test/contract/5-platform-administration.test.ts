// What a platform administrator does over HTTP: teams, keys and limits in any organization, and the catalog with its
// providers, models, prices and policies. Who else may call these routes is in the identity matrix.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { silentLog } from '../support/postgres.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

let upstream: FakeUpstream;
let tollgate: Front;
before(async () => {
  upstream = await startFakeUpstream(() => ({
    body: JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
  }));
  tollgate = await startFront({
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_TOKEN },
  });
});
after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

const admin = (method: string, path: string, body?: Json, status = 200): Promise<Json> =>
  ask(tollgate.url, ADMIN_TOKEN, method, `/v1/admin${path}`, body, status);

async function generate(key: string, model = 'sim/small'): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 });
  const headers = { authorization: `Bearer ${key}` };
  return (await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body })).status;
}

const follows = (what: string, status: () => Promise<number>, expected: number): Promise<unknown> =>
  waitFor(what, status, (found) => found === expected);

describe('in any organization', () => {
  let tenant: Tenant;
  let path: string;
  before(async () => {
    tenant = await Tenant.create(tollgate.url, 'anybody');
    path = `/organizations/${tenant.id}`;
  });

  const actionsOf = async (): Promise<readonly unknown[]> =>
    ((await admin('GET', `${path}/audit`)) as unknown as readonly Json[]).map(
      ({ action, actor }) => `${String(action)} by ${String((actor as Json)['label'])}`,
    );

  test('a team is made, renamed, staffed and deleted', async () => {
    const team = String((await admin('POST', `${path}/teams`, { slug: 'lab' }, 201))['id']);
    assert.equal((await admin('PATCH', `${path}/teams/${team}`, { display_name: 'Lab' }))['display_name'], 'Lab');
    const { email } = ((await admin('GET', `${path}/members`)) as unknown as readonly Json[])[0] ?? {};
    const member = await admin('POST', `${path}/teams/${team}/members`, { email }, 201);
    assert.equal(member['user_id'], tenant.owner.userId);
    const staff = `${path}/teams/${team}/members/${tenant.owner.userId}`;
    assert.equal((await admin('PATCH', staff, { role: 'admin' }))['role'], 'admin');
    assert.equal((await admin('DELETE', staff))['removed'], true);
    assert.equal((await admin('DELETE', `${path}/teams/${team}`))['deleted'], true);
    assert.deepEqual((await actionsOf()).slice(0, 2), ['team.delete by ADMIN_TOKEN', 'member.remove by ADMIN_TOKEN']);
  });

  test('a change that may have been made is 500: nobody is told to repeat it unseen', async () => {
    const database = createPostgres({ url: tollgate.postgresUrl, log: silentLog });
    await database.query(`
      CREATE FUNCTION lose_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER lost_at_commit AFTER INSERT ON teams DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.slug = 'lost') EXECUTE FUNCTION lose_it()`);
    try {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const order = { method: 'POST', headers, body: '{"slug":"lost"}' };
      const { status, headers: said } = await httpCall(`${tollgate.url}/v1/admin${path}/teams`, order);
      assert.deepEqual([status, said['retry-after']], [500, undefined]);
    } finally {
      await database.query('DROP TRIGGER lost_at_commit ON teams');
      await database.close();
    }
  });

  test('a key is made with its models, limited, rotated and revoked, and its secret is shown once', async () => {
    const order = { name: 'made for them', allowed_models: ['sim/small'] };
    const key = await admin('POST', `${path}/keys`, order, 201);
    assert.deepEqual(key['allowed_models_set_by'], { platform: ['sim/small'], organization: null });
    const own = `${path}/keys/${String(key['id'])}`;
    assert.equal(await generate(String(key['secret'])), 200);
    assert.equal(await generate(String(key['secret']), 'sim/uncapped'), 404);
    assert.equal((await admin('GET', own))['secret'], undefined);

    const limits = [{ kind: 'requests_per_minute', limit: 0 }];
    const limited = await admin('PUT', `${own}/limits`, { limits });
    assert.deepEqual(limited['limits'], [{ ...limits[0], set_by: 'platform' }]);
    await follows('the limit', () => generate(String(key['secret'])), 429);
    await admin('PUT', `${own}/limits`, { limits: [] });

    const rotated = await admin('POST', `${own}/rotate`, { overlap_seconds: 0 });
    await follows('the old secret to end', () => generate(String(key['secret'])), 401);
    await follows('the new secret', () => generate(String(rotated['secret'])), 200);
    assert.notEqual((await admin('DELETE', own))['revoked_at'], null);
    await follows('the key to end', () => generate(String(rotated['secret'])), 401);
    const actions = await actionsOf();
    for (const action of ['key.create', 'limits.replace', 'key.rotate', 'key.revoke'])
      assert.ok(actions.includes(`${action} by ADMIN_TOKEN`), action);
  });

  test('what belongs to another organization is not found below this one', async () => {
    const other = await Tenant.create(tollgate.url, 'another');
    const key = await other.addKey();
    await admin('DELETE', `${path}/keys/${key.id}`, undefined, 404);
    await admin('PATCH', `${path}/teams/${await other.addTeam()}`, { display_name: 'x' }, 404);
    assert.equal((await other.as('GET', `/keys/${key.id}`))['revoked_at'], null);
  });
});

describe('the catalog', () => {
  const KEY = 'sk-catalog-canary-0123456789';
  const provider = (fields: Json = {}): Json => ({ base_url: upstream.url, api_key: KEY, ...fields });
  const price = { input: '1.25', output: '10' };
  const model = (fields: Json = {}): Json => ({
    context_length: 8_000,
    max_output_tokens: 1_000,
    served_by: [{ provider: 'made', model: 'made-1', apis: ['chat_completions'], price }],
    ...fields,
  });
  const refusal = async (method: string, path: string, body: Json | undefined, status: number): Promise<string> => {
    const answer = await httpCall(`${tollgate.url}/v1/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.equal(answer.status, status, answer.body.toString());
    return (JSON.parse(answer.body.toString()) as { error: string }).error;
  };
  const read = (path: string): Promise<Json> => admin('GET', path);
  const versionOf = async (path: string): Promise<number> => Number((await read(path))['version']);

  test('a provider and a model that are made serve, under every spelling of the model’s path', async () => {
    const made = await admin('PUT', '/providers/made', provider());
    assert.deepEqual([made['has_key'], made['auth'], made['warnings']], [true, 'bearer', []]);
    const first = await admin('PUT', '/models/made/large', model());
    assert.deepEqual(first['served_by'], model()['served_by']);
    assert.deepEqual(await read('/models/made%2Flarge'), await read('/models/made/large'));
    await follows('the model', () => generate(KEYS.acme, 'made/large'), 200);
    assert.equal(upstream.requests.at(-1)?.header('authorization'), `Bearer ${KEY}`);
  });

  test('no answer, listing or audit entry has a provider’s key', async () => {
    for (const path of ['/providers', '/providers/made', '/models', '/audit'])
      assert.doesNotMatch(JSON.stringify(await read(path)), /canary/, path);
    const changed = await admin('PUT', '/providers/made', {
      ...provider({ on_disconnect: 'drain' }),
      version: await versionOf('/providers/made'),
    });
    assert.doesNotMatch(JSON.stringify(changed), /canary/);
  });

  test('a model that is not active is for organizations as one that is not there, and the platform can name it', async () => {
    await admin('PUT', '/models/made/unreleased', model({ active: false }));
    const tenant = await Tenant.create(tollgate.url, 'curious');
    const member = await tenant.addPerson('member');
    const said = async (who: string, method: string, path: string, body: Json) => {
      const headers = { authorization: `Bearer ${who}` };
      const answer = await httpCall(`${tollgate.url}/v1${path}`, { method, headers, body: JSON.stringify(body) });
      return [answer.status, (JSON.parse(answer.body.toString()) as { error?: string }).error];
    };
    const own = await ask(tollgate.url, member.token, 'POST', '/v1/me/keys', { name: 'own' }, 201);
    const { token: owner } = tenant.owner;
    const limits = (id: string) => ({ limits: [{ kind: 'requests_per_minute', limit: 1, model: id }] });
    for (const id of ['made/unreleased', 'made/absent']) {
      const refused = (field: string) => [
        400,
        `The field "${field}" is not valid: it names the model "${id}", which is not in the catalog.`,
      ];
      const allowed_models = [id, 'sim/small'];
      const ofKeys = refused('allowed_models');
      assert.deepEqual(await said(member.token, 'POST', '/me/keys', { name: id, allowed_models }), ofKeys);
      assert.deepEqual(await said(member.token, 'PATCH', `/me/keys/${String(own['id'])}`, { allowed_models }), ofKeys);
      assert.deepEqual(await said(owner, 'PUT', '/admin/active-org/model-access', { allowed_models }), ofKeys);
      assert.deepEqual(await said(owner, 'PUT', '/admin/active-org/limits', limits(id)), refused('limits'));
    }
    const path = `/organizations/${tenant.id}`;
    await admin('PUT', `${path}/model-access`, { allowed_models: ['made/unreleased'] });
    await admin('PUT', `${path}/limits`, limits('made/unreleased'));
    await admin('DELETE', '/models/made/unreleased');
  });

  test('a list that names a model keeps it when it is no longer active, and no other list takes it', async () => {
    await admin('PUT', '/models/made/seasonal', model());
    const tenant = await Tenant.create(tollgate.url, 'seasonal');
    await admin('PATCH', `/organizations/${tenant.id}/byok`, { enabled: true, kinds: ['openai'] });
    const team = `/teams/${await tenant.addTeam()}/model-access`;
    const { id: keyId } = await tenant.addKey();
    const ownKey = { kind: 'openai', name: 'own', secret: 'sk-own', verify: false };
    const { id: ownKeyId } = await tenant.as('POST', '/provider-credentials', ownKey, 201);
    const lists: readonly (readonly [method: string, path: string, field: string])[] = [
      ['PUT', '/model-access', 'allowed_models'],
      ['PUT', team, 'allowed_models'],
      ['PATCH', `/keys/${keyId}`, 'allowed_models'],
      ['PATCH', `/provider-credentials/${String(ownKeyId)}`, 'models'],
    ];
    const put = async (models: readonly string[], status: number): Promise<void> => {
      for (const [method, path, field] of lists) await tenant.as(method, path, { [field]: models }, status);
    };
    const served_by = [{ provider: 'made', model: 'judge', apis: ['systemone'], price: { input: '0.04' } }];
    await admin('PUT', '/models/made/judge', { kind: 'evaluation', context_length: 1_000, served_by });
    const tier = { name: 'only', description: 'all', models: [{ id: 'made/seasonal' }, { id: 'made/large' }] };
    const policy = { classifier: { model: 'made/judge' }, tiers: [tier] };
    await admin('PUT', '/routing/policies/seasonal', policy);
    await put(['made/seasonal'], 200);

    const again = async (path: string, fields: Json) =>
      admin('PUT', path, { ...fields, version: await versionOf(path) });
    await again('/models/made/seasonal', model({ active: false }));
    await put(['made/seasonal'], 200);
    await put(['made/seasonal', 'sim/small'], 200);
    await put(['sim/small'], 200);
    await put(['made/seasonal'], 400);
    await again('/routing/policies/seasonal', policy);
    await again('/routing/policies/seasonal', { ...policy, prefer_native_api: true });
    assert.match(
      await refusal('PUT', '/routing/policies/other', policy, 400),
      /tiers\.0\.models\.0\.id.* there is no model "made\/seasonal" in the catalog/,
    );
    await admin('DELETE', '/routing/policies/seasonal');
    for (const id of ['made/seasonal', 'made/judge']) await admin('DELETE', `/models/${id}`);
  });

  test('what was read can be put back, and a provider without api_key keeps its key', async () => {
    const { id: _, has_key: __, health: ____, ...fields } = await read('/providers/made');
    await admin('PUT', '/providers/made', fields);
    const { id: ___, ...own } = await read('/models/made/large');
    const same = await admin('PUT', '/models/made/large', own);
    assert.equal(same['version'], own['version'], 'nothing changed');
    assert.equal(await generate(KEYS.acme, 'made/large'), 200);
    assert.equal(upstream.requests.at(-1)?.header('authorization'), `Bearer ${KEY}`);
  });

  test('a stored key goes to no other address than the one that it was given for', async () => {
    const version = await versionOf('/providers/made');
    for (const base_url of ['https://elsewhere.test', upstream.url.replace('127.0.0.1', 'localhost')])
      assert.match(
        await refusal('PUT', '/providers/made', { base_url, version }, 400),
        /"api_key" is not valid: it is needed: the stored one is for another address/,
      );
    await admin('PUT', '/providers/made', { base_url: `${upstream.url}/v1`, version });
    assert.equal(await generate(KEYS.acme, 'made/large'), 200);
  });

  /** What is stored with other fields; `proxy` and `tls` are those that are given. */
  async function by(id: string, fields: Json, status: number): Promise<string> {
    const { proxy: _, tls: __, id: ___, has_key: ____, health: _____, ...stored } = await read(`/providers/${id}`);
    return refusal('PUT', `/providers/${id}`, { ...stored, ...fields }, status);
  }

  test('nor under another authority, nor in another header, which others may read or repeat', async () => {
    const other = (what: string) => new RegExp(`"api_key" is not valid: it is needed: the stored one is for ${what}`);
    const [one, two] = [{ tls: { ca: '/one.pem' } }, { tls: { ca: '/two.pem' } }];
    await admin('PUT', '/providers/secure', { base_url: 'https://secure.test', api_key: KEY });
    assert.match(await by('secure', one, 400), other('another tls.ca'));
    await by('secure', { ...one, api_key: KEY }, 200);
    assert.match(await by('secure', two, 400), other('another tls.ca'));
    await by('secure', { ...one, on_disconnect: 'drain' }, 200);
    await by('secure', {}, 200);
    assert.match(await by('secure', one, 400), other('another tls.ca'));
    for (const auth of ['x-api-key', { header: 'x-request-id' }])
      assert.match(await by('secure', { auth }, 400), other('another header'));
    await by('secure', { auth: 'x-api-key', api_key: KEY }, 200);
    await by('secure', { on_disconnect: 'cancel' }, 200);
    await admin('DELETE', '/providers/secure');
  });

  test('nor, over plain http, by another proxy, which reads it; over https a proxy reads nothing', async () => {
    const OTHER = /"api_key" is not valid: it is needed: the stored one is for another proxy/;
    const [one, other] = ['http://one.proxy.test:3128', 'http://other.proxy.test:3128'];
    await admin('PUT', '/providers/plain', { base_url: 'http://plain.test', api_key: KEY });
    assert.match(await by('plain', { proxy: one }, 400), OTHER);
    assert.match(await by('plain', { proxy: 'none' }, 400), OTHER);
    await by('plain', { proxy: one, api_key: KEY }, 200);
    await by('plain', { proxy: one, on_disconnect: 'drain' }, 200);
    assert.match(await by('plain', { proxy: other }, 400), OTHER);
    assert.match(await by('plain', {}, 400), OTHER);
    await admin('PUT', '/providers/secure', { base_url: 'https://secure.test', api_key: KEY });
    await by('secure', { proxy: one }, 200);
    await by('secure', { proxy: other }, 200);
    for (const id of ['plain', 'secure']) await admin('DELETE', `/providers/${id}`);
  });

  test('a change that was made from another version is refused, and so is one from none', async () => {
    const CASES: readonly (readonly [string, Json, string?])[] = [
      ['/providers/made', { base_url: upstream.url }],
      ['/models/made/large', model()],
      ['/prices', { model: 'made/large', provider: 'made', price }, '/models/made/large'],
    ];
    for (const [path, body, at = path] of CASES) {
      const present = await versionOf(at);
      assert.match(await refusal('PUT', path, body, 409), /"version" is needed: version \d+ exists/, path);
      const stale = { ...body, version: present - 1 };
      assert.match(await refusal('PUT', path, stale, 409), /"version" is not the present one, \d+/, path);
      assert.equal(await versionOf(at), present, path);
    }
    assert.match(await refusal('DELETE', '/models/made/large?version=1', undefined, 409), /is not the present one/);
    assert.match(await refusal('PUT', '/models/absent', model({ version: 3 }), 409), /it does not exist/);
    const changes = [1, 2].map((n) =>
      httpCall(`${tollgate.url}/v1/admin/models/raced`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
        body: JSON.stringify(model({ display_name: `by ${n}` })),
      }),
    );
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200, 409]));
  });

  test('a price is another version, and what was is listed', async () => {
    const version = await versionOf('/models/made/large');
    const order = { model: 'made/large', provider: 'made', price: { input: '2', output: '20.5' }, version };
    const changed = await admin('PUT', '/prices', order);
    assert.deepEqual((changed['served_by'] as Json[])[0]?.['price'], order.price);
    assert.ok(Number(changed['version']) > version);
    const prices = (await read('/prices?model=made/large')) as unknown as readonly Json[];
    assert.deepEqual(
      prices.map(({ price: amounts, present, provider_model }) => [amounts, present, provider_model]),
      [
        [order.price, true, 'made-1'],
        [price, false, 'made-1'],
      ],
    );
    const terms = {
      tiers: [{ from_input: 272_000, input: '4' }],
      service_tiers: { flex: '0.5', priority: { input: '4', tiers: [{ from_input: 272_000, input: '8' }] } },
      service_tier_default: 'priority',
      speeds: { fast: '6' },
      geos: { us: '1.1' },
      factor: '1.1',
      input_audio: '32',
      output_audio: '64.5',
      calls: { web_fetch: '0', web_search: { usd: '0.01', max: 8 } },
      request: '0.005',
      cost: 'reported',
    };
    const withTerms = { ...order, price: { ...order.price, ...terms }, version: changed['version'] };
    const termed = await admin('PUT', '/prices', withTerms);
    assert.deepEqual((termed['served_by'] as Json[])[0]?.['price'], withTerms.price);
    const [listed] = (await read('/prices?model=made/large')) as unknown as readonly Json[];
    assert.deepEqual([listed?.['price'], listed?.['present']], [withTerms.price, true]);
    const misnamed = {
      ...withTerms,
      price: { ...order.price, service_tier_default: 'flex' },
      version: termed['version'],
    };
    assert.match(await refusal('PUT', '/prices', misnamed, 400), /service_tier_default.* one of service_tiers/);
    const back = await admin('PUT', '/prices', { ...order, version: termed['version'] });
    assert.deepEqual((back['served_by'] as Json[])[0]?.['price'], order.price);

    const later = [order.price, { ...order.price, output: '21', from: '2999-01-01' }];
    const dated = await admin('PUT', '/prices', { ...order, price: later, version: back['version'] });
    const listedNow = (await read('/prices?model=made/large')) as unknown as readonly Json[];
    const charged = listedNow.filter(({ present }) => present === true).map(({ price: amounts }) => amounts);
    assert.deepEqual(charged, [order.price], 'what begins later is not what requests are charged by');
    const incomplete = { ...order, price: { input: '2' }, version: dated['version'] };
    assert.match(await refusal('PUT', '/prices', incomplete, 400), /needs the price "output"/);
    assert.match(await refusal('PUT', '/prices', { ...incomplete, provider: 'upstream' }, 400), /does not serve/);
  });

  test('mistakes are refused by their field; nothing is left of what was refused', async () => {
    const CASES: readonly (readonly [string, Json, number, RegExp])[] = [
      ['/providers/new', provider({ base_url: 'ftp://x' }), 400, /base_url/],
      ['/providers/new', provider({ colour: 'red' }), 400, /colour/],
      ['/providers/new', { base_url: upstream.url }, 400, /"?api_key"?.*needed/],
      ['/providers/new', provider({ api_key: 'os.environ/KEY' }), 400, /api_key.*the key itself/],
      ['/providers/new', provider({ api_key: `\${KEY}` }), 400, /api_key.*the key itself/],
      ['/models/new', model({ served_by: [{ provider: 'nobody', model: 'm', apis: ['messages'] }] }), 400, /"nobody"/],
      ['/models/new', model({ aliases: ['sim/small'] }), 409, /sim\/small/],
      ['/models/new', model({ aliases: ['sim/small-latest'] }), 409, /belongs to another model/],
      ['/models/new', model({ served_by: [] }), 400, /served_by/],
      ['/models/new', model({ kind: 'image' }), 400, /image/],
    ];
    for (const [path, body, status, message] of CASES)
      assert.match(await refusal('PUT', path, body, status), message, JSON.stringify(body));
    for (const path of ['/providers/new', '/models/new']) await refusal('GET', path, undefined, 404);
  });

  test('warnings come with the answer', async () => {
    const unpriced = model({ served_by: [{ provider: 'made', model: 'u', apis: ['chat_completions'] }] });
    const { context_length: _, ...unbounded } = unpriced;
    const { warnings } = await admin('PUT', '/models/warned', unbounded);
    assert.equal((warnings as string[]).length, 2);
    assert.match(String(warnings), /"warned" has no price.*"warned" has no context_length/);
  });

  test('a policy has versions too, and is removed when no organization routes by it', async () => {
    await admin('PUT', '/models/judge', {
      kind: 'evaluation',
      context_length: 1_000,
      served_by: [{ provider: 'made', model: 'judge', apis: ['systemone'], price: { input: '0.04' } }],
    });
    const tier = { name: 'only', description: 'all', models: [{ id: 'made/large' }] };
    const policy = { classifier: { model: 'judge' }, tiers: [tier] };
    const path = '/routing/policies/made';
    assert.equal((await admin('PUT', path, policy))['version'], 1);
    assert.match(await refusal('PUT', path, { ...policy, version: 7 }, 409), /is not the present one, 1/);
    const next = { ...policy, prefer_native_api: true };
    assert.equal((await admin('PUT', path, { ...next, version: 1 }))['version'], 2);
    assert.match(await refusal('DELETE', '/models/made/large', undefined, 409), /routing policy "made" names it/);

    const tenant = await Tenant.create(tollgate.url, 'routed');
    await admin('PUT', `/organizations/${tenant.id}/routing`, { policy: 'made' });
    assert.match(await refusal('DELETE', path, undefined, 409), /organization "routed" routes by it/);
    await admin('PUT', `/organizations/${tenant.id}/routing`, { policy: null });
    await admin('DELETE', `${path}?version=2`);
    await refusal('GET', path, undefined, 404);
  });

  test('a model and its provider are removed; the prices stay for the records', async () => {
    assert.match(await refusal('DELETE', '/providers/made', undefined, 409), /is served by it/);
    for (const id of ['made/large', 'raced', 'warned', 'judge']) await admin('DELETE', `/models/${id}`);
    assert.equal(((await read('/prices?model=made/large')) as unknown as unknown[]).length, 5);
    await admin('DELETE', `/providers/made?version=${await versionOf('/providers/made')}`);
    await follows('the model to end', () => generate(KEYS.acme, 'made/large'), 404);
    const entries = (await read('/audit')) as unknown as readonly Json[];
    const actions = new Set(entries.map(({ action }) => action));
    for (const action of ['provider.put', 'provider.remove', 'model.put', 'model.remove', 'routing_policy.remove'])
      assert.ok(actions.has(action), action);
    assert.ok(
      entries.some(({ action, actor }) => action === 'model.put' && (actor as Json)['label'] === 'ADMIN_TOKEN'),
    );
  });
});
