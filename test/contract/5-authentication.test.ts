// Spec 5 and 7.6 on every control-plane route of the table: who is let in, in which words the others are refused, and
// what becomes of strange input.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { z } from 'zod';
import { ChangeMeter } from '../../src/control-plane/change-meter.ts';
import type { IdentityStore } from '../../src/control-plane/identity/identity-store.ts';
import type { MediaRows } from '../../src/control-plane/media/manage-media.ts';
import type { DescribedRoute } from '../../src/control-plane/openapi/described-route.ts';
import type { OwnKeysStore } from '../../src/control-plane/own-keys/own-keys-store.ts';
import type { PreviewParams } from '../../src/control-plane/routing/preview.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { ROLE_PERMISSIONS } from '../../src/domain/identity/roles.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import { someOf } from '../support/at-length.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { principalOf } from '../support/principals.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { NOTHING_BEHIND, nameOf } from '../support/route-table.ts';

const OWN_TEAM = '00000000-0000-4000-8000-0000000000a1';
const OTHER_ID = '00000000-0000-4000-8000-0000000000b2';

const owner = principalOf('00000000-0000-4000-8000-0000000000d4', {
  credential: 'token',
  apiKeyId: '00000000-0000-4000-8000-0000000000c3',
  userId: '00000000-0000-4000-8000-0000000000e5',
  walletId: null,
  billed: false,
  permissions: ROLE_PERMISSIONS.owner,
});
const PRINCIPALS: Readonly<Record<string, Principal>> = {
  owner,
  member: { ...owner, permissions: ROLE_PERMISSIONS.member },
  teamOwner: { ...owner, permissions: ROLE_PERMISSIONS.member, teamPermissions: new Map([[OWN_TEAM, 'owner']]) },
  teamMember: { ...owner, permissions: ROLE_PERMISSIONS.member, teamPermissions: new Map([[OWN_TEAM, 'member']]) },
  nowhere: { ...owner, organizationId: null, permissions: [] },
  platform: { ...owner, organizationId: null, permissions: ['platform.admin'], platformAdmin: true },
  key: { ...owner, credential: 'key', permissions: ['inference', 'usage.read'] },
  expired: { ...owner, expiresAtMs: 1 },
};

/** What storage was asked, and what it answers. */
const asked: { operation: string; values: unknown[] }[] = [];
let answer: unknown = { refused: 'not_found' };
const identity = new Proxy({} as IdentityStore, {
  get:
    (_, operation) =>
    async (...values: unknown[]) => {
      asked.push({ operation: String(operation), values });
      return answer;
    },
});

const catalog = { version: 1, models: [], byName: new Map() };
/** Own provider keys: what is asked of the process itself, and of storage, which has no price for any model. */
const OF_THE_PROCESS: Readonly<Record<string, unknown>> = {
  nowMs: () => 1,
  catalog: () => catalog,
  getPrice: async (...values: unknown[]) => {
    asked.push({ operation: 'getPrice', values });
    return null;
  },
};
const ownKeys = new Proxy(identity as unknown as OwnKeysStore, {
  get: (store, operation) => OF_THE_PROCESS[String(operation)] ?? Reflect.get(store, operation),
});

const mediaRows = new Proxy(identity as unknown as MediaRows, {
  get: (store, operation) => (operation === 'nowMs' ? () => 1 : Reflect.get(store, operation)),
});

/** Each question comes long after the one before: a store that was away is asked again. */
let minutes = 0;
const minuteByMinute: Clock = { nowMs: () => systemClock.nowMs(), monotonicMs: () => (minutes += 60_000) };
const authenticator = new Authenticator(async (credential) => {
  if (credential === 'away') throw new Error('the identity store is away');
  return PRINCIPALS[credential] ?? null;
}, minuteByMinute);

const parts = {
  ...NOTHING_BEHIND,
  authenticator,
  changeMeter: new ChangeMeter(minuteByMinute, 60),
  identity,
  billing: identity,
  routing: identity,
  catalogStore: identity,
  guardrails: identity,
  mediaRows,
  guardrailTrials: { policiesOf: () => [], run: () => null },
  ownKeys,
  console: {
    ...NOTHING_BEHIND.console,
    store: identity,
    createPlaygroundKey: async (...values: unknown[]) => {
      asked.push({ operation: 'createPlaygroundKey', values });
      return answer;
    },
  },
  installation: identity,
  reports: {
    forward: (exchange: Exchange, order: unknown) => {
      asked.push({ operation: 'forward', values: [order] });
      exchange.refuse({ kind: 'not_found' });
    },
  },
  previewRoute: async ({ body, ...order }: PreviewParams) => {
    asked.push({ operation: 'previewRoute', values: [order, body.toString()] });
    return answer;
  },
  checkCatalog: async (params: unknown) => {
    asked.push({ operation: 'checkCatalog', values: [params] });
    return { kind: 'not_found' };
  },
  webhookTargets: { allowHttp: false, allowPrivate: false },
  catalog: () => catalog,
  lookup: { findGeneration: async () => null, clock: systemClock },
  findGenerations: async () => [],
  notReady: () => [],
} as unknown as RouteParts;
const table = createRoutes(parts);
const controlRoutes = table.filter((route) => route.plane === 'control');
const identityRoutes = controlRoutes.filter((route) => 'serve' in route.description);
const withBody = identityRoutes.filter((route) => route.description.body !== null);

