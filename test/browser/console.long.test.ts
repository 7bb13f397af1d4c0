// The console in a real Chromium against a whole installation: every screen by its address, by keyboard, in both
// themes and three widths, without a barrier that axe finds, a word in the browser's console or a breach of the policy;
// hostile names everywhere; what is empty, refused or away says so; figures are the API's.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { dollars, whole } from '../../src/console/logic/format.ts';
import { cellsOf, findBarriers, openPage, openScreen } from '../support/console-browser.ts';
import {
  ALL_SCREENS,
  type ConsoleInstallation,
  MEMBER_SCREENS,
  OWNER_SCREENS,
  PLATFORM_SCREENS,
  skipWithoutConsole,
  startConsole,
} from '../support/console-installation.ts';
import { findFreePort } from '../support/free-port.ts';
import type { Tollgate } from '../support/gateway.ts';
import { OidcTestProvider } from '../support/oidc-test-provider.ts';
import { waitFor } from '../support/waiting.ts';

const HOSTILE = `<img src=x onerror="globalThis.ran=1">"'><script>globalThis.ran=1</script>{{7*7}}\${7*7}`;
const TAG = '<svg/onload=globalThis.ran=1>';
const EDITORS = [
  'policies?policy=hostile',
  'policies?policy=%2B',
  'guardrails?policy=people',
  'platform-guardrails?policy=%2B',
  'requests?follow=1',
];
const SCREENS = [...ALL_SCREENS, ...EDITORS];

