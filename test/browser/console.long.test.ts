// The console in a real Chromium against a whole installation: every screen by its address, by keyboard, in both
// themes and three widths, without a barrier that axe finds, a word in the browser's console or a breach of the policy;
// hostile names everywhere; what is empty, refused or away says so; figures are the API's.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { dollars } from '../../src/console/logic/format.ts';
import {
  findBarriers,
  findChromium,
  openChromium,
  openPage,
  openScreen,
  signIn,
  type WatchedPage,
} from '../support/console-browser.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { OidcTestProvider } from '../support/oidc-test-provider.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOSTILE = `<img src=x onerror="globalThis.ran=1">"'><script>globalThis.ran=1</script>{{7*7}}\${7*7}`;
const TAG = '<svg/onload=globalThis.ran=1>';
const MEMBER_SCREENS = ['overview', 'requests', 'usage', 'routing', 'connect', 'playground', 'keys'];
const OWNER_SCREENS = ['people', 'limits', 'provider-keys', 'guardrails', 'media', 'webhook', 'audit'];
const PLATFORM_SCREENS = ['live', 'organizations', 'catalog', 'policies', 'platform-guardrails', 'operation'];
const EDITORS = [
  'policies?policy=hostile',
  'policies?policy=%2B',
  'guardrails?policy=people',
  'platform-guardrails?policy=%2B',
  'requests?follow=1',
];
const SCREENS = [...MEMBER_SCREENS, ...OWNER_SCREENS, ...PLATFORM_SCREENS, ...EDITORS];

const chromium = findChromium();
const isBuilt = existsSync(join(ROOT, 'src/console/built/index.html'));
const skip =
  chromium === null ? 'no Chromium is installed here' : !isBuilt && 'the console is not built: npm run prepare';

