// The identity store is away for a while: whoever is known goes on, nobody new is let in, nothing hangs or dies, and
// all is well when it is back (spec 7.6).

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { callWithSession, signedIn, signIn } from '../support/console-session.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, type HttpCall, httpCall } from '../support/http-call.ts';
import { ask, organizationIdOf } from '../support/identity-world.ts';
import { silentLog } from '../support/postgres.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { removeInstallation } from '../support/remove-installation.ts';
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

  before(async () => {
    postgres = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { DATABASE_URL: postgres.url, MASTER_KEY: randomBytes(32).toString('base64'), ADMIN_TOKEN: adminToken },
    });
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
    const members = `/v1/admin/organizations/${await organizationIdOf(tollgate.url, adminToken, 'acme')}/members`;
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

  test('what has to be looked up is 500 in the platform envelope', { timeout: HANG_MS }, async () => {
    for (const [path, credential] of [
      ['/v1/admin/active-org/members', ownerToken],
      ['/v1/me/keys', ownerToken],
      ['/v1/generations?client_request_id=x', KEYS.acme],
    ] as const) {
      const answer = await read(path, credential);
      assert.equal(answer.status, 500, `${path}: ${answer.body.toString()}`);
      const envelope = JSON.parse(answer.body.toString()) as { code: string; error: string };
      assert.match(envelope.code, /^[0-9a-f]{8}$/);
      assert.doesNotMatch(answer.body.toString(), /postgres|ECONN|socket/i);
    }
    const made = await call('/v1/admin/active-org/teams', {
      method: 'POST',
      headers: { authorization: `Bearer ${ownerToken}` },
      body: '{"slug":"lost"}',
    });
    assert.equal(made.status, 500);
    // What is held in memory is answered.
    for (const path of ['/v1/me', '/v1/models']) assert.equal((await read(path, ownerToken)).status, 200, path);
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
    assert.equal((await generate('tg-of-nobody')).status, 401);
    assert.equal((await generate(KEYS.acme)).status, 200);
    assert.deepEqual(tollgate.gatewayPids(), pids);
  });
});
