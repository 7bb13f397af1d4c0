// Sessions of the console: on which routes they count, from which pages, and how they begin and end. Against two
// gateway processes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { DescribedRoute } from '../../src/control-plane/openapi/described-route.ts';
import { callWithSession, cookieOf, OWN_PAGE, signedIn, signIn } from '../support/console-session.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { GENERATION_ROUTES } from '../support/generation-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, issueToken, type Person, Tenant } from '../support/identity-world.ts';
import { nameOf, routeTable } from '../support/route-table.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

/** Both processes have had a connection of as many, all but surely. */
const CONNECTIONS = 16;
const SESSION = '/v1/console/session';
const REPLY = {
  body: JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'sim-small',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
};

let upstream: FakeUpstream;
let tollgate: Tollgate;
let tenant: Tenant;

before(async () => {
  upstream = await startFakeUpstream(() => REPLY);
  tollgate = await startTollgate({
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_TOKEN, MEDIA: 'disk' },
    gatewayProcesses: 2,
    clickhouse: 'away',
  });
  tenant = await Tenant.create(tollgate.url, 'console-world');
});

after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

const call = (path: string, cookie: string, more = {}) => callWithSession(`${tollgate.url}${path}`, cookie, more);
const statusOf = async (path: string, cookie: string) => (await call(path, cookie)).status;

async function statuses(path: string, cookie: string): Promise<ReadonlySet<number>> {
  return new Set(await Promise.all(Array.from({ length: CONNECTIONS }, () => statusOf(path, cookie))));
}

/** Written from the design, not the table: bytes that are relayed, saved or uploaded share the console's origin. */
function isOfForeignBytes({ plane, path }: DescribedRoute): boolean {
  return plane === 'data' || /^\/v1\/(media|files|responses)(\/|$)/.test(path);
}

const isAll = (status: number) => (seen: ReadonlySet<number>) => seen.size === 1 && seen.has(status);

