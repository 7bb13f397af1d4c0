// Signing in to the console by an OpenID provider, whole, against a real one (oidc-provider): groups, and whoever
// forges or replays a part of it. Two gateway processes: the browser comes back to either.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { callWithSession } from '../support/console-session.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, Tenant } from '../support/identity-world.ts';
import { type IdTokenParts, type OidcAccount, OidcTestProvider } from '../support/oidc-test-provider.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const ACCOUNTS: Record<string, OidcAccount> = {
  ada: { email: 'ada@oidc.test', verified: true, groups: ['acme-ml'] },
  boss: { email: 'owner@oidc-world.test', verified: true, groups: ['acme-ml'] },
  root: { email: 'root@oidc.test', verified: true, groups: ['tg-platform'] },
  lead: { email: 'lead@oidc.test', verified: true, groups: ['acme-owners'] },
  nora: { email: 'nora@oidc.test', verified: true, groups: ['acme-ml'] },
  twin: { email: 'twin@oidc.test', verified: true, groups: ['acme-ml'] },
  mona: { email: 'mona@oidc.test', verified: true, groups: ['acme-ml'] },
  stranger: { email: 'stranger@oidc.test', verified: true, groups: [] },
};

/** Cookies by host, and no more of a browser than that. */
class Browser {
  private readonly jar = new Map<string, Map<string, string>>();

  async get(url: string): Promise<HttpAnswer> {
    const cookies = this.of(url);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await httpCall(url, { headers: cookie === '' ? {} : { cookie } });
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0/i.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return answer;
  }

  of(url: string): Map<string, string> {
    const { host } = new URL(url);
    const cookies = this.jar.get(host) ?? new Map<string, string>();
    this.jar.set(host, cookies);
    return cookies;
  }

  session(url: string): string | null {
    const found = [...this.of(url)].find(([name]) => /^tollgate-\d+$/.test(name));
    return found === undefined ? null : found.join('=');
  }
}

let upstream: FakeUpstream;
let tollgate: Tollgate;
let tenant: Tenant;
let provider: OidcTestProvider;
let other: OidcTestProvider;
const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'));

before(async () => {
  upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
  provider = new OidcTestProvider(await findFreePort(), ACCOUNTS);
  other = new OidcTestProvider(await findFreePort(), ACCOUNTS);
  const entry = (id: string, issuer: string, more: string) =>
    `  - { id: ${id}, issuer: "${issuer}", client_id: tollgate, client_secret: "\${CLIENT_SECRET}",
      scopes: openid email groups, ${more} platform_administrators: [tg-platform],
      members: [{ group: acme-ml, organization: oidc-world, role: member },
                { group: acme-owners, organization: oidc-world, role: owner }] }\n`;
  const file = join(folder, 'sign-in.yaml');
  writeFileSync(
    file,
    `oidc:\n${entry('okta', provider.issuer, '')}${entry('linking', other.issuer, 'link_by_email: true,')}`,
  );
  tollgate = await startTollgate({
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    env: { ADMIN_TOKEN, SIGN_IN_FILE: file, CLIENT_SECRET: 'secret-of-the-client' },
    gatewayProcesses: 2,
    clickhouse: 'away',
  });
  await provider.start([`${tollgate.url}/v1/console/oidc/okta/callback`]);
  await other.start([`${tollgate.url}/v1/console/oidc/linking/callback`]);
  tenant = await Tenant.create(tollgate.url, 'oidc-world');
});

