// The identity store is away for a while: whoever is known goes on, nobody new is let in, nothing hangs or dies, and
// all is well when it is back (spec 7.6).

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { DescribedRoute } from '../../src/control-plane/openapi/described-route.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { callWithSession, signedIn, signIn } from '../support/console-session.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, type HttpCall, httpCall } from '../support/http-call.ts';
import { ask, organizationIdOf } from '../support/identity-world.ts';
import { silentLog } from '../support/postgres.ts';
import { listDescendants } from '../support/process-table.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { nameOf, routeTable } from '../support/route-table.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CHAT = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":5}';
/** Long after every time limit of a connection to the database: what takes longer hangs. */
const HANG_MS = 60_000;

describe('while Postgres is away', { timeout: 4 * HANG_MS }, () => {
  const adminToken = randomBytes(24).toString('base64url');
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  let postgres: EmbeddedPostgres;
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let pids: readonly number[];
  /** Known to the gateway, and made too late to be. */
  let ownerToken: string;
  let newToken: string;
  let cookie: string;
  let acmeId: string;

  before(async () => {
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: {
        DATABASE_URL: postgres.url,
        MASTER_KEY: randomBytes(32).toString('base64'),
        ADMIN_TOKEN: adminToken,
        MEDIA: 'disk',
      },
    });
    acmeId = await organizationIdOf(tollgate.url, adminToken, 'acme');
    ownerToken = await issueOwnerToken();
    newToken = await issueOwnerToken();
    cookie = await signedIn(tollgate.url, { token: ownerToken });
    pids = tollgate.gatewayPids();
    assert.equal((await generate(KEYS.acme)).status, 200);
    assert.equal((await read('/v1/me', ownerToken)).status, 200);
    process.kill(postgres.pid, 'SIGQUIT');
    await postgres.exited;
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
    await postgres?.stop();
    removeInstallation(directory);
  });

  async function issueOwnerToken(): Promise<string> {
    const members = `/v1/admin/organizations/${acmeId}/members`;
    const [owner] = (await ask(tollgate.url, adminToken, 'GET', members)) as unknown as readonly { user_id: string }[];
    return String(
      (await ask(tollgate.url, adminToken, 'POST', `${members}/${owner?.user_id}/tokens`, { name: 'test' }, 201))[
        'secret'
      ],
    );
  }

  const call = (path: string, options: HttpCall): Promise<HttpAnswer> => httpCall(`${tollgate.url}${path}`, options);
  const generate = (credential: string) =>
    call('/v1/chat/completions', { headers: { authorization: `Bearer ${credential}` }, body: CHAT });
  const read = (path: string, credential: string) => call(path, { headers: { authorization: `Bearer ${credential}` } });

  test('a credential that is known goes on generating', { timeout: HANG_MS }, async () => {
    for (let round = 0; round < 5; round += 1) assert.equal((await generate(KEYS.acme)).status, 200);
  });

  test('any other is 502 in the gateway envelope, on every plane, and never let in', { timeout: HANG_MS }, async () => {
    const answers = [
      await generate(KEYS.acmeSecond),
      await generate('tg-of-nobody'),
      await read('/v1/models', KEYS.acmeSecond),
      await read('/v1/generation?id=01890a5d-ac96-774b-bcce-b302099a8057', KEYS.acmeSecond),
      await read('/v1/me', newToken),
      await read('/v1/admin/active-org/members', newToken),
      await call('/v1/messages', { headers: { 'x-api-key': KEYS.acmeSecond }, body: '{}' }),
    ];
    for (const answer of answers) {
      assert.deepEqual(
        [answer.status, refusalBody(answer.body.toString())],
        [502, { error: 'authorization unavailable' }],
      );
    }
  });

  /** What the routes of the document answer without the database; all others are refused for a while. */
  const ANSWERED: Readonly<Record<string, number>> = {
    'GET /v1/responses': 405,
    'GET /v1/models': 200,
    'GET /v1/models/providers': 200,
    // No model is called so.
    'GET /v1/models/:id': 404,
    'GET /healthz': 200,
    'GET /readyz': 200,
    'GET /openapi.json': 200,
    'GET /console': 200,
    'GET /console/:path': 200,
    'GET /v1/console/sign-in': 200,
    'GET /v1/console/oidc/:providerName': 404,
    'GET /v1/console/oidc/:providerName/callback': 404,
    'GET /v1/me': 200,
    // No file has the signature.
    'GET /v1/media/:id/public/:signature': 404,
  };
  const QUERIES: Readonly<Record<string, string>> = {
    'GET /v1/generation': 'id=01890a5d-ac96-774b-bcce-b302099a8057',
    'GET /v1/generations': 'client_request_id=x',
    'GET /v1/admin/prices': 'model=sim/small',
    'GET /v1/admin/active-org/byok/explain': 'model=sim/small&api=chat_completions',
  };

  function addressOf(route: DescribedRoute): string {
    const path = route.path.replace(/:(\w+)/g, (_, name: string) => {
      if (name === 'runNumber') return '1';
      return name.endsWith('Id') || (name === 'id' && !route.path.startsWith('/v1/models')) ? randomUUID() : 'absent';
    });
    const query = QUERIES[nameOf(route)];
    return query === undefined ? path : `${path}?${query}`;
  }

  function credentialFor({ scope, plane }: DescribedRoute): string {
    if (scope === 'platform') return adminToken;
    return plane === 'data' || scope === 'key' ? KEYS.acme : ownerToken;
  }

  /** All at once: what does not answer is waited for once. */
  async function readEverything(): Promise<Readonly<Record<string, string>>> {
    const wrong = await Promise.all(
      routeTable()
        .filter(({ method }) => method === 'GET')
        .map(async (route) => {
          const { status, headers, body } = await read(addressOf(route), credentialFor(route));
          const expected = ANSWERED[nameOf(route)] ?? 503;
          const isGood = status === expected && (status !== 503 || Number(headers['retry-after']) > 0);
          const isQuiet = status < 500 || !/postgres|ECONN|socket|timeout/i.test(body.toString());
          return isGood && isQuiet ? [] : [[nameOf(route), `${status} ${body.toString().slice(0, 300)}`] as const];
        }),
    );
    return Object.fromEntries(wrong.flat());
  }

  test('every look-up is 503, says when to come again, and nothing of the database', { timeout: HANG_MS }, async () => {
    assert.deepEqual(await readEverything(), {});
    const { body } = await read('/v1/billing/credits', KEYS.acme);
    const { code, error, message } = JSON.parse(body.toString()) as Record<string, string>;
    assert.match(code ?? '', /^[0-9a-f]{8}$/);
    assert.match(`${error} ${message}`, /database .* does not answer at the moment.*Retry-After/);
    const { body: ofKeys } = await read('/v1/admin/active-org/provider-credentials', ownerToken);
    assert.equal((JSON.parse(ofKeys.toString()) as { code: string }).code, 'store_unavailable');
  });

  test('so is every change, and none of it is made', { timeout: HANG_MS }, async () => {
    for (const [method, path, credential, body] of [
      ['POST', '/v1/admin/active-org/teams', ownerToken, { slug: 'lost' }],
      ['POST', '/v1/admin/active-org/keys', ownerToken, { name: 'lost' }],
      ['POST', '/v1/me/keys', ownerToken, { name: 'lost' }],
      ['POST', '/v1/me/tokens', ownerToken, { name: 'lost' }],
      ['POST', '/v1/admin/active-org/members', ownerToken, { email: 'lost@people.test' }],
      ['PUT', '/v1/admin/active-org/limits', ownerToken, { limits: [] }],
      ['PUT', '/v1/admin/active-org/webhook', ownerToken, { url: 'https://hooks.test/lost' }],
      ['PUT', '/v1/admin/active-org/model-access', ownerToken, { allowed_models: [] }],
      ['POST', '/v1/admin/organizations', adminToken, { slug: 'lost', billing: 'none' }],
      ['PUT', '/v1/admin/providers/lost', adminToken, { base_url: 'https://lost.test', api_key: 'sk-lost' }],
      ['POST', '/v1/billing/deposits', adminToken, { organization_id: acmeId, amount: '1', reference: 'lost' }],
      ['POST', '/v1/console/playground-key', ownerToken, {}],
    ] as const) {
      const answer = await call(path, {
        method,
        headers: { authorization: `Bearer ${credential}` },
        body: JSON.stringify(body),
      });
      assert.equal(answer.status, 503, `${method} ${path}: ${answer.body.toString()}`);
      assert.equal(answer.headers['retry-after'], '2', `${method} ${path}`);
    }
  });

  test('the console hears that nobody can say who is signed in, and that nobody is signed out', async () => {
    const ofSession = (method: 'GET' | 'PATCH' | 'DELETE', body?: string) =>
      callWithSession(`${tollgate.url}/v1/console/session`, cookie, {
        method,
        ...(body === undefined ? {} : { body }),
      });
    for (const [what, answer] of Object.entries({
      shows: await ofSession('GET'),
      moves: await ofSession('PATCH', '{"organization_id":null}'),
      ends: await ofSession('DELETE'),
      opens: await signIn(tollgate.url, { token: ownerToken }),
    })) {
      assert.equal(answer.status, 503, what);
      assert.equal(answer.headers['retry-after'], '2', what);
      assert.match(answer.body.toString(), /database .* does not answer.*nobody is signed out/, what);
      assert.equal(answer.headers['set-cookie'], undefined, what);
    }
  });

  test('no process died, and with Postgres back everybody is let in', async () => {
    const { url } = postgres;
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    assert.equal(postgres.url, url);
    await waitFor(
      'a credential that was not known to be let in',
      async () => (await generate(KEYS.acmeSecond)).status,
      (status) => status === 200,
      HANG_MS,
    );
    assert.equal((await read('/v1/me', newToken)).status, 200);
    assert.equal((await read('/v1/admin/active-org/members', ownerToken)).status, 200);
    const teams = (await ask(tollgate.url, ownerToken, 'GET', '/v1/admin/active-org/teams')) as unknown as readonly {
      slug: string;
    }[];
    assert.ok(teams.every(({ slug }) => slug !== 'lost'));
    const audit = await ask(tollgate.url, adminToken, 'GET', '/v1/admin/audit');
    assert.doesNotMatch(JSON.stringify(audit), /lost/);
    assert.equal((await generate('tg-of-nobody')).status, 401);
    assert.equal((await generate(KEYS.acme)).status, 200);
    assert.deepEqual(tollgate.gatewayPids(), pids);
  });

  test('nothing hangs where Postgres stands still, either', { timeout: HANG_MS }, async () => {
    const pids = [postgres.pid, ...listDescendants(postgres.pid).map(({ pid }) => pid)];
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    try {
      assert.deepEqual(await readEverything(), {});
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
    await waitFor(
      'what is looked up to be found again',
      async () => (await read('/v1/billing/credits', KEYS.acme)).status,
      (status) => status === 200,
      HANG_MS,
    );
  });
});