describe('control-plane routes', () => {
  let front: HttpFront;

  before(async () => {
    front = await startHttpFront(table);
  });
  after(() => front?.stop());
  beforeEach(() => {
    asked.length = 0;
    answer = { refused: 'not_found' };
  });

  /** Calls a route with every path parameter filled in. */
  function call(
    route: DescribedRoute,
    options: {
      as?: string;
      headers?: Record<string, string>;
      id?: string;
      query?: string;
      body?: string | Buffer;
    } = {},
  ) {
    const path = route.path.replace(/:\w+/g, options.id ?? OTHER_ID);
    const authorization = options.as === undefined ? {} : { authorization: `Bearer ${options.as}` };
    const content = options.body === undefined ? {} : { body: options.body };
    return httpCall(`${front.url}${path}${options.query ?? ''}`, {
      method: route.method,
      headers: { ...authorization, ...options.headers },
      ...content,
    });
  }

  function assertGateway(reply: HttpAnswer, status: number, error: string, where: string): void {
    assert.equal(reply.status, status, where);
    assert.deepEqual(refusalBody(reply.body.toString(), String(reply.headers['x-request-id'])), { error }, where);
    assert.equal(reply.headers['www-authenticate'], status === 401 ? 'Bearer' : undefined, where);
  }

  const NO_CREDENTIALS = [
    { authorization: 'Basic b3duZXI6' },
    { authorization: 'Bearer ' },
    { authorization: 'owner' },
  ] as const;
  const UNKNOWN = ['unknown', 'owne', 'ownerowner', 'Owner', 'expired', 'x'.repeat(257)] as const;
  for (const [number, route] of controlRoutes.entries()) {
    const name = nameOf(route);
    test(`${name} lets nobody in without a good credential`, async () => {
      for (const headers of [{}, ...someOf(NO_CREDENTIALS, 3, number)])
        assertGateway(await call(route, { headers }), 401, 'authentication required', name);
      for (const as of someOf(UNKNOWN, 6, number)) assertGateway(await call(route, { as }), 401, 'unauthorized', as);
      assertGateway(await call(route, { headers: { 'x-api-key': 'unknown' } }), 401, 'unauthorized', name);
      assertGateway(await call(route, { as: 'away' }), 502, 'authorization unavailable', name);
      assert.deepEqual(asked, []);
    });

    test(`${name} asks for its scope, then for its permission`, async () => {
      if (route.scope === 'organization' || route.scope === 'team' || route.scope === 'member') {
        assertGateway(await call(route, { as: 'nowhere' }), 400, 'authorization scope required', name);
      }
      if (route.scope === 'platform')
        assertGateway(await call(route, { as: 'nowhere' }), 403, 'permission denied', name);
      if (route.permission === 'org.admin') {
        for (const as of ['member', 'key', 'teamMember', 'teamOwner'])
          assertGateway(await call(route, { as }), 403, 'permission denied', `${name} as ${as}`);
      }
      if (route.scope === 'platform') assertGateway(await call(route, { as: 'owner' }), 403, 'permission denied', name);
      if (route.scope === 'person' || route.scope === 'member') {
        assertGateway(await call(route, { as: 'key' }), 403, 'permission denied', name);
      }
      if (route.scope === 'team')
        assertGateway(await call(route, { as: 'teamMember', id: OWN_TEAM }), 403, 'permission denied', name);
      assert.deepEqual(asked, []);
      if (route.scope === 'team') {
        const reply = await call(route, { as: 'teamOwner', id: OWN_TEAM });
        assert.ok(reply.status === 404 || reply.status === 400, `${name}: ${reply.status}`);
      }
    });
  }

  const STRANGE_IDS = [
    'x',
    `${OTHER_ID}0`,
    '%00',
    "'%20OR%201=1--",
    '%ff%fe',
    '..%2f..',
    OTHER_ID.toUpperCase().replace('B', 'G'),
  ] as const;
  for (const route of identityRoutes.filter(({ path }) => path.includes(':'))) {
    test(`${nameOf(route)} says the same of what is absent, foreign and no id at all`, async () => {
      const as = route.scope === 'platform' ? 'platform' : 'owner';
      const body = route.description.body === null ? {} : { body: JSON.stringify(exampleOf(route)) };
      const absent = await call(route, { as, ...body });
      assert.equal(absent.status, 404);
      // Which jobs there are is known without storage.
      assert.equal(asked.length, route.path.includes(':jobName') ? 0 : 1);
      const takesNames = route.path.includes('Name');
      for (const id of STRANGE_IDS) {
        const reply = await call(route, { as, id, ...body });
        const said = refusalBody(reply.body.toString());
        assert.deepEqual([reply.status, said], [404, refusalBody(absent.body.toString())], id);
      }
      if (!takesNames) assert.equal(asked.length, 1, 'storage is not asked about what is no id');
    });
  }

  const strangeBodies: readonly (readonly [string, string | Buffer, number])[] = [
    ['no JSON', '{"a":', 400],
    ['an array', '[]', 400],
    ['null', 'null', 400],
    ['a lone byte of UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
    ['a byte-order mark', `\ufeff{}`, 400],
    ['too much', `{"a":"${'x'.repeat(300_000)}"}`, 413],
    ['very deep', '['.repeat(100_000), 400],
    ['a field that does not exist', '{"no_such_field":1}', 400],
    ['a prototype', '{"__proto__":{"name":"x"},"constructor":1}', 400],
  ];
  for (const route of withBody) {
    const as = route.scope === 'platform' ? 'platform' : 'owner';
    test(`${nameOf(route)} refuses a body it cannot take, in the platform envelope`, async () => {
      for (const [what, body, status] of strangeBodies) {
        const reply = await call(route, { as, body });
        assert.equal(reply.status, status, what);
        const envelope = JSON.parse(reply.body.toString()) as { code: string; error: string };
        // Spec 7.4: own provider keys have stable codes.
        const code = route.envelope === 'provider_keys' ? /^invalid_request$/ : /^[0-9a-f]{8}$/;
        assert.match(envelope.code, code, what);
      }
      assert.equal((await call(route, { as, body: '{}', headers: { 'content-type': 'text/plain' } })).status, 415);
      assert.equal((await call(route, { as, body: '{}', headers: { 'content-encoding': 'gzip' } })).status, 415);
      assert.deepEqual(asked, []);
    });

    test(`${nameOf(route)} stores strange text as it is or refuses it by field, and never faults`, async () => {
      const example = exampleOf(route);
      // A request to preview is read as bytes, and what is no request has no model: how strange ones are read has its
      // own tests.
      // A text to try guardrails on is screened and not kept.
      const isTried = route.path.endsWith('/guardrails/test');
      const fields = Object.keys(propertiesOf(route)).filter(
        (name) => name !== 'body' && !(isTried && name === 'text'),
      );
      for (const field of fields) {
        for (const text of someOf(STRANGE_TEXTS, 4, field.length)) {
          asked.length = 0;
          const reply = await call(route, { as, body: JSON.stringify({ ...example, [field]: text }) });
          // What is kept of own provider keys depends on what the platform allows: 7.4-provider-keys.test.ts shows it.
          if (route.envelope === 'provider_keys') {
            assert.ok([400, 403, 404, 422].includes(reply.status), `${field}: ${reply.status}`);
            continue;
          }
          assert.ok(reply.status === 400 || reply.status === 404, `${field}: ${reply.status}`);
          if (reply.status === 400) {
            assert.match(
              (JSON.parse(reply.body.toString()) as { error: string }).error,
              new RegExp(field),
              `${field}: ${JSON.stringify(text).slice(0, 50)}`,
            );
            assert.deepEqual(asked, []);
          } else {
            assert.ok(toJson(asked).includes(JSON.stringify(text).slice(1, -1)), `${field} was not kept verbatim`);
          }
        }
      }
    });
  }

  test('query and header fields: strange text is refused by field, or ignored in a header, and never faults', async () => {
    const route = identityRoutes.find(
      ({ path, method }) => path === '/v1/admin/active-org/keys' && method === 'GET',
    ) as DescribedRoute;
    for (const query of [
      '?limit=0',
      '?limit=1e9',
      '?limit=abc',
      '?limit=%00',
      '?limit=1&limit=2',
      '?cursor=%00',
      '?cursor=%0d%0a',
      '?team_id=1',
      '?cursor=%ff',
    ]) {
      const reply = await call(route, { as: 'owner', query });
      assert.equal(reply.status, 400, query);
      assert.match(reply.body.toString(), /limit|cursor|team_id/);
    }
    // A parameter that the route does not have is named (spec 4.4).
    for (const query of [
      '?x=%00',
      '?%ff=%ff',
      `?${'a'.repeat(4_000)}`,
      "?limit=5&x=';DROP TABLE users--".replaceAll(' ', '%20'),
    ]) {
      const reply = await call(route, { as: 'owner', query });
      assert.equal(reply.status, 400, query);
      assert.match(reply.body.toString(), /it is not a parameter of this endpoint/, query);
    }
    assert.equal((await call(route, { as: 'owner', query: '?' })).status, 404);
    const reply = await call(route, {
      as: 'owner',
      headers: { 'x-strange': "'; DROP TABLE users--\u00ff", cookie: 'a=b' },
    });
    assert.equal(reply.status, 404);
  });

  test('what would break what exists is 409, the owner floor under its published code (spec 7.8)', async () => {
    const route = identityRoutes.find(({ description }) => description.id === 'removeMember') as DescribedRoute;
    answer = { refused: 'owner_floor' };
    const floor = await call(route, { as: 'owner' });
    assert.equal(floor.status, 409);
    assert.equal((JSON.parse(floor.body.toString()) as { code: string }).code, 'owner_floor');
    answer = { refused: 'conflict', field: 'displayName', reason: 'is taken' };
    const taken = await call(route, { as: 'owner' });
    assert.equal(taken.status, 409);
    assert.match(taken.body.toString(), /\\"display_name\\" is taken/);
    answer = { refused: 'permission_denied' };
    assertGateway(await call(route, { as: 'owner' }), 403, 'permission denied', 'decided by storage');
  });

  test('GET /v1/me says who is asking, also by x-api-key', async () => {
    const route = identityRoutes.find(({ path }) => path === '/v1/me') as DescribedRoute;
    const reply = await call(route, { headers: { 'x-api-key': 'key' } });
    assert.equal(reply.status, 200);
    const { data } = JSON.parse(reply.body.toString()) as { data: Record<string, unknown> };
    assert.equal(data['credential'], 'key');
    assert.deepEqual(data['permissions'], ['inference', 'usage.read']);
  });

  test('the OpenAPI document is served to everybody', async () => {
    const reply = await httpCall(`${front.url}/openapi.json`);
    assert.equal(reply.status, 200);
    assert.equal((JSON.parse(reply.body.toString()) as { openapi: string }).openapi, '3.1.0');
  });
});

const STRANGE_TEXTS = [
  "'; DROP TABLE organizations; --",
  '$(reboot) `id` ${7*7} {{7*7}} <script>',
  'a\r\nset-cookie: x=1',
  'nul\u0000here',
  'lone \ud800 surrogate',
  '\u202eright to left',
  '\ufeff',
  'é'.repeat(100),
  'x'.repeat(10_000),
  '',
  '😀 日本語',
];

function propertiesOf(route: DescribedRoute): Readonly<Record<string, Record<string, unknown>>> {
  const schema = z.toJSONSchema(route.description.body as z.ZodType, { io: 'input' }) as {
    properties?: Record<string, Record<string, unknown>>;
  };
  return schema.properties ?? {};
}

/** Amounts are bigints. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));
}

/** A body that the route takes. */
function exampleOf(route: DescribedRoute): Readonly<Record<string, unknown>> {
  const values: Readonly<Record<string, unknown>> = {
    slug: 'research',
    name: 'ci',
    email: 'a@acme.test',
    role: 'member',
    billing: 'none',
    limits: [],
    allowed_models: null,
    overlap_seconds: 60,
    organization_id: OTHER_ID,
    amount: '25.00',
    configuration: 'providers: []',
    reference: 'invoice 1',
    frozen: true,
    url: 'https://hooks.test/tollgate',
    policy: 'default',
    api: 'chat_completions',
    body: '{}',
    classifier: { model: 'sim/judge', timeout_ms: 800, confidence_floor: 0.6 },
    tiers: [{ name: 'only', description: 'everything', models: [{ id: 'sim/small' }] }],
    fallback_tier: 'only',
    base_url: 'https://provider.test',
    served_by: [{ provider: 'openai', model: 'gpt-x', apis: ['chat_completions'] }],
    model: 'sim/small',
    provider: 'openai',
    price: { input: '1.25', output: '10' },
    kind: 'openai',
    secret: 'sk-1',
    before: [],
    after: [],
    text: 'a text',
    rules: [{ id: 'people', detect: ['email'], stage: 'both', action: 'mask' }],
  };
  const schema = z.toJSONSchema(route.description.body as z.ZodType, { io: 'input' }) as {
    required?: readonly string[];
    properties?: object;
  };
  const { required = [], properties = {} } = schema;
  // A platform administrator has no active organization to mean; a provider has an address where it has no preset.
  const alsoNeeded = ['organization_id', 'base_url'];
  const fields = [...required, ...Object.keys(properties).filter((field) => alsoNeeded.includes(field))];
  return Object.fromEntries(fields.map((field) => [field, values[field]]));
}