after(async () => {
  provider?.stop();
  other?.stop();
  await tollgate?.stop();
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Goes to the provider and back, and stops before the gateway is asked about what came. */
async function comeBack(browser: Browser, id = 'okta'): Promise<string> {
  let url = `${tollgate.url}/v1/console/oidc/${id}`;
  for (let step = 0; step < 8; step += 1) {
    const { status, headers, body } = await browser.get(url);
    assert.ok(status === 302 || status === 303, `${url}: ${status} ${body.toString()}`);
    url = new URL(String(headers.location), url).href;
    if (url.includes('/callback')) return url;
  }
  throw new Error(`the provider never sent the browser back: ${url}`);
}

async function signInAs(visitor: string, browser = new Browser(), id = 'okta') {
  provider.visitor = visitor;
  other.visitor = visitor;
  const answer = await browser.get(await comeBack(browser, id));
  return { browser, location: String(answer.headers.location), cookie: browser.session(tollgate.url) };
}

async function sessionOf(cookie: string | null) {
  assert.ok(cookie !== null);
  const answer = await callWithSession(`${tollgate.url}/v1/console/session`, cookie);
  assert.equal(answer.status, 200, answer.body.toString());
  return JSON.parse(answer.body.toString()).data;
}

const call = (path: string, cookie: string | null, body: string) =>
  callWithSession(`${tollgate.url}${path}`, String(cookie), { method: 'POST', body });

/** What is read once it has not changed for a moment. */
async function calmOf(read: () => number): Promise<number> {
  for (let before = -1; before !== read(); ) {
    before = read();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return read();
}

describe('signing in by an OpenID provider', () => {
  test('is offered, and opens a session with the memberships of the groups', async () => {
    const offered = JSON.parse((await httpCall(`${tollgate.url}/v1/console/sign-in`)).body.toString()).data.oidc;
    assert.deepEqual(offered[0], { id: 'okta', display_name: 'okta', url: '/v1/console/oidc/okta' });
    const { location, cookie } = await signInAs('ada');
    assert.equal(location, `${tollgate.url}/console`);
    const session = await sessionOf(cookie);
    assert.deepEqual(
      [session.user.email, session.organization.slug, session.organization.role, session.platform_admin],
      ['ada@oidc.test', 'oidc-world', 'member', false],
    );
    const [entry] = (await tenant.as('GET', '/audit?limit=1')) as unknown as { action: string; actor: object }[];
    assert.equal(entry?.action, 'member.add');
    assert.match(JSON.stringify(entry?.actor), /sign-in okta/);
  });

  test('follows the groups at each sign-in: roles change, end, and what people gave stays', async () => {
    const first = await sessionOf((await signInAs('ada')).cookie);
    (ACCOUNTS['ada'] as OidcAccount).groups = ['tg-platform'];
    const { cookie } = await signInAs('ada');
    const session = await sessionOf(cookie);
    assert.deepEqual([session.user.id, session.platform_admin], [first.user.id, true]);
    assert.equal(session.organization, null);
    (ACCOUNTS['ada'] as OidcAccount).groups = [];
    assert.match((await signInAs('ada')).location, /sign-in-problem=no_access$/);
    await waitFor(
      'the platform to be out of reach',
      () => sessionOf(cookie),
      (now) => now.platform_admin === false,
    );
    await tenant.as('POST', '/members', { email: 'ada@oidc.test', role: 'admin' }, 201);
    const given = await sessionOf((await signInAs('ada')).cookie);
    assert.equal(given.organization.role, 'admin');
  });

  test('takes nothing from a person whose groups the provider does not tell just now', async () => {
    const nora = ACCOUNTS['nora'] as OidcAccount;
    const { cookie } = await signInAs('nora');
    const { data } = JSON.parse((await call('/v1/me/keys', cookie, '{"name":"in use"}')).body.toString());
    const isInUse = async () => {
      const headers = { authorization: `Bearer ${data.secret ?? data.key}` };
      return (await httpCall(`${tollgate.url}/v1/models`, { headers })).status === 200;
    };
    assert.ok(await isInUse());
    provider.userInfoFails = true;
    const away = await signInAs('nora');
    provider.userInfoFails = false;
    assert.match(away.location, /sign-in-problem=provider_unavailable$/);
    nora.groupsElsewhere = true;
    const elsewhere = await signInAs('nora');
    nora.groupsElsewhere = false;
    assert.match(elsewhere.location, /sign-in-problem=refused$/);
    assert.equal((await sessionOf(cookie)).organization.role, 'member');
    assert.ok(await isInUse());
    nora.groups = 'acme-ml';
    assert.equal((await sessionOf((await signInAs('nora')).cookie)).organization.role, 'member');
    assert.ok(await isInUse());
  });

  test('is done once by a person who comes for the first time in several tabs', async () => {
    provider.visitor = 'twin';
    const browsers = Array.from({ length: 6 }, () => new Browser());
    const urls = await Promise.all(browsers.map((browser) => comeBack(browser)));
    await Promise.all(browsers.map((browser, index) => browser.get(urls[index] as string)));
    const sessions = await Promise.all(browsers.map((browser) => sessionOf(browser.session(tollgate.url))));
    assert.deepEqual(new Set(sessions.map(({ organization }) => organization.slug)), new Set(['oidc-world']));
    assert.equal(new Set(sessions.map(({ user }) => user.id)).size, 1);
  });

  test('goes on in the tab that began it last', async () => {
    provider.visitor = 'lead';
    other.visitor = 'lead';
    const browser = new Browser();
    const first = await comeBack(browser);
    const last = await comeBack(browser);
    assert.match(String((await browser.get(first)).headers.location), /sign-in-problem=refused$/);
    assert.match(String((await browser.get(first.replace('/okta/', '/linking/'))).headers.location), /expired$/);
    assert.equal((await browser.get(last)).headers.location, `${tollgate.url}/console`);
    assert.notEqual(browser.session(tollgate.url), null);
  });

  test('calls a provider that stands still a few times at once, however many come', async () => {
    provider.visitor = 'lead';
    const browsers = Array.from({ length: 24 }, () => new Browser());
    const urls = await Promise.all(browsers.map((browser) => comeBack(browser)));
    const waiting: (() => void)[] = [];
    provider.waiting = waiting;
    const asked = browsers.map((browser, index) => browser.get(urls[index] as string));
    await waitFor(
      'calls that wait',
      () => waiting.length,
      (calls) => calls >= 4,
    );
    assert.ok((await calmOf(() => waiting.length)) <= 8, `${waiting.length} calls by two gateways`);
    provider.waiting = null;
    for (const answer of waiting) answer();
    const answers = await Promise.all(asked);
    assert.deepEqual(new Set(answers.map(({ headers }) => headers.location)), new Set([`${tollgate.url}/console`]));
  });

  test('keeps the last owner, whatever the groups say', async () => {
    const lead = await sessionOf((await signInAs('lead')).cookie);
    assert.equal(lead.organization.role, 'owner');
    await tenant.as('DELETE', `/members/${tenant.owner.userId}`);
    (ACCOUNTS['lead'] as OidcAccount).groups = [];
    const kept = await sessionOf((await signInAs('lead')).cookie);
    assert.equal(kept.organization.role, 'owner');
  });

  test('gives nothing to strangers, and no other person’s account to who has their address', async () => {
    const stranger = await signInAs('stranger');
    assert.match(stranger.location, /sign-in-problem=no_access$/);
    assert.equal(stranger.cookie, null);
    const taken = await signInAs('boss');
    assert.match(taken.location, /sign-in-problem=email_taken$/);
    const boss = ACCOUNTS['boss'] as OidcAccount;
    ACCOUNTS['boss'] = { ...boss, verified: false };
    assert.match((await signInAs('boss', new Browser(), 'linking')).location, /sign-in-problem=email_taken$/);
    ACCOUNTS['boss'] = boss;
    const linked = await sessionOf((await signInAs('boss', new Browser(), 'linking')).cookie);
    assert.equal(linked.user.id, tenant.owner.userId);
  });
});

test('a session begins where the groups are, though another organization made the person a member before', async () => {
  const elsewhere = await Tenant.create(tollgate.url, 'oidc-elsewhere');
  await elsewhere.as('POST', '/members', { email: 'mona@oidc.test' }, 201);
  const session = await sessionOf((await signInAs('mona', new Browser(), 'linking')).cookie);
  assert.equal(session.organization.slug, 'oidc-world');
});

describe('what comes back is refused', () => {
  const refused = async (browser: Browser, url: string, problem: RegExp) => {
    const answer = await browser.get(url);
    assert.match(String(answer.headers.location), problem);
    assert.equal(browser.session(tollgate.url), null);
  };
  const changed = (url: string, name: string, value: string) => {
    const made = new URL(url);
    made.searchParams.set(name, value);
    return made.href;
  };

  test('with a forged state, a forged code or another issuer', async () => {
    provider.visitor = 'root';
    for (const [name, value] of [
      ['state', 'forged'],
      ['code', 'forged'],
      ['iss', 'https://evil.test'],
    ] as const) {
      const browser = new Browser();
      await refused(browser, changed(await comeBack(browser), name, value), /sign-in-problem=refused$/);
    }
  });

  test('with an ID token that the provider did not sign, or that is not for this sign-in', async (context) => {
    context.after(() => {
      provider.forgeIdToken = null;
    });
    provider.visitor = 'root';
    const hourAgo = Math.floor(Date.now() / 1000) - 3600;
    const forgeries: Readonly<Record<string, (parts: IdTokenParts) => IdTokenParts>> = {
      'another address': ({ claims, ...parts }) => ({ ...parts, claims: { ...claims, email: 'boss@oidc.test' } }),
      'another signature': (parts) => ({ ...parts, signature: `AAAA${parts.signature.slice(4)}` }),
      'no signature': (parts) => ({ ...parts, signature: '' }),
      'no algorithm': (parts) => ({ ...parts, header: { ...parts.header, alg: 'none' }, signature: '' }),
      'another key': (parts) => ({ ...parts, header: { ...parts.header, kid: 'unknown' } }),
      'another issuer': ({ claims, ...parts }) => ({ ...parts, claims: { ...claims, iss: other.issuer } }),
      'another client': ({ claims, ...parts }) => ({ ...parts, claims: { ...claims, aud: 'another' } }),
      'another nonce': ({ claims, ...parts }) => ({ ...parts, claims: { ...claims, nonce: 'another' } }),
      'an end an hour ago': ({ claims, ...parts }) => ({ ...parts, claims: { ...claims, exp: hourAgo } }),
    };
    for (const [what, forge] of Object.entries(forgeries)) {
      const browser = new Browser();
      const url = await comeBack(browser);
      provider.forgeIdToken = forge;
      const { headers } = await browser.get(url);
      assert.match(String(headers.location), /sign-in-problem=refused$/, what);
      assert.equal(browser.session(tollgate.url), null, what);
    }
    provider.forgeIdToken = (parts) => parts;
    assert.notEqual((await signInAs('root')).cookie, null, 'what is not forged is let in');
  });

  test('in another browser than the one that went, or to which another sign-in belongs', async () => {
    const browser = new Browser();
    const url = await comeBack(browser);
    await refused(new Browser(), url, /sign-in-problem=expired$/);
    const begun = new Browser();
    await comeBack(begun);
    await refused(begun, url, /sign-in-problem=refused$/);
    // And at the callback of another provider.
    const mixed = new Browser();
    const callback = await comeBack(mixed);
    await refused(mixed, callback.replace('/okta/', '/linking/'), /sign-in-problem=expired$/);
  });

  test('for the second time, also with the cookie of the first', async () => {
    provider.visitor = 'root';
    const browser = new Browser();
    const url = await comeBack(browser);
    const kept = new Map(browser.of(tollgate.url));
    assert.equal((await sessionOf((await browser.get(url)) && browser.session(tollgate.url))).platform_admin, true);
    const again = new Browser();
    await refused(again, url, /sign-in-problem=expired$/);
    for (const [name, value] of kept) again.of(tollgate.url).set(name, value);
    await refused(again, url, /sign-in-problem=refused$/);
  });

  test('with a cookie that nobody sealed', async () => {
    const browser = new Browser();
    const url = await comeBack(browser);
    const cookies = browser.of(tollgate.url);
    for (const [name, value] of cookies)
      cookies.set(name, `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`);
    await refused(browser, url, /sign-in-problem=expired$/);
  });
});
