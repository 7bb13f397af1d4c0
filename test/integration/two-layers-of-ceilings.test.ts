// What the platform sets binds and an organization may only tighten it: limits and lists of models by scope, kind and
// who set them, over HTTP on a whole installation. Who may call which of the routes is in identity-matrix.test.ts.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;
type SetBy = 'platform' | 'organization';

const SCOPES = ['organization', 'team', 'user', 'key'] as const;
type Scope = (typeof SCOPES)[number];

/** Nothing passes under `zero`, everything under `wide`; `status`: of a request that can never pass. */
const KINDS = {
  requests_per_minute: {
    status: 429,
    zero: { kind: 'requests_per_minute', limit: 0 },
    wide: { kind: 'requests_per_minute', limit: 1_000_000 },
  },
  tokens_per_minute: {
    status: 422,
    zero: { kind: 'tokens_per_minute', limit: 0 },
    wide: { kind: 'tokens_per_minute', limit: 1_000_000_000 },
  },
  concurrent_requests: {
    status: 429,
    zero: { kind: 'concurrent_requests', limit: 0 },
    wide: { kind: 'concurrent_requests', limit: 1_000 },
  },
  budget: {
    status: 429,
    zero: { kind: 'budget', window: 'day', limit: '0' },
    wide: { kind: 'budget', window: 'day', limit: '1000000' },
  },
} as const;

const MODELS = ['sim/small', 'sim/limited'] as const;