describe('a session counts', () => {
  const table = routeTable().filter(({ plane }) => plane !== 'process');
  const pathOf = ({ path }: DescribedRoute) =>
    path.replace(/:(\w+)/g, (_, name: string) => (name.endsWith('Id') || name === 'id' ? randomUUID() : 'absent'));

  test('on the control plane and reports, never on a generation, a saved response or a file', async () => {
    await ask(
      tollgate.url,
      ADMIN_TOKEN,
      'POST',
      '/v1/admin/platform-administrators',
      {
        email: `owner@console-world.test`,
      },
      201,
    );
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const counts: Record<string, boolean> = {};
    for (const route of table.filter((one) => one.method !== 'DELETE' || one.path !== SESSION)) {
      const body = route.method === 'GET' || route.method === 'DELETE' ? {} : { body: '{}' };
      const answer = await call(pathOf(route), cookie, { method: route.method, ...body });
      counts[nameOf(route)] = answer.status !== 401;
    }
    const expected = Object.fromEntries(
      Object.keys(counts).map((name) => {
        const route = table.find((one) => nameOf(one) === name) as DescribedRoute;
        return [name, !isOfForeignBytes(route)];
      }),
    );
    assert.deepEqual(counts, expected);
    assert.ok(GENERATION_ROUTES.every(({ path }) => counts[`POST ${path}`] === false));
    assert.deepEqual(upstream.requests.length, 0);
  });

  test('on no route at all where another page, a form or a link makes the request', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const foreign: Readonly<Record<string, Record<string, string>>> = {
      'without the header': { 'sec-fetch-site': 'same-origin' },
      'of another site': { 'x-tollgate-console': '1', 'sec-fetch-site': 'cross-site' },
      'of another origin of the site': { 'x-tollgate-console': '1', 'sec-fetch-site': 'same-site' },
      'typed into the address bar': { 'x-tollgate-console': '1', 'sec-fetch-site': 'none' },
      'that says nothing of its origin': { 'x-tollgate-console': '1' },
      'of another origin, by an older browser': { 'x-tollgate-console': '1', origin: 'https://evil.test' },
      'of an opaque origin': { 'x-tollgate-console': '1', origin: 'null' },
    };
    for (const [what, headers] of Object.entries(foreign)) {
      const answer = await httpCall(`${tollgate.url}${SESSION}`, { headers: { ...headers, cookie } });
      assert.equal(answer.status, 401, what);
      const signing = await signIn(tollgate.url, { token: tenant.owner.token }, headers);
      assert.equal(signing.status, 403, what);
      assert.equal(signing.headers['set-cookie'], undefined, what);
    }
    const older = { 'x-tollgate-console': '1', origin: tollgate.url, cookie };
    assert.equal((await httpCall(`${tollgate.url}${SESSION}`, { headers: older })).status, 200);
    const preflight = await httpCall(`${tollgate.url}${SESSION}`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.test', 'access-control-request-headers': 'x-tollgate-console' },
    });
    assert.equal(preflight.headers['access-control-allow-headers'], undefined);
  });

  test('as a cookie alone, and only once', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const secret = cookie.slice(cookie.indexOf('=') + 1);
    for (const headers of [{ authorization: `Bearer ${secret}` }, { 'x-api-key': secret }])
      assert.equal((await httpCall(`${tollgate.url}${SESSION}`, { headers })).status, 401);
    // Nor does an access token in the cookie, or a second cookie of the name.
    const name = cookie.slice(0, cookie.indexOf('='));
    assert.equal(await statusOf(SESSION, `${name}=${tenant.owner.token}`), 401);
    assert.equal(await statusOf(SESSION, `${cookie}; ${name}=tgs-${'a'.repeat(43)}`), 401);
    assert.equal(await statusOf(SESSION, `other=1; ${cookie}`), 200);
  });

  test('only in the organization that its page shows, where the page names one', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const showing = (organization: string) => ({ headers: { 'x-tollgate-console': organization } });
    const path = '/v1/admin/active-org/teams';
    const team = (slug: string) => ({ method: 'POST', body: JSON.stringify({ slug }) });
    assert.equal((await call(path, cookie, showing(tenant.id))).status, 200);
    assert.equal((await call(path, cookie, { ...showing(randomUUID()), ...team('elsewhere') })).status, 409);
    assert.equal((await call(path, cookie, { ...showing(tenant.id), ...team('here') })).status, 201);
    const { data } = JSON.parse((await call(path, cookie)).body.toString()) as { data: { slug: string }[] };
    assert.ok(data.some(({ slug }) => slug === 'here') && data.every(({ slug }) => slug !== 'elsewhere'));
  });

  test('only of the person whom its page shows, where the page names one', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const { user } = JSON.parse((await call(SESSION, cookie)).body.toString()).data as { user: { id: string } };
    const path = '/v1/admin/active-org/teams';
    const showing = (person: string) => ({ headers: { 'x-tollgate-console-person': person } });
    assert.equal((await call(path, cookie, showing(user.id))).status, 200);
    for (const other of [randomUUID(), 'none']) {
      assert.equal((await call(path, cookie, showing(other))).status, 409, other);
      assert.equal((await call(SESSION, cookie, { ...showing(other), method: 'DELETE' })).status, 409, other);
    }
    const bootstrap = await signedIn(tollgate.url, { token: ADMIN_TOKEN });
    assert.equal((await call('/v1/admin/organizations', bootstrap, showing('none'))).status, 200);
    assert.equal((await call('/v1/admin/organizations', bootstrap, showing(user.id))).status, 409);
  });

  test('where it was moved to a moment ago, on processes that have yet to be told', async () => {
    const here = await Tenant.create(tollgate.url, 'moved-from');
    const there = await Tenant.create(tollgate.url, 'moved-to');
    const member = { email: 'owner@moved-from.test', role: 'member' };
    await ask(tollgate.url, ADMIN_TOKEN, 'POST', `/v1/admin/organizations/${there.id}/members`, member, 201);
    const cookie = await signedIn(tollgate.url, { token: here.owner.token });
    const showing = (organization: string) => ({ headers: { 'x-tollgate-console': organization } });
    const all = (path: string, more = {}) =>
      Promise.all(Array.from({ length: CONNECTIONS }, () => call(path, cookie, more)));
    await all(SESSION);
    const client = new pg.Client(tollgate.postgresUrl);
    await client.connect();
    try {
      // As `PATCH` does, but nobody is told: a notification may come late.
      const { rowCount } = await client.query(
        'UPDATE access_tokens SET active_organization_id = $1 WHERE id = (SELECT id FROM access_tokens ' +
          `WHERE kind = 'session' AND active_organization_id = $2 ORDER BY created_at DESC LIMIT 1)`,
        [there.id, here.id],
      );
      assert.equal(rowCount, 1);
    } finally {
      await client.end();
    }
    const statusesThere = async (path: string) =>
      new Set((await all(path, showing(there.id))).map(({ status }) => status));
    assert.deepEqual(await statusesThere('/v1/models'), new Set([200]));
    assert.deepEqual(await statusesThere('/v1/admin/active-org/teams'), new Set([403]), 'as a member of it');
    for (const { body } of await all(SESSION))
      assert.equal(JSON.parse(body.toString()).data.organization.id, there.id, 'the page asks where it works');
    for (const elsewhere of [here.id, 'none'])
      assert.equal((await call('/v1/models', cookie, showing(elsewhere))).status, 409, elsewhere);
  });

  test('less than a credential in a header', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const answer = await call(SESSION, cookie, { headers: { authorization: 'Bearer tgt-unknown' } });
    assert.equal(answer.status, 401);
  });
});

