// The console where things are not as they usually are, in a real Chromium: databases that are away, a browser that
// zooms, colours that the system forces, the back button, an organization without anything.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { type ClickHouseServer, startClickHouseServer } from '../support/clickhouse-server.ts';
import { findBarriers, openScreen, type WatchedPage } from '../support/console-browser.ts';
import {
  ALL_SCREENS,
  type ConsoleInstallation,
  MEMBER_SCREENS,
  OWNER_SCREENS,
  PLATFORM_SCREENS,
  skipWithoutConsole,
  startConsole,
} from '../support/console-installation.ts';
import { type InterruptibleLink, startInterruptibleLink } from '../support/interruptible-link.ts';
import { startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/waiting.ts';

const ADMIN_TOKEN = randomBytes(32).toString('base64url');

/** What nobody can read without ClickHouse. */
const REPORT_SCREENS = ['overview', 'requests', 'usage', 'routing', 'guardrails', 'platform-guardrails'];

describe('the console under hard conditions', { skip: skipWithoutConsole }, () => {
  let postgres: TestPostgres;
  let clickhouse: TestClickHouse;
  let engine: ClickHouseServer;
  let link: InterruptibleLink;
  let installation: ConsoleInstallation;
  let watched: WatchedPage;
  let page: Page;

  before(async () => {
    postgres = await startTestPostgres();
    link = await startInterruptibleLink(await postgres.createDatabase());
    clickhouse = await openTestClickHouse();
    engine = await startClickHouseServer(clickhouse.client);
    installation = await startConsole({
      DATABASE_URL: link.url,
      CLICKHOUSE_URL: engine.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ADMIN_TOKEN,
    });
    await ask();
    watched = await installation.signedIn(installation.owner);
    ({ page } = watched);
  });
  after(async () => {
    await installation?.stop();
    await engine?.close();
    await clickhouse?.close();
    await link?.cut();
    await postgres?.stop();
  });

  /** One request, until it is in the reports. */
  async function ask(): Promise<void> {
    const { api, tollgate } = installation;
    const { data } = await api<{ data: { secret: string } }>('POST', '/v1/admin/active-org/keys', { name: 'k' });
    const response = await fetch(`${tollgate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${data.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'service/auto', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }),
    });
    await response.text();
    await waitFor(
      'the request to be in the reports',
      () => api<{ data: { requests: number } }>('GET', '/v1/admin/active-org/usage'),
      (answer) => answer.data.requests > 0,
      60_000,
    );
  }

  const open = (screen: string) => openScreen(watched, installation.tollgate.url, screen);
  const textOf = () => page.locator('#main').innerText();

  beforeEach(async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await watched.complaints();
  });

  test('zoomed to 400 %, which leaves 320 pixels: nothing scrolls sideways, and all of it can be reached', async () => {
    await page.setViewportSize({ width: 320, height: 256 });
    for (const screen of ALL_SCREENS) {
      await open(screen);
      assert.deepEqual(await page.evaluate(WIDER_THAN_WINDOW), [], screen);
    }
    // The navigation does not stand beside the content here.
    const menu = page.getByRole('button', { name: 'Menu' });
    await menu.press('Enter');
    const last = page.getByRole('link', { name: 'Jobs and drift' });
    await last.focus();
    // Beyond the choice of colours, its last element, it closes: it would cover what has the focus.
    await page.keyboard.press('Tab');
    assert.ok(await last.isVisible());
    await page.keyboard.press('Tab');
    assert.equal(await last.isVisible(), false);
    await menu.press('Enter');
    await last.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Jobs and drift' }).waitFor();
    // What has the focus is not below the bar that stays at the top.
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    for (let count = 0; count < 25; count++) {
      await page.keyboard.press('Shift+Tab');
      assert.equal(await page.evaluate(IS_HIDDEN_BY_BAR), false, `after ${count + 1} steps back`);
    }
    // The panel of a request has room for itself.
    await open('requests');
    assert.ok(Number(await page.evaluate(ROOM_ABOVE_FIRST_LINK)) >= 4, 'the ring around the focused link is whole');
    await page.locator('tbody button.link').first().press('Enter');
    await page.getByText('Why this model').waitFor();
    assert.deepEqual(await page.evaluate(WIDER_THAN_WINDOW), []);
    await page.setViewportSize({ width: 720, height: 450 });
    for (const screen of ALL_SCREENS) {
      await open(screen);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0, `${screen} at 200 %`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    assert.deepEqual(await watched.complaints(), []);
  });

  test('colours that the system forces: what is chosen, pressed or drawn is still told apart', async () => {
    await page.emulateMedia({ forcedColors: 'active' });
    await open('overview');
    const outlineOf = (of: string) =>
      page.evaluate(`(() => { const style = getComputedStyle(document.querySelector(${JSON.stringify(of)}));
        return [style.borderTopStyle, style.borderTopWidth, style.outlineStyle, style.textDecorationLine].join(' '); })()`);
    assert.match(String(await outlineOf('.side a[aria-current]')), /solid [1-9]/);
    assert.match(String(await outlineOf('.stat')), /solid [1-9]/);
    await open('requests?follow=1');
    assert.match(String(await outlineOf('button[aria-pressed=true]')), /solid [2-9]/);
    assert.match(String(await outlineOf('.badge')), /solid [1-9]/);
    await open('limits');
    for (const screen of ['overview', 'routing', 'live', 'guardrails'])
      assert.deepEqual([await open(screen), await findBarriers(watched)], [undefined, []], screen);
    await page.emulateMedia({ forcedColors: null });
    assert.deepEqual(await watched.complaints(), []);
  });

  test('back and forth: filters, panels and screens as they were', async () => {
    await open('overview');
    await page.getByRole('link', { name: 'Requests', exact: true }).click();
    await page.getByLabel('Routed').selectOption('true');
    await page.locator('tbody button.link').first().click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Routed').inputValue(), 'true');
    await page.goForward();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: 'Requests', exact: true }).waitFor();
    assert.equal(await page.getByLabel('Routed').inputValue(), 'true');
    // A dialog stands for no address: whoever goes back leaves it, and the screen it belongs to.
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Requests', exact: true }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.deepEqual(await watched.complaints(), []);
  });

  test('who has signed out sees nothing of it by going back', async () => {
    const other = await installation.signedIn(installation.owner);
    await openScreen(other, installation.tollgate.url, 'keys');
    await other.page.getByRole('link', { name: 'Webhook' }).click();
    await other.page.getByRole('button', { name: 'Sign out' }).click();
    await other.page.getByLabel('Access token').waitFor();
    await other.page.goBack();
    await other.page.getByLabel('Access token').waitFor();
    assert.equal(await other.page.locator('table').count(), 0);
    await other.page.context().close();
  });

  test('an organization without anything: every screen says what would fill it', async () => {
    const { api, tokenOf } = installation;
    const body = { slug: 'empty', display_name: 'Empty', billing: 'prepaid', owner_email: 'empty@demo.test' };
    await api('POST', '/v1/admin/organizations', body);
    const other = await installation.signedIn(await tokenOf('empty@demo.test', 'empty'));
    for (const screen of [...MEMBER_SCREENS, ...OWNER_SCREENS]) {
      await openScreen(other, installation.tollgate.url, screen);
      const text = await other.page.locator('#main').innerText();
      assert.doesNotMatch(text, /undefined|NaN|\[object|Invalid Date|^…$/m, screen);
      const said = EMPTY[screen];
      if (said !== undefined) assert.match(text, said, screen);
      assert.equal(await other.page.locator('#main table').evaluateAll(WITHOUT_ROWS), 0, screen);
      assert.deepEqual(await findBarriers(other), [], screen);
    }
    assert.deepEqual(await other.complaints(), []);
    await other.page.context().close();
  });

  test('the administrator of the platform who is no person: every screen of the platform opens', async () => {
    const other = await installation.signedIn(ADMIN_TOKEN);
    for (const screen of PLATFORM_SCREENS) {
      await openScreen(other, installation.tollgate.url, screen);
      assert.doesNotMatch(await other.page.locator('#main').innerText(), /Not permitted|Not available/, screen);
    }
    assert.deepEqual(await other.complaints(), []);
    await other.page.context().close();
  });

  test('a platform without anything: every screen says what would fill it', async () => {
    const other = await installation.signedIn(installation.owner);
    // As the API answers, with nothing in any list.
    await other.page.route('**/v1/admin/**', async (route) => {
      const { pathname, search } = new URL(route.request().url());
      if (pathname.includes('/active-org/') || pathname.includes(NOWHERE)) return route.continue();
      const answer = await installation.api('GET', pathname + search);
      return route.fulfill({ body: JSON.stringify(answer, (_, value) => (Array.isArray(value) ? [] : value)) });
    });
    for (const [screen, said] of Object.entries(EMPTY_OF_PLATFORM)) {
      await openScreen(other, installation.tollgate.url, screen);
      const text = await other.page.locator('#main').innerText();
      assert.doesNotMatch(text, /undefined|NaN|\[object|Invalid Date|Infinity|^…$/m, screen);
      for (const words of said) assert.match(text, words, screen);
      assert.equal(await other.page.locator('#main table').evaluateAll(WITHOUT_ROWS), 0, screen);
      assert.deepEqual(await findBarriers(other), [], screen);
    }
    assert.deepEqual(await other.complaints(), []);
    await other.page.context().close();
  });

  test('ClickHouse is away: reports say so, all else goes on, and they come back', async () => {
    await engine.stopListening();
    try {
      for (const screen of ALL_SCREENS) {
        await open(screen);
        const text = await textOf();
        assert.doesNotMatch(text, /undefined|NaN|\[object|ECONN|stack/, screen);
        if (REPORT_SCREENS.includes(screen)) assert.match(text, /Requests are still served/, screen);
        assert.deepEqual(await findBarriers(watched), [], screen);
        assert.deepEqual(await watched.complaints(), [], screen);
      }
      await open('keys');
      await page.getByText('not known now').first().waitFor();
      await open('requests');
    } finally {
      await engine.listenAgain();
    }
    await waitFor(
      'the reports to be back',
      async () => {
        const again = page.getByRole('button', { name: 'Try again' });
        while ((await again.count()) > 0) {
          await press(again.first());
          await page.waitForTimeout(200);
        }
        return page.locator('tbody button.link').count();
      },
      (rows) => rows > 0,
      60_000,
    );
  });

  test('a sign-out that did not reach anybody is said: the session is still there', async () => {
    const other = await installation.signedIn(installation.owner);
    await openScreen(other, installation.tollgate.url, 'keys');
    await link.cut();
    try {
      await other.page.getByRole('button', { name: 'Sign out' }).click();
      await other.page.getByRole('dialog', { name: 'You are still signed in' }).waitFor();
      assert.deepEqual(await findBarriers(other), []);
      await other.page.getByRole('button', { name: 'Go on' }).click();
    } finally {
      await link.mend();
    }
    await waitFor(
      'the session to end',
      async () => {
        await other.page.getByRole('button', { name: 'Sign out' }).click();
        await other.page.waitForTimeout(300);
        const stays = other.page.getByRole('button', { name: 'Go on' });
        if ((await stays.count()) > 0) await stays.click();
        return other.page.getByLabel('Access token').count();
      },
      (count) => count > 0,
      60_000,
    );
    await other.page.context().close();
  });

  test('Postgres is away: nobody is signed out, every screen says what it cannot show, and all comes back', async () => {
    await open('keys');
    await link.cut();
    try {
      for (const screen of ALL_SCREENS) {
        await page.goto(`${installation.tollgate.url}/console/${screen}`);
        await page.locator('main').waitFor();
        const text = await waitFor(
          `${screen} to say something`,
          async () =>
            (await page.locator('.waiting, [aria-busy=true]').count()) > 0 ? '' : page.locator('main').innerText(),
          (said) => said.trim() !== '',
          40_000,
        );
        assert.doesNotMatch(text, /undefined|NaN|\[object|ECONN|stack/, screen);
        assert.doesNotMatch(text, /Access token/, `${screen}: nobody has to sign in again`);
        assert.match(text, /Not available now/, screen);
        assert.match(text, /database that knows who is signed in does not answer/, screen);
        assert.deepEqual(await findBarriers(watched), [], screen);
        assert.deepEqual(await watched.complaints(), [], screen);
      }
      await page.getByRole('button', { name: 'Try again' }).waitFor();
    } finally {
      await link.mend();
    }
    await waitFor(
      'the console to be back by its own button',
      async () => {
        const again = page.getByRole('button', { name: 'Try again' });
        if ((await again.count()) > 0) await press(again.first());
        return page.locator('nav a').count();
      },
      (links) => links > 0,
      60_000,
    );
    await waitFor(
      'the keys to be back',
      async () => {
        await open('keys');
        return page.getByRole('cell', { name: 'k', exact: true }).count();
      },
      (count) => count > 0,
      60_000,
    );
  });
});

/** What it is for may come by itself meanwhile, and then it is gone. */
async function press(button: Locator): Promise<void> {
  await button.click({ timeout: 1_000 }).catch(() => undefined);
}

/** Frames of tables, code and the page itself that have more in their width than is seen. */
const WIDER_THAN_WINDOW = `[document.documentElement, ...document.querySelectorAll('.table-frame, .code pre, dialog, .card')]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => (one.getAttribute('aria-label') ?? one.className ?? one.tagName) + ': ' + (one.scrollWidth - one.clientWidth))`;

const IS_HIDDEN_BY_BAR = `(() => {
  const focused = document.activeElement;
  if (focused === document.body || focused.closest('.top, .skip')) return false;
  return focused.getBoundingClientRect().bottom <= document.querySelector('.top').getBoundingClientRect().bottom;
})()`;

/** In pixels, to the edge of the frame, which cuts off what lies outside. */
const ROOM_ABOVE_FIRST_LINK = `(() => {
  const link = document.querySelector('tbody button.link');
  return link.getBoundingClientRect().top - link.closest('.table-frame').getBoundingClientRect().top;
})()`;

const WITHOUT_ROWS = (tables: readonly { querySelectorAll(selector: string): { length: number } }[]) =>
  tables.filter((table) => table.querySelectorAll('tbody tr').length === 0).length;

const NOWHERE = '01890a5d-ac96-774b-bcce-b302099a8057';

const EMPTY_OF_PLATFORM: Readonly<Record<string, readonly RegExp[]>> = {
  live: [/Nothing was refused/, /No call failed, nothing is paused/, /No process has reported/],
  organizations: [/No organization yet/],
  [`organizations?id=${NOWHERE}`]: [/No organization yet/],
  catalog: [/No provider is configured/, /No model is configured/, /No price is known/],
  policies: [/No policy: service\/auto is an unknown model/],
  'policies?policy=%2B': [/No policy: service\/auto is an unknown model/],
  'platform-guardrails': [/The platform screens nobody/, /Nothing was found in this window/],
  operation: [/Nothing has been compared yet/, /No job is known/, /No process holds anything/],
  'audit?of=platform': [/Nothing has been changed yet/],
};

const EMPTY: Readonly<Record<string, RegExp>> = {
  overview: /First steps/,
  requests: /No request matches/,
  usage: /Nothing in this window/,
  routing: /No routed request in this window/,
  playground: /What the model says appears here/,
  keys: /No key yet/,
  people: /No team/,
  limits: /There is no limit/,
  guardrails: /No policy|no policy/,
  media: /No file/,
  webhook: /No webhook/,
};