describe('the console in a browser', { skip }, () => {
  let provider: SimulatedProvider;
  let tollgate: Tollgate;
  let browser: Browser;
  let owner: string;
  let member: string;
  let openId: OidcTestProvider;
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'));

  before(async () => {
    provider = await startSimulatedProvider();
    const configurationYaml = readFileSync(join(ROOT, 'deploy/demo.yaml'), 'utf8')
      .replaceAll('${SIMULATED_PROVIDER_URL}', provider.url)
      .replace(/^ {4}keys: .*$/m, '');
    openId = new OidcTestProvider(await findFreePort(), {
      grace: { email: 'grace@demo.test', verified: true, groups: ['demo-people'] },
      nobody: { email: 'nobody@demo.test', verified: true, groups: [] },
    });
    const signInFile = join(folder, 'sign-in.yaml');
    writeFileSync(
      signInFile,
      `oidc:
  - { id: acme, display_name: Acme, issuer: "${openId.issuer}", client_id: tollgate,
      client_secret: secret-of-the-client, scopes: openid email groups,
      members: [{ group: demo-people, organization: demo, role: member }] }
  - { id: away, display_name: Nobody there, issuer: "http://127.0.0.1:9", client_id: x, client_secret: y }
`,
    );
    tollgate = await startTollgate({ configurationYaml, env: { SIGN_IN_FILE: signInFile } });
    await openId.start([`${tollgate.url}/v1/console/oidc/acme/callback`]);
    owner = await tokenOf('owner@demo.test');
    assert.equal((await tollgate.run(['administrator', 'add', '--user', 'owner@demo.test'])).exitCode, 0);
    await fill();
    member = await tokenOf('member@demo.test');
    browser = await openChromium(chromium ?? '');
  });

  after(async () => {
    await browser?.close();
    await tollgate?.stop();
    await provider?.stop();
    openId?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function tokenOf(user: string): Promise<string> {
    const made = await tollgate.run(['token', 'create', '--user', user, '--name', 'browser', '--organization', 'demo']);
    return /tgt-[\w-]+/.exec(made.output)?.[0] ?? assert.fail(made.output);
  }

  async function api<T>(method: string, path: string, body?: unknown, token = owner): Promise<T> {
    const response = await fetch(tollgate.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Requests of every kind, and names that would run if a page took them for markup. */
  async function fill(): Promise<void> {
    const place = '/v1/admin/active-org';
    await api('POST', `${place}/members`, { email: 'member@demo.test', role: 'member' });
    await api('POST', `${place}/teams`, { slug: 'hostile', display_name: HOSTILE });
    const key = await api<{ data: { secret: string } }>('POST', `${place}/keys`, { name: HOSTILE });
    await api('PUT', `${place}/limits`, { limits: [{ kind: 'budget', window: 'month', limit: '50.00' }] });
    const rules = [{ id: 'mail', detect: ['email'], stage: 'input', action: 'flag' }];
    await api('PUT', `${place}/guardrails/policies/people`, { rules });
    const tiers = [{ name: 'one', description: HOSTILE, models: [{ id: 'sim/small' }] }];
    const policy = { classifier: { model: 'sim/judge-latest' }, tiers, kinds: { prose: HOSTILE } };
    await api('PUT', '/v1/admin/routing/policies/hostile', policy);
    await api('PUT', `${place}/webhook`, { url: 'https://example.com/?q=<script>globalThis.ran=1</script>' });
    await api('POST', '/v1/admin/organizations', { slug: 'hostile', display_name: HOSTILE, billing: 'prepaid' });
    for (let index = 0; index < 24; index++) {
      const model = index % 6 === 5 ? HOSTILE : index % 2 === 0 ? 'service/auto' : 'sim/small';
      const response = await fetch(`${tollgate.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key.data.secret}`,
          'content-type': 'application/json',
          'x-service-tag': TAG,
          'x-session-id': `session-${index >> 2}`,
        },
        body: JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content: `Fix the test ${index}` }] }),
      });
      await response.text();
    }
    await waitFor(
      'the requests to be in the reports',
      () => api<{ data: { requests: number } }>('GET', `${place}/usage`),
      ({ data }) => data.requests >= 20,
      60_000,
    );
  }

  async function signedIn(token: string, options: { width: number; dark?: boolean }): Promise<WatchedPage> {
    const watched = await openPage(browser, options);
    await signIn(watched, tollgate.url, token);
    return watched;
  }

  for (const dark of [false, true])
    test(`every screen by its address, ${dark ? 'dark' : 'light'}: no barrier, nothing said, nothing ran`, async () => {
      const watched = await signedIn(owner, { width: 1440, dark });
      await watched.complaints();
      for (const screen of SCREENS) {
        await openScreen(watched, tollgate.url, screen);
        assert.deepEqual(await findBarriers(watched), [], screen);
        assert.deepEqual(await watched.complaints(), [], screen);
        assert.equal(await watched.page.evaluate('globalThis.ran'), undefined, screen);
      }
      await watched.page.context().close();
    });

  for (const width of [360, 768, 1440])
    test(`nothing is wider than a window of ${width} pixels`, async () => {
      const watched = await signedIn(owner, { width });
      for (const screen of SCREENS) {
        await openScreen(watched, tollgate.url, screen);
        const over = await watched.page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.equal(over, 0, screen);
      }
      await watched.page.context().close();
    });

  test('by keyboard alone: skip link, chart, table, panel and back', async () => {
    const watched = await signedIn(owner, { width: 1440 });
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'overview');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent.trim()'), 'Skip to the content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
    const chart = page.locator('svg[role=application]').first();
    await chart.focus();
    await page.keyboard.press('End');
    assert.match(await page.locator('.readout').first().innerText(), /\d+ \w{3}.*: .*\$/);
    await page.getByRole('button', { name: 'As a table' }).first().press('Enter');
    assert.ok(await page.getByRole('table', { name: 'Spend by model' }).first().isVisible());
    await openScreen(watched, tollgate.url, 'requests');
    const first = page.locator('tbody button.link').first();
    await first.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.match(page.url(), /request=/);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('a request’s panel says why its model served', async () => {
    const place = '/v1/admin/active-org/usage/requests';
    const { data } = await api<{ data: { id: string }[] }>('GET', `${place}?routed=true&limit=1`);
    const watched = await signedIn(owner, { width: 1440 });
    await openScreen(watched, tollgate.url, `requests?request=${data[0]?.id}`);
    await watched.page.getByText('Why this model').waitFor();
    assert.match(await watched.page.getByRole('dialog').innerText(), /The classifier|fallback tier|continues/i);
    assert.deepEqual(await findBarriers(watched), []);
    await watched.page.context().close();
  });

  test('figures are the API’s', async () => {
    const { data } = await api<{ data: { cost: string; requests: number } }>('GET', '/v1/admin/active-org/usage');
    const watched = await signedIn(owner, { width: 1440 });
    await openScreen(watched, tollgate.url, 'overview');
    const stat = (name: string) => watched.page.locator('.stat', { hasText: name }).first().locator('dd').first();
    assert.equal(await stat('Spend').innerText(), dollars(data.cost));
    assert.equal(await stat('Requests').innerText(), String(data.requests));
    await watched.page.context().close();
  });

  test('a member sees nothing of what is not theirs, and is told which permission a screen needs', async () => {
    const watched = await signedIn(member, { width: 1440 });
    await openScreen(watched, tollgate.url, 'overview');
    const links = await watched.page.locator('nav a').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    assert.deepEqual(
      links.map((href) => (href ?? '').replace('/console/', '').replace(/\?.*/, '')),
      MEMBER_SCREENS,
    );
    await openScreen(watched, tollgate.url, 'limits');
    assert.match(await watched.page.locator('#main').innerText(), /needs the permission org\.admin/);
    await openScreen(watched, tollgate.url, 'catalog');
    assert.match(await watched.page.locator('#main').innerText(), /needs the permission platform\.admin/);
    assert.deepEqual(await watched.complaints(), []);
    await watched.page.context().close();
  });

  test('reports that are away, and a window without requests, say so', async () => {
    const watched = await signedIn(owner, { width: 1440 });
    const { page } = watched;
    await page.route('**/usage/**', (route) => route.fulfill({ status: 503, json: { error: 'reports unavailable' } }));
    for (const screen of ['usage', 'routing', 'requests']) {
      await openScreen(watched, tollgate.url, screen);
      assert.match(await page.locator('#main').innerText(), /Requests are served all the same/, screen);
      assert.deepEqual(await findBarriers(watched), [], screen);
    }
    await page.unroute('**/usage/**');
    const quiet = 'from=2026-01-05&to=2026-01-06';
    await openScreen(watched, tollgate.url, `requests?${quiet}`);
    assert.match(await page.locator('#main').innerText(), /No request matches/);
    await openScreen(watched, tollgate.url, `overview?${quiet}`);
    assert.match(await page.locator('#main').innerText(), /First steps/);
    await page.context().close();
  });

  test('a limit of a key is set and removed where the organization’s are, and theirs stay', async () => {
    const { data: keys } = await api<{ data: { id: string }[] }>('GET', '/v1/admin/active-org/keys');
    const path = `/v1/admin/active-org/keys/${keys[0]?.id}/limits`;
    const limitsAt = async (of: string) => (await api<{ data: { limits: unknown[] } }>('GET', of)).data.limits;
    const ofOrganization = await limitsAt('/v1/admin/active-org/limits');
    const watched = await signedIn(owner, { width: 1440 });
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'limits');
    await page.getByLabel('Whose').selectOption(`key:${keys[0]?.id}`);
    await page.getByText('There is no limit').waitFor();
    await page.getByRole('button', { name: 'New limit' }).click();
    await page.getByLabel('Kind').selectOption('requests per minute');
    await page.getByLabel('How many').fill('90');
    await page.getByRole('button', { name: 'Set it' }).click();
    await page.getByRole('cell', { name: 'Requests per minute' }).waitFor();
    assert.deepEqual(await limitsAt(path), [{ kind: 'requests_per_minute', limit: 90, set_by: 'organization' }]);
    assert.deepEqual(await findBarriers(watched), []);
    // The address names whose they are.
    await page.reload();
    await page.getByRole('cell', { name: 'Requests per minute' }).waitFor();
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('There is no limit').waitFor();
    assert.deepEqual(await limitsAt(path), []);
    assert.deepEqual(await limitsAt('/v1/admin/active-org/limits'), ofOrganization);
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('the playground asks a model by auto routing, and shows the reply, its cost and its record', async () => {
    const watched = await signedIn(member, { width: 1440 });
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'playground');
    await page.getByLabel('Message').fill('Say something about tolls');
    await page.getByLabel('Message').press('Control+Enter');
    await page.locator('.facts', { hasText: 'Cost' }).waitFor();
    assert.match(await page.locator('.facts').innerText(), /Served by\s+sim\/[\s\S]*Cost\s+\$0\.0*[1-9]\d* FINAL/i);
    assert.notEqual((await page.locator('.sample').innerText()).trim(), '');
    assert.deepEqual(await findBarriers(watched), []);
    await page.getByRole('link', { name: 'Its record' }).click();
    await page.getByText('Why this model').waitFor();
    assert.match(await page.getByRole('dialog').innerText(), /playground/);
    await openScreen(watched, tollgate.url, 'playground');
    await page.getByLabel('Message').fill('x');
    await page.route('**/chat/completions', (route) => route.fulfill({ status: 429, json: { error: 'slow down' } }));
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('alert').getByText('slow down').waitFor();
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('an own provider key gets another secret; a key says when it was last used', async () => {
    const path = '/v1/admin/active-org/provider-credentials';
    const { data: session } = await api<{ data: { organization_id: string } }>('GET', '/v1/me');
    await api('PATCH', `/v1/admin/organizations/${session.organization_id}/byok`, { enabled: true });
    const made = { kind: 'sim', name: 'ours', secret: 'ours-before', verify: false };
    const { data: before } = await api<{ data: { fingerprint: string } }>('POST', path, made);
    const watched = await signedIn(owner, { width: 1440 });
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'provider-keys');
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('New secret').fill('ours-afterwards');
    await page.getByLabel('The old secret stands in for').selectOption('a day');
    assert.deepEqual(await findBarriers(watched), []);
    await page.getByRole('button', { name: 'Verify and rotate' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const { data } = await api<{ data: { fingerprint: string; rotated_at: string | null }[] }>('GET', path);
    assert.notEqual(data[0]?.fingerprint, before.fingerprint);
    assert.notEqual(data[0]?.rotated_at, null);
    await page.getByText(data[0]?.fingerprint ?? '-').waitFor();
    await openScreen(watched, tollgate.url, 'keys');
    await page
      .getByRole('cell', { name: /^\d{4}-\d\d-\d\d$/ })
      .first()
      .waitFor();
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('an OpenID provider signs somebody in; one who has no access, and one that is away, are said', async () => {
    const watched = await openPage(browser, { width: 1440 });
    const { page } = watched;
    openId.visitor = 'nobody';
    await page.goto(`${tollgate.url}/console`);
    await page.getByRole('link', { name: 'Sign in with Acme' }).click();
    await page.getByText('no group of yours gives access here').waitFor();
    assert.equal(new URL(page.url()).hash, '');
    await page.getByRole('link', { name: 'Sign in with Nobody there' }).click();
    await page.getByText('The provider does not answer').waitFor();
    assert.deepEqual(await findBarriers(watched), []);
    await page.context().clearCookies();
    openId.visitor = 'grace';
    await page.getByRole('link', { name: 'Sign in with Acme' }).click();
    await page.locator('#main h1').waitFor();
    assert.match(await page.locator('nav').innerText(), /Playground/);
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('signing out ends the session in this browser', async () => {
    const watched = await signedIn(owner, { width: 1440 });
    await watched.page.getByRole('button', { name: 'Sign out' }).click();
    await watched.page.getByLabel('Access token').waitFor();
    await watched.page.goto(`${tollgate.url}/console/keys`);
    await watched.page.getByLabel('Access token').waitFor();
    await watched.page.context().close();
  });
});