describe('signing in', () => {
  test('by an access token shows whom the session stands for, and keeps its secret from scripts', async () => {
    const answer = await signIn(tollgate.url, { token: tenant.owner.token });
    const [set] = answer.headers['set-cookie'] ?? [];
    assert.match(String(set), /^tollgate-\d+=tgs-[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/);
    const { data } = JSON.parse(answer.body.toString());
    assert.equal(data.user.email, 'owner@console-world.test');
    assert.equal(data.organization.slug, 'console-world');
    assert.equal(data.organization.role, 'owner');
    assert.ok(data.permissions.includes('org.admin'));
    assert.ok(!answer.body.toString().includes(cookieOf(answer).split('=')[1] as string));
    const lifeMs = Date.parse(data.expires_at) - Date.now();
    assert.ok(lifeMs > 11.9 * 3600_000 && lifeMs <= 12 * 3600_000);
  });

  test('by an inference key, a wrong token, both or nothing is refused', async () => {
    const { secret } = await tenant.addKey();
    const cases: readonly (readonly [object, number])[] = [
      [{ token: secret }, 403],
      [{ token: 'tgt-unknown' }, 401],
      [{ token: tenant.owner.token, link: `tgl-${'a'.repeat(43)}` }, 400],
      [{}, 400],
      [{ link: `tgl-${'a'.repeat(43)}` }, 401],
      [{ link: tenant.owner.token }, 400],
    ];
    for (const [body, status] of cases) {
      const answer = await signIn(tollgate.url, body as { token: string });
      assert.equal(answer.status, status, JSON.stringify(body));
      assert.equal(answer.headers['set-cookie'], undefined);
    }
  });

  test('takes no more to parse than a credential needs', async () => {
    const answer = await signIn(tollgate.url, { token: 'x'.repeat(8_192) });
    assert.equal(answer.status, 413, answer.body.toString());
    assert.match(answer.body.toString(), /8192/);
  });

  test('by a one-time link opens one session, whoever presents it at the same time', async () => {
    const { output, exitCode } = await tollgate.run(['console', '--user', 'owner@console-world.test']);
    assert.equal(exitCode, 0, output);
    const [, url, link] = /^(http\S+)\/console#link=(tgl-[\w-]{43})$/m.exec(output) ?? [];
    assert.equal(url, tollgate.url);
    const answers = await Promise.all(Array.from({ length: 8 }, () => signIn(tollgate.url, { link: link ?? '' })));
    const opened = answers.map(({ status }) => status).filter((status) => status !== 401);
    assert.deepEqual(opened, [200]);
    assert.equal(
      (await httpCall(`${tollgate.url}/v1/me`, { headers: { authorization: `Bearer ${link}` } })).status,
      401,
    );
  });

  test('by ADMIN_TOKEN administers the installation, without a person', async () => {
    const cookie = await signedIn(tollgate.url, { token: ADMIN_TOKEN });
    const { data } = JSON.parse((await call(SESSION, cookie)).body.toString());
    assert.deepEqual([data.user, data.organization, data.platform_admin], [null, null, true]);
    assert.equal(await statusOf('/v1/admin/organizations', cookie), 200);
    assert.equal(await statusOf('/v1/me/tokens', cookie), 403);
    const body = JSON.stringify({ organization_id: tenant.id });
    assert.equal((await call(SESSION, cookie, { method: 'PATCH', body })).status, 200);
    await waitFor('both processes to know', () => statuses('/v1/admin/active-org', cookie), isAll(200));
    assert.equal(await statusOf('/v1/admin/active-org', cookie), 200);
  });

  test('over plain http from another machine is refused before anything is sent back', async () => {
    const headers = { ...OWN_PAGE, host: 'gate.example:8080' };
    const answer = await signIn(tollgate.url, { token: tenant.owner.token }, headers);
    assert.equal(answer.status, 409);
    assert.equal(answer.headers['set-cookie'], undefined);
  });

  test('never takes over the session that the browser has: it ends', async () => {
    // A cookie that somebody planted: the session of another account.
    const other = await issueToken(tollgate.url, tenant.id, await tenant.addMember('member'));
    const planted = await signedIn(tollgate.url, { token: other.token });
    const answer = await signIn(tollgate.url, { token: tenant.owner.token }, { ...OWN_PAGE, cookie: planted });
    assert.equal(answer.status, 200);
    assert.notEqual(cookieOf(answer), planted);
    await waitFor('the planted session to end', () => statuses(SESSION, planted), isAll(401));
    // Nor does a secret that the browser made up become a session.
    const name = planted.slice(0, planted.indexOf('='));
    const madeUp = `${name}=tgs-${'b'.repeat(43)}`;
    const next = await signIn(tollgate.url, { token: tenant.owner.token }, { ...OWN_PAGE, cookie: madeUp });
    assert.notEqual(cookieOf(next), madeUp);
    assert.equal(await statusOf(SESSION, madeUp), 401);
  });
});

describe('the console asks', () => {
  const data = async (path: string, cookie: string, more = {}) =>
    JSON.parse((await call(path, cookie, more)).body.toString()).data;

  test('for a key of its playground, which generates and lives for a quarter of an hour', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const { id, key, expires_at } = await data('/v1/console/playground-key', cookie, { method: 'POST' });
    const lifeMs = Date.parse(expires_at) - Date.now();
    assert.ok(lifeMs > 14 * 60_000 && lifeMs <= 15 * 60_000, expires_at);
    const models = await httpCall(`${tollgate.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(models.status, 200);
    const keys: { id: string; user_id: string }[] = await data('/v1/me/keys', cookie);
    assert.equal(keys.find((one) => one.id === id)?.user_id, tenant.owner.userId);
    // An inference key makes no other.
    const headers = { authorization: `Bearer ${key}` };
    const again = await httpCall(`${tollgate.url}/v1/console/playground-key`, { method: 'POST', headers });
    assert.equal(again.status, 403);
  });

  test('for one of a member, which that member pays for, as for any of their own; administrators need not', async () => {
    const playgroundKey = async ({ token }: Person) => {
      const cookie = await signedIn(tollgate.url, { token });
      const { id, key } = await data('/v1/console/playground-key', cookie, { method: 'POST' });
      const keys: { id: string; payer: string }[] = await data('/v1/me/keys', cookie);
      return { key: String(key), payer: keys.find((one) => one.id === id)?.payer };
    };
    const generation = async (key: string) => {
      const body = JSON.stringify({ model: 'sim/small', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] });
      const headers = { authorization: `Bearer ${key}` };
      return (await httpCall(`${tollgate.url}/v1/chat/completions`, { method: 'POST', body, headers })).status;
    };
    const deposit = (reference: string, into: object) =>
      ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/billing/deposits', { amount: '5', reference, ...into }, 201);
    const prepaid = await Tenant.create(tollgate.url, 'console-prepaid', 'prepaid');
    await deposit('of the organization', { organization_id: prepaid.id });
    const member = await prepaid.addPerson('member');
    const ofMember = await playgroundKey(member);
    assert.deepEqual([ofMember.payer, await generation(ofMember.key)], ['user', 402]);
    await deposit('of the member', { organization_id: prepaid.id, user_id: member.userId });
    const isServed = (status: number) => status === 200;
    await waitFor('the credit of the member to be known', () => generation(ofMember.key), isServed);
    const ofAdmin = await playgroundKey(await prepaid.addPerson('admin'));
    assert.equal(ofAdmin.payer, 'organization');
    await waitFor('the credit of the organization to be known', () => generation(ofAdmin.key), isServed);
    // In an organization that is not billed nobody is charged.
    const ofFree = await playgroundKey(await tenant.addPerson('member'));
    assert.deepEqual([ofFree.payer, await generation(ofFree.key)], ['user', 200]);
  });

  test('how the limits of anybody stand', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const { id } = await tenant.addKey();
    await tenant.as('PUT', `/keys/${id}/limits`, { limits: [{ kind: 'budget', window: 'month', limit: '25.00' }] });
    const [limit, ...others] = await data(`/v1/admin/active-org/keys/${id}/limits/current`, cookie);
    assert.deepEqual(
      [limit.scope, limit.limit, limit.used, limit.lent, limit.remaining, others],
      ['key', '25', '0', '0', '25', []],
    );
    assert.equal(await statusOf(`/v1/admin/active-org/keys/${randomUUID()}/limits/current`, cookie), 404);
  });

  test('what the jobs found, and for a run of one, which is in the audit log', async () => {
    const cookie = await signedIn(tollgate.url, { token: ADMIN_TOKEN });
    const jobs: { name: string }[] = await data('/v1/admin/jobs', cookie);
    assert.ok(jobs.some(({ name }) => name === 'check-ledger'));
    const { run_id } = await data('/v1/admin/jobs/check-ledger/runs', cookie, { method: 'POST' });
    await waitFor(
      'the run to end',
      () => data(`/v1/admin/jobs/check-ledger/runs/${run_id}`, cookie),
      ({ finished_at, error }) => finished_at !== null && error === null,
    );
    const { compared } = await data('/v1/admin/drift', cookie);
    assert.equal(compared.find(({ what }: { what: string }) => what === 'ledger').drift, 0);
    const epochs: { kind: string }[] = await data('/v1/admin/epochs', cookie);
    assert.equal(epochs.filter(({ kind }) => kind === 'gateway').length, 2);
    const [entry] = await data('/v1/admin/audit?limit=1', cookie);
    assert.deepEqual([entry.action, entry.target.id, entry.actor.kind], ['job.run', 'check-ledger', 'bootstrap']);
    assert.match(entry.actor.label, /^console session /);
  });

  test('what all processes serve at this time, and how each stands', async () => {
    const cookie = await signedIn(tollgate.url, { token: ADMIN_TOKEN });
    const { secret } = await tenant.addKey();
    const body = JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content: 'x' }] });
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const ask = { method: 'POST', headers, body };
    assert.equal((await httpCall(`${tollgate.url}/v1/chat/completions`, ask)).status, 200);
    const live = await waitFor(
      'the request to be counted',
      () => data('/v1/admin/live', cookie),
      ({ minute }) => minute.requests > 0,
      30_000,
    );
    assert.equal(live.minute.by_status['2xx'], live.minute.requests);
    assert.ok(live.minute.latency_ms.p50 > 0 && live.minute.first_byte_ms.p99 > 0);
    assert.equal(live.points.length, 60);
    assert.deepEqual([live.processes, live.silent_processes, live.quarantined_files], [3, 0, 0]);
    const gauges = ['epoch', 'in_flight', 'unposted_bytes', 'quarantined_files'];
    const processes: Readonly<Record<string, unknown>>[] = await data('/v1/admin/processes', cookie);
    const kinds = processes.map((one) => [one['kind'], ...gauges.map((name) => one[name] !== null)].join(' '));
    const gateway = 'gateway true true false false';
    assert.deepEqual(kinds, [gateway, gateway, 'jobs false false true true']);
    assert.match((await tollgate.run(['process', 'list'])).output, /gateway \d+ .* runs .*in_flight \d/);
    assert.match((await tollgate.run(['process', 'live'])).output, /last minute: \d+ requests/);
  });
});

describe('a session ends', () => {
  const endsEverywhere = async (cookie: string, end: () => Promise<unknown>) => {
    assert.deepEqual(await statuses(SESSION, cookie), new Set([200]));
    await end();
    await waitFor('every process to refuse it', () => statuses(SESSION, cookie), isAll(401));
  };

  test('on both processes when its user signs out', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    await endsEverywhere(cookie, async () => {
      const answer = await call(SESSION, cookie, { method: 'DELETE' });
      assert.equal(answer.status, 200);
      assert.match(String(answer.headers['set-cookie']?.[0]), /Max-Age=0/);
    });
  });

  test('when the access token that opened it is revoked', async () => {
    const { token, tokenId } = await issueToken(tollgate.url, tenant.id, tenant.owner.userId);
    const cookie = await signedIn(tollgate.url, { token });
    await endsEverywhere(cookie, () => ask(tollgate.url, token, 'DELETE', `/v1/me/tokens/${tokenId}`));
  });

  test('before it began, where its access token was revoked and a process has yet to be told', async () => {
    const { token, tokenId } = await issueToken(tollgate.url, tenant.id, tenant.owner.userId);
    const headers = { authorization: `Bearer ${token}` };
    const me = () => httpCall(`${tollgate.url}/v1/me`, { headers });
    await Promise.all(Array.from({ length: CONNECTIONS }, me));
    const client = new pg.Client(tollgate.postgresUrl);
    await client.connect();
    // As `DELETE /v1/me/tokens` does, but nobody is told: a notification may come late.
    await client.query('UPDATE access_tokens SET revoked_at = now() WHERE id = $1', [tokenId]);
    await client.end();
    assert.equal((await me()).status, 200, 'the process remembers it');
    assert.equal((await signIn(tollgate.url, { token })).status, 401);
  });

  test('to count in an organization that its user was removed from', async () => {
    const person = await tenant.addPerson('admin');
    const cookie = await signedIn(tollgate.url, { token: person.token });
    assert.deepEqual(await statuses('/v1/admin/active-org', cookie), new Set([200]));
    await tenant.as('DELETE', `/members/${person.userId}`);
    await waitFor('no process to know its organization', () => statuses('/v1/admin/active-org', cookie), isAll(400));
  });

  test('with its own end, which use moves on to 7 days at most', async () => {
    const cookie = await signedIn(tollgate.url, { token: tenant.owner.token });
    const { data } = JSON.parse((await call('/v1/me', cookie)).body.toString());
    const id = String(data.credential_id);
    const client = new pg.Client(tollgate.postgresUrl);
    await client.connect();
    const set = async (expiresAt: string) => {
      await client.query(`UPDATE access_tokens SET expires_at = ${expiresAt} WHERE id = $1`, [id]);
      await client.query(`SELECT pg_notify('tollgate_changed', 'principals:' || $1)`, [id]);
    };
    const hoursLeft = async () => {
      const { rows } = await client.query<{ hours: number }>(
        'SELECT (extract(epoch FROM expires_at - now()) / 3600)::float AS hours FROM access_tokens WHERE id = $1',
        [id],
      );
      return rows[0]?.hours ?? 0;
    };
    await set("now() + interval '1 hour'");
    await waitFor(
      'use to move the end on',
      async () => {
        await statuses(SESSION, cookie);
        return hoursLeft();
      },
      (hours) => hours > 11.9,
    );
    await set("now() - interval '1 second'");
    await waitFor('its end', () => statuses(SESSION, cookie), isAll(401));
    await client.end();
  });
});