describe('ceilings in two layers', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let tenant: Tenant;
  /** Of a key in the team, the member's. */
  let secret: string;
  let ids: Readonly<Record<'team' | 'user' | 'key', string>>;
  /** What lifts what a test has set and not yet lifted, by the layer and the path it is set on. */
  const lifts = new Map<string, () => Promise<Json>>();

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN },
    });
    tenant = await Tenant.create(tollgate.url, 'tenant');
    const team = await tenant.addTeam();
    const user = await tenant.addMember('member', { id: team, role: 'member' });
    const key = await tenant.addKey({ team_id: team, user_id: user });
    secret = key.secret;
    ids = { team, user, key: key.id };
  });
  // A test that fails half way leaves nothing that the next one would fail by.
  afterEach(async () => {
    for (const lift of lifts.values()) await lift();
    lifts.clear();
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  /** As the platform, or as an administrator of the organization. */
  function as(setBy: SetBy, method: string, path: string, body?: Json, status = 200, of = tenant): Promise<Json> {
    if (setBy === 'organization') return of.as(method, path, body, status);
    return ask(tollgate.url, ADMIN_TOKEN, method, `/v1/admin/organizations/${of.id}${path}`, body, status);
  }

  function pathOf(scope: Scope, things: Readonly<Record<'team' | 'user' | 'key', string>> = ids): string {
    switch (scope) {
      case 'organization':
        return '';
      case 'team':
        return `/teams/${things.team}`;
      case 'user':
        return `/members/${things.user}`;
      case 'key':
        return `/keys/${things.key}`;
    }
  }

  /** `lift`: the body that lifts it, once the test is over; null: this one does. */
  function set(setBy: SetBy, [method, path, body]: readonly [string, string, Json], lift: Json | null): Promise<Json> {
    const name = `${setBy} ${path}`;
    if (lift === null) lifts.delete(name);
    else lifts.set(name, () => as(setBy, method, path, lift));
    return as(setBy, method, path, body);
  }

  const setLimits = (setBy: SetBy, scope: Scope, ...limits: Json[]) =>
    set(setBy, ['PUT', `${pathOf(scope)}/limits`, { limits }], limits.length === 0 ? null : { limits: [] });

  function chat(model: string = MODELS[0], credential = secret): Promise<HttpAnswer> {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 });
    return httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${credential}` },
      body,
    });
  }

  /** Until the gateway knows that these limits hold for the key, and no others. */
  async function hold(scope: Scope, limits: readonly (readonly [SetBy, Json])[], credential = secret): Promise<void> {
    const expected = limits.map(([setBy, { kind, limit }]) => [scope, setBy, kind, limit]);
    await waitFor(
      'the limits to hold',
      async () => {
        const found = (await ask(
          tollgate.url,
          credential,
          'GET',
          '/v1/usage/limits/current',
        )) as unknown as readonly Json[];
        return found
          .map(({ scope: whose, set_by, kind, limit }) => [whose, set_by, kind, limit])
          .toSorted((a, b) => String(b[1]).localeCompare(String(a[1])));
      },
      (found) => JSON.stringify(found) === JSON.stringify(expected),
    );
  }

  async function assertRefusedUnder(scope: Scope, setBy: SetBy, kind: keyof typeof KINDS): Promise<void> {
    const answer = await chat();
    const { result } = JSON.parse(answer.body.toString()) as { result?: Json };
    assert.deepEqual(
      [answer.status, result?.['scope'], result?.['set_by'], result?.['kind']],
      [KINDS[kind].status, scope, setBy, kind],
      answer.body.toString(),
    );
  }

  for (const scope of SCOPES) {
    for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
      const { zero, wide } = KINDS[kind];
      test(
        `${kind} of the ${scope}: the platform's is neither lifted nor raised, and the organization's own ` +
          `holds beside it`,
        async () => {
          await setLimits('platform', scope, zero);
          await hold(scope, [['platform', zero]]);
          await assertRefusedUnder(scope, 'platform', kind);

          const both = [
            { ...zero, set_by: 'platform' },
            { ...wide, set_by: 'organization' },
          ];
          assert.deepEqual(await setLimits('organization', scope, wide), { limits: both });
          for (const reader of ['platform', 'organization'] as const)
            assert.deepEqual(await as(reader, 'GET', `${pathOf(scope)}/limits`), { limits: both });
          await hold(scope, [
            ['platform', zero],
            ['organization', wide],
          ]);
          await assertRefusedUnder(scope, 'platform', kind);
          assert.deepEqual(await setLimits('organization', scope), { limits: [{ ...zero, set_by: 'platform' }] });
          await hold(scope, [['platform', zero]]);
          await assertRefusedUnder(scope, 'platform', kind);

          await setLimits('organization', scope, zero);
          await setLimits('platform', scope, wide);
          await hold(scope, [
            ['platform', wide],
            ['organization', zero],
          ]);
          await assertRefusedUnder(scope, 'organization', kind);
          assert.deepEqual(await setLimits('platform', scope), { limits: [{ ...zero, set_by: 'organization' }] });
          await hold(scope, [['organization', zero]]);
          await assertRefusedUnder(scope, 'organization', kind);
          await setLimits('organization', scope);
          await hold(scope, []);
          assert.equal((await chat()).status, 200);
        },
      );
    }
  }

  test('who sets a limit is not the body’s to say', async () => {
    const limits = [{ ...KINDS.budget.wide, set_by: 'platform' }];
    for (const setBy of ['platform', 'organization'] as const) await as(setBy, 'PUT', '/limits', { limits }, 400);
    assert.deepEqual(await as('platform', 'GET', '/limits'), { limits: [] });
  });

  /** A key's list is set by the organization as a field of the key. */
  function setModels(setBy: SetBy, scope: Exclude<Scope, 'user'>, models: readonly string[] | null): Promise<Json> {
    const isField = setBy === 'organization' && scope === 'key';
    const [method, path] = isField ? ['PATCH', pathOf('key')] : ['PUT', `${pathOf(scope)}/model-access`];
    return set(setBy, [method, path, { allowed_models: models }], models === null ? null : { allowed_models: null });
  }

  /** Until the gateway knows that the key may use these and no others; then which of all models it serves. */
  async function servedOnceAllowed(models: readonly string[] | null): Promise<string[]> {
    await waitFor(
      'the models to be allowed',
      async () => (await ask(tollgate.url, secret, 'GET', '/v1/me'))['allowed_models'],
      (found) => JSON.stringify(found) === JSON.stringify(models),
    );
    const served: string[] = [];
    for (const model of MODELS) if ((await chat(model)).status === 200) served.push(model);
    return served;
  }

  for (const scope of ['organization', 'team', 'key'] as const) {
    test(`models of the ${scope}: those that both allow, and each one's list stays its own`, async () => {
      const [small, limited] = MODELS;
      const shown = (allowed: unknown, platform: unknown, organization: unknown) => [
        allowed,
        { platform, organization },
      ];
      const readAs = async (reader: SetBy) => {
        const own = scope === 'key' && reader === 'organization' ? pathOf('key') : `${pathOf(scope)}/model-access`;
        const { allowed_models, allowed_models_set_by } = await as(reader, 'GET', own);
        return [allowed_models, allowed_models_set_by];
      };
      await setModels('platform', scope, [small]);
      assert.deepEqual(await servedOnceAllowed([small]), [small]);
      const lifted = await setModels('organization', scope, null);
      assert.deepEqual([lifted['allowed_models'], lifted['allowed_models_set_by']], shown([small], [small], null));
      assert.deepEqual(await servedOnceAllowed([small]), [small]);
      await setModels('organization', scope, [limited]);
      for (const reader of ['platform', 'organization'] as const)
        assert.deepEqual(await readAs(reader), shown([], [small], [limited]), reader);
      assert.deepEqual(await servedOnceAllowed([]), []);
      await setModels('organization', scope, [limited, small]);
      assert.deepEqual(await readAs('organization'), shown([small], [small], [limited, small]));
      assert.deepEqual(await servedOnceAllowed([small]), [small]);
      await setModels('platform', scope, null);
      assert.deepEqual(await readAs('platform'), shown([limited, small], null, [limited, small]));
      await setModels('platform', scope, [limited]);
      await setModels('organization', scope, [small]);
      await setModels('platform', scope, null);
      assert.deepEqual(await servedOnceAllowed([small]), [small]);
      await setModels('organization', scope, null);
      assert.deepEqual(await servedOnceAllowed(null), [...MODELS]);
    });
  }

  test('a key that is rotated keeps what the platform set on it', async () => {
    const zero = KINDS.requests_per_minute.zero;
    const key = await tenant.addKey();
    await as('platform', 'PUT', `/keys/${key.id}/limits`, { limits: [zero] });
    await as('platform', 'PUT', `/keys/${key.id}/model-access`, { allowed_models: [MODELS[0]] });
    const rotated = await tenant.as('POST', `/keys/${key.id}/rotate`, { overlap_seconds: 0 });
    await hold('key', [['platform', zero]], String(rotated['secret']));
    assert.deepEqual((await ask(tollgate.url, String(rotated['secret']), 'GET', '/v1/me'))['allowed_models'], [
      MODELS[0],
    ]);
    assert.equal((await chat(MODELS[0], String(rotated['secret']))).status, 429);
  });

  test('a member who is removed and added again is under what both set', async () => {
    const { zero, wide } = KINDS.requests_per_minute;
    const email = 'again@people.test';
    const added = await tenant.as('POST', '/members', { email, role: 'member' }, 201);
    const path = `/members/${String(added['user_id'])}`;
    await as('platform', 'PUT', `${path}/limits`, { limits: [wide] });
    await tenant.as('PUT', `${path}/limits`, { limits: [zero] });
    await tenant.as('DELETE', path);
    const again = await tenant.as('POST', '/members', { email, role: 'member' }, 201);
    assert.equal(again['user_id'], added['user_id']);
    const both = [
      { ...wide, set_by: 'platform' },
      { ...zero, set_by: 'organization' },
    ];
    assert.deepEqual(await as('platform', 'GET', `${path}/limits`), { limits: both });
    const key = await tenant.addKey({ user_id: added['user_id'] });
    await hold(
      'user',
      [
        ['platform', wide],
        ['organization', zero],
      ],
      key.secret,
    );
    assert.equal((await chat(MODELS[0], key.secret)).status, 429);
  });

  test(
    'a team that the platform set something on is neither deleted nor renamed out of reach until it is ' + 'lifted',
    async () => {
      const refused = async (method: string, path: string, body?: Json) => {
        const headers = { authorization: `Bearer ${tenant.owner.token}` };
        const answer = await httpCall(`${tollgate.url}/v1/admin/active-org${path}`, {
          method,
          headers,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        assert.match(answer.body.toString(), /has limits, models or guardrails that the platform set/);
        assert.equal(answer.status, 409);
      };
      for (const [what, given, lifted] of [
        ['limits', { limits: [KINDS.requests_per_minute.zero] }, { limits: [] }],
        ['model-access', { allowed_models: [] }, { allowed_models: null }],
      ] as const) {
        const path = `/teams/${await tenant.addTeam()}`;
        await as('platform', 'PUT', `${path}/${what}`, given);
        await tenant.as('PUT', `${path}/${what}`, lifted);
        await refused('DELETE', path);
        await refused('PATCH', path, { slug: `elsewhere-${what}` });
        await tenant.as('PATCH', path, { display_name: 'Elsewhere' });
        await as('platform', 'PUT', `${path}/${what}`, lifted);
        await tenant.as('PUT', `${path}/${what}`, given);
        await tenant.as('PATCH', path, { slug: `elsewhere-${what}` });
        await tenant.as('DELETE', path);
      }
      const definition = { rules: [{ id: 'cards', detect: ['card'], stage: 'input', action: 'block' }] };
      await ask(tollgate.url, ADMIN_TOKEN, 'PUT', '/v1/admin/guardrails/policies/no-cards', definition);
      const id = await tenant.addTeam();
      const slug = String((await tenant.as('GET', `/teams/${id}`))['slug']);
      const assigned = (of: string, policies: readonly string[]) => ({ teams: { [of]: policies } });
      await as('platform', 'PUT', '/guardrails/assignments', assigned(slug, ['no-cards']));
      await tenant.as('PUT', '/guardrails/assignments', assigned(slug, []));
      await refused('DELETE', `/teams/${id}`);
      await refused('PATCH', `/teams/${id}`, { slug: 'elsewhere-guardrails' });
      await tenant.as('PUT', '/guardrails/assignments', assigned(slug, ['no-cards']));
      await as('platform', 'PUT', '/guardrails/assignments', assigned(slug, []));
      await tenant.as('PATCH', `/teams/${id}`, { slug: 'elsewhere-guardrails' });
      await tenant.as('DELETE', `/teams/${id}`);
    },
  );

  test(
    'a key that its user pays for is under the organization’s budget too, and under the platform’s list ' + 'on it',
    async () => {
      const paying = await Tenant.create(tollgate.url, 'paying', 'prepaid');
      const person = await paying.addPerson('member');
      const deposit = { organization_id: paying.id, user_id: person.userId, amount: '100', reference: 'own' };
      const own = await ask(tollgate.url, person.token, 'POST', '/v1/me/keys', { name: 'own' }, 201);
      await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', deposit, 201);
      const credential = String(own['secret']);
      assert.equal((await chat(MODELS[0], credential)).status, 200);
      const zero = KINDS.budget.zero;
      await as('platform', 'PUT', '/limits', { limits: [zero] }, 200, paying);
      await hold('organization', [['platform', zero]], credential);
      const refused = await chat(MODELS[0], credential);
      assert.deepEqual([refused.status, JSON.parse(refused.body.toString()).error], [429, 'usage_limit_exceeded']);
      await as(
        'platform',
        'PUT',
        `/keys/${String(own['id'])}/model-access`,
        { allowed_models: [MODELS[1]] },
        200,
        paying,
      );
      const widened = await ask(tollgate.url, person.token, 'PATCH', `/v1/me/keys/${String(own['id'])}`, {
        allowed_models: null,
      });
      assert.deepEqual(widened['allowed_models'], [MODELS[1]]);
    },
  );

  test('commands set and remove what the platform sets, and list both', async () => {
    const { zero, wide } = KINDS.requests_per_minute;
    await setLimits('organization', 'team', wide);
    const slug = String((await tenant.as('GET', pathOf('team')))['slug']);
    const run = async (line: string) => {
      const { exitCode, output } = await tollgate.run([...line.split(' '), '--organization', 'tenant', '--team', slug]);
      assert.equal(exitCode, 0, output);
      return output.trim().split('\n');
    };
    const platforms = 'requests_per_minute\t0\tset by platform';
    const organizations = 'requests_per_minute\t1000000\tset by organization';
    assert.deepEqual(await run('limit set --kind requests_per_minute --limit 0'), [platforms, organizations]);
    await hold('team', [
      ['platform', zero],
      ['organization', wide],
    ]);
    assert.deepEqual(await run('limit list'), [platforms, organizations]);
    assert.deepEqual(await run('limit remove --kind requests_per_minute'), [organizations]);
    await setLimits('organization', 'team');
    await setModels('organization', 'team', [MODELS[1]]);
    const lists = (allowed: string, platform: string) => [
      `allowed\t${allowed}`,
      `set by platform\t${platform}`,
      `set by organization\t${MODELS[1]}`,
    ];
    assert.deepEqual(await run(`access set --models ${MODELS.join(',')}`), lists(MODELS[1], MODELS.join(',')));
    assert.deepEqual(await run(`access set --models ${MODELS[0]}`), lists('no model', MODELS[0]));
    assert.deepEqual(await run('access clear'), lists(MODELS[1], 'every model'));
    await setModels('organization', 'team', null);
  });

  test('the audit log says who set what', async () => {
    await setLimits('organization', 'organization', KINDS.budget.wide);
    await setLimits('organization', 'organization');
    const [last] = (await tenant.as('GET', '/audit?limit=1')) as unknown as readonly Json[];
    assert.equal(last?.['action'], 'limits.replace');
    assert.deepEqual(
      (last['before'] as readonly Json[]).map((limit) => limit['setBy']),
      ['organization'],
    );
    assert.deepEqual(last['after'], []);
    assert.deepEqual(
      (last['before'] as readonly Json[]).map((limit) => limit['limit']),
      ['1000000'],
    );
  });
});