describe('the console in a browser', { skip: skipWithoutConsole }, () => {
  let installation: ConsoleInstallation;
  let tollgate: Tollgate;
  let api: ConsoleInstallation['api'];
  let browser: Browser;
  let owner: string;
  let member: string;
  let openId: OidcTestProvider;
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'));

  before(async () => {
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
    installation = await startConsole({ SIGN_IN_FILE: signInFile });
    ({ tollgate, api, browser, owner } = installation);
    await openId.start([`${tollgate.url}/v1/console/oidc/acme/callback`]);
    await fill();
    member = await installation.tokenOf('member@demo.test');
  });

  after(async () => {
    await installation?.stop();
    openId?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

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

  const signedIn: ConsoleInstallation['signedIn'] = (token, shape) => installation.signedIn(token, shape);

  for (const dark of [false, true])
    test(`every screen by its address, ${dark ? 'dark' : 'light'}: no barrier, nothing said, nothing ran`, async () => {
      const watched = await signedIn(owner, { width: 1440, dark });
      const links = await watched.page.locator('nav a').evaluateAll(LAST_PARTS);
      assert.deepEqual(links, ALL_SCREENS, 'a screen that is new is added to the lists');
      for (const screen of SCREENS) {
        await openScreen(watched, tollgate.url, screen);
        assert.deepEqual(await findBarriers(watched), [], screen);
        assert.deepEqual(await watched.complaints(), [], screen);
        assert.equal(await watched.page.evaluate('globalThis.ran'), undefined, screen);
        for (const chart of await watched.page.locator('figure').all())
          assert.deepEqual(
            await chart.getByRole('button').allInnerTexts(),
            ['As a table', 'CSV', 'As a command'],
            screen,
          );
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
    const watched = await signedIn(owner);
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

  test('every control of every screen can be reached by keyboard, in a ring, and shows that it has the focus', async () => {
    const watched = await signedIn(owner);
    const { page } = watched;
    for (const screen of ALL_SCREENS) {
      await openScreen(watched, tollgate.url, screen);
      const count = Number(await page.evaluate(MARK_CONTROLS));
      // What scrolls has the focus once, too.
      for (let step = 0; step < count + 12; step++) await page.keyboard.press('Tab');
      assert.deepEqual(await page.evaluate('globalThis.unreached()'), [], screen);
    }
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('a request’s panel says why its model served', async () => {
    const place = '/v1/admin/active-org/usage/requests';
    const { data } = await api<{ data: { id: string }[] }>('GET', `${place}?routed=true&limit=1`);
    const watched = await signedIn(owner);
    await openScreen(watched, tollgate.url, `requests?request=${data[0]?.id}`);
    await watched.page.getByText('Why this model').waitFor();
    assert.match(await watched.page.getByRole('dialog').innerText(), /The classifier|fallback tier|continues/i);
    assert.deepEqual(await findBarriers(watched), []);
    await watched.page.context().close();
  });

  test('a request’s panel draws when each call of a provider was under way', async () => {
    const place = '/v1/admin/active-org/usage/requests';
    const { data } = await api<{ data: { id: string }[] }>('GET', `${place}?limit=1`);
    interface Answered {
      readonly data: { latency_ms: number; readonly details: { attempts: unknown[] } };
    }
    const answer = await api<Answered>('GET', `${place}/${data[0]?.id}`);
    // No model of the demo has a second provider.
    answer.data.latency_ms = 400;
    answer.data.details.attempts = [
      { provider: 'first', started_ms: 0, ended_ms: 100, status: 503, cause: 'status' },
      { provider: 'second', started_ms: 100, ended_ms: null, status: null, cause: null },
    ];
    const watched = await signedIn(owner);
    const { page } = watched;
    await page.route(`**${place}/${data[0]?.id}*`, (route) => route.fulfill({ json: answer }));
    await openScreen(watched, tollgate.url, `requests?request=${data[0]?.id}`);
    const calls = page.getByRole('table', { name: 'Calls to providers' });
    await calls.waitFor();
    const texts = await calls.locator('tbody tr').allInnerTexts();
    assert.match(texts[0] ?? '', /first\s+0 ms\s+100 ms\s+503 status/);
    assert.match(texts[1] ?? '', /second\s+100 ms.*its reply/s);
    const shares = await calls
      .locator('rect.fill')
      .evaluateAll((rects) => rects.map((rect) => [rect.getAttribute('x'), rect.getAttribute('width')]));
    assert.deepEqual(shares, [
      ['0.00%', '25.00%'],
      ['25.00%', '75.00%'],
    ]);
    assert.deepEqual(await findBarriers(watched), []);
    await page.context().close();
  });

  test('credit, limits and the use of own keys are the API’s', async () => {
    const watched = await signedIn(owner);
    const { page } = watched;
    const { data: me } = await api<{ data: { organization_id: string } }>('GET', '/v1/me');
    const { data: wallets } = await api<{ data: Record<'balance' | 'held' | 'lent' | 'available', string>[] }>(
      'GET',
      `/v1/admin/organizations/${me.organization_id}/wallets`,
    );
    await openScreen(watched, tollgate.url, `organizations?id=${me.organization_id}`);
    assert.deepEqual(
      await cellsOf(watched, 'Wallets'),
      wallets.map(({ balance, held, lent, available }) => [
        'the organization',
        dollars(balance, { exact: true }),
        ...[held, lent, available].map((amount) => dollars(amount)),
      ]),
    );
    const { data: limits } = await api<{
      data: { kind: string; used: string; lent: string; remaining: string; limit: string }[];
    }>('GET', '/v1/admin/active-org/limits/current');
    await openScreen(watched, tollgate.url, 'limits');
    const written = ({ kind }: { kind: string }, amount: string) =>
      kind === 'budget' ? dollars(amount) : whole(Number(amount));
    assert.deepEqual(
      (await cellsOf(watched, 'The organization')).map(([, , used, , lent, left, of]) => [used, lent, left, of]),
      limits.map((one) => [one.used, one.lent, one.remaining, one.limit].map((amount) => written(one, amount))),
    );
    const { data: credit } = await api<{ data: { available: string | null } }>('GET', '/v1/billing/credits');
    await openScreen(watched, tollgate.url, 'overview');
    const left = page.locator('.stat', { hasText: 'Credit left' }).locator('dd').first();
    assert.equal(await left.innerText(), credit.available === null ? 'not billed' : dollars(credit.available));
    await page.context().close();
  });

  test('a member sees nothing of what is not theirs, and is told which permission a screen needs', async () => {
    const watched = await signedIn(member);
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'overview');
    assert.deepEqual(await page.locator('nav a').evaluateAll(LAST_PARTS), MEMBER_SCREENS);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    for (const screen of [...OWNER_SCREENS, ...PLATFORM_SCREENS]) {
      await openScreen(watched, tollgate.url, screen);
      const permission = OWNER_SCREENS.includes(screen) ? 'org.admin' : 'platform.admin';
      assert.ok((await page.locator('#main').innerText()).includes(`needs the permission ${permission}`), screen);
    }
    for (const screen of MEMBER_SCREENS) {
      await openScreen(watched, tollgate.url, `${screen}?whose=platform`);
      const text = await page.locator('body').innerText();
      assert.doesNotMatch(text, /owner@demo\.test|globalThis|Playwright/, `${screen} shows what others named`);
      assert.deepEqual(await findBarriers(watched), [], screen);
    }
    assert.deepEqual(
      asked.filter((url) => /\/v1\/admin\//.test(url)),
      [],
      'nothing is asked for that would be refused',
    );
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('reports that are away, and a window without requests, say so', async () => {
    const watched = await signedIn(owner);
    const { page } = watched;
    await page.route('**/usage/**', (route) => route.fulfill({ status: 503, json: { error: 'reports unavailable' } }));
    for (const screen of ['usage', 'routing', 'requests']) {
      await openScreen(watched, tollgate.url, screen);
      assert.match(await page.locator('#main').innerText(), /Requests are still served/, screen);
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
    const watched = await signedIn(owner);
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'limits');
    await page.getByLabel('Limits of').selectOption(`key:${keys[0]?.id}`);
    await page.getByText('There is no limit').waitFor();
    await page.getByRole('button', { name: 'New limit' }).click();
    await page.getByLabel('Kind').selectOption('requests per minute');
    await page.getByLabel('How many').fill('90');
    await page.getByRole('button', { name: 'Save' }).click();
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
    const watched = await signedIn(member);
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'playground');
    const ask = async () => {
      await page.getByLabel('Message').fill('Say something about tolls');
      await page.getByLabel('Message').press('Control+Enter');
    };
    // A member pays, and is told whom to ask for the credit.
    await ask();
    await page.getByText('Your own wallet in Demo pays for what you ask here').waitFor();
    const line = page.getByText('tollgate credit add --organization demo --user member@demo.test --amount 10.00');
    assert.equal((await tollgate.run((await line.innerText()).split(' ').slice(1))).exitCode, 0);
    await ask();
    await page.locator('.facts', { hasText: 'Cost' }).waitFor();
    assert.match(await page.locator('.facts').innerText(), /Served by\s+sim\/[\s\S]*Cost\s+\$0\.0*[1-9]\d* FINAL/i);
    assert.notEqual((await page.locator('.sample').innerText()).trim(), '');
    assert.deepEqual(await findBarriers(watched), []);
    await page.getByRole('link', { name: 'Its record' }).click();
    await page.getByText('Why this model').waitFor();
    assert.match(await page.getByRole('dialog').innerText(), /playground/);
    await openScreen(watched, tollgate.url, 'playground');
    await page.getByLabel('Model').selectOption('sim/small');
    await page.getByLabel('Message').fill('x');
    await page.getByLabel('Message').press('Control+Enter');
    await page.getByLabel('Model').selectOption('service/auto');
    await page.locator('.facts', { hasText: /Served by\s*sim\/small/ }).waitFor();
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
    const watched = await signedIn(owner);
    const { page } = watched;
    await openScreen(watched, tollgate.url, 'provider-keys');
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('New secret').fill('ours-afterwards');
    await page.getByLabel('Keep the old secret as a fallback for').selectOption('a day');
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
    const watched = await signedIn(owner);
    await watched.page.getByRole('button', { name: 'Sign out' }).click();
    await watched.page.getByLabel('Access token').waitFor();
    await watched.page.goto(`${tollgate.url}/console/keys`);
    await watched.page.getByLabel('Access token').waitFor();
    await watched.page.context().close();
  });
});

/** Of links: the screens that they name. */
const LAST_PARTS = (all: readonly { getAttribute(name: string): string | null }[]) =>
  all.map((one) => (one.getAttribute('href') ?? '').replace('/console/', '').replace(/\?.*/, ''));

/** Counts what can be pressed or filled, and notes from now on which of it had the focus and showed it. */
const MARK_CONTROLS = `(() => {
  const left = new Set([...document.querySelectorAll('a[href], button, select, input, textarea, summary, [tabindex="0"]')]
    .filter((one) => !one.disabled && one.checkVisibility()));
  const count = left.size;
  document.activeElement.blur();
  addEventListener('focusin', ({ target }) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    if (outlineStyle !== 'none' && outlineWidth !== '0px') left.delete(target);
  });
  globalThis.unreached = () => [...left].filter((one) => one.isConnected).map((one) => one.outerHTML.slice(0, 120));
  return count;
})()`;
