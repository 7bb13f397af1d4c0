// The console in the hands of people, in a real Chromium: lists that are longer than a page, sessions that end while
// somebody types, two tabs, clicks that come twice, answers that do not come.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { findBarriers, openPage, openScreen } from '../support/console-browser.ts';
import { type ConsoleInstallation, skipWithoutConsole, startConsole } from '../support/console-installation.ts';
import { pause, waitFor } from '../support/waiting.ts';

describe('people at the console', { skip: skipWithoutConsole }, () => {
  let installation: ConsoleInstallation;

  before(async () => {
    installation = await startConsole();
  });
  after(async () => {
    await installation?.stop();
  });

  const open = (page: Page, screen: string) =>
    openScreen({ page, complaints: async () => [] }, installation.tollgate.url, screen);

  test('ten thousand rows: those near the window are in the page, each says which it is, the focus stays', async () => {
    const { api } = installation;
    const { data: made } = await api<{ data: { secret: string } }>('POST', '/v1/admin/active-org/keys', { name: 'k' });
    await fetch(`${installation.tollgate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/small', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }),
    });
    const path = '/v1/admin/active-org/usage/requests?limit=1';
    const { data } = await waitFor(
      'the request to be in the reports',
      () => api<{ data: object[] }>('GET', path),
      (answer) => answer.data.length > 0,
      60_000,
    );
    const watched = await installation.signedIn(installation.owner);
    const { page } = watched;
    const rows = Array.from({ length: 10_000 }, (_, index) => ({
      ...data[0],
      id: `row-${index}`,
      model: index === 7_777 ? `a/${'long-'.repeat(12)}name` : `m/${index}`,
    }));
    await page.route(/usage\/requests\?.*limit=50/, (route) =>
      route.fulfill({ json: { data: rows, next_cursor: null } }),
    );
    await open(page, 'requests');
    const table = page.getByRole('table', { name: 'Requests', exact: true });
    assert.equal(await table.getAttribute('aria-rowcount'), '10001');
    const inPage = () => table.locator('tr[aria-rowindex]').count();
    const widths = () =>
      table.locator('th').evaluateAll((heads) => heads.map((head) => Math.round(head.getBoundingClientRect().width)));
    assert.ok((await inPage()) < 400, `${await inPage()} rows`);
    assert.deepEqual(await findBarriers(watched), []);
    const atFirst = await widths();
    // A row that has the focus is there, however far the window is.
    await table.locator('tr[aria-rowindex="3"] button').focus();
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    const last = table.locator('tr[aria-rowindex="10001"]');
    await last.waitFor();
    assert.match(await last.innerText(), /m\/9999/);
    assert.ok((await inPage()) < 400, `${await inPage()} rows`);
    assert.deepEqual(await widths(), atFirst, 'columns are as wide as before');
    assert.equal(await page.evaluate("document.activeElement.closest('tr').getAttribute('aria-rowindex')"), '3');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate("document.activeElement.closest('tr').getAttribute('aria-rowindex')"), '4');
    await page.evaluate('document.activeElement.blur()');
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    await table.locator('tr[aria-rowindex="3"]').waitFor({ state: 'detached' });
    await page.evaluate('scrollTo(0, 0)');
    await table.locator('tr[aria-rowindex="2"]').waitFor();
    assert.deepEqual(await watched.complaints(), []);
    await page.context().close();
  });

  test('a session that ends while somebody types: they sign in again, and go on where they were', async () => {
    const watched = await installation.signedIn(installation.owner);
    const { page } = watched;
    await open(page, 'keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByLabel('Name').fill('typed with care');
    await page.context().clearCookies();
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const again = page.getByRole('dialog', { name: 'Your session has ended' });
    await again.waitFor();
    await page.keyboard.press('Escape');
    assert.ok(await again.isVisible(), 'it is not closed by mistake');
    assert.deepEqual(await findBarriers(watched), []);
    await again.getByLabel('Access token').fill(installation.owner);
    await again.getByRole('button', { name: 'Sign in' }).click();
    await again.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Name').inputValue(), 'typed with care');
    // Twice, as a finger does: one key.
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).dblclick();
    await page.getByRole('button', { name: 'I have it' }).waitFor();
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 5);
    assert.ok(await page.locator('.secret').isVisible(), 'what is shown once is not lost by a click beside it');
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByRole('cell', { name: 'typed with care' }).waitFor();
    const keys = await installation.api<{ data: { name: string }[] }>('GET', '/v1/admin/active-org/keys');
    assert.equal(keys.data.filter(({ name }) => name === 'typed with care').length, 1);
    await page.context().close();
  });

  test('a session that ends while a limit is typed: the limit is still there after the sign-in', async () => {
    const { page } = await installation.signedIn(installation.owner);
    await open(page, 'limits');
    await page.getByRole('button', { name: 'New limit' }).click();
    await page.getByLabel('Dollars').fill('12.50');
    await page.context().clearCookies();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    const again = page.getByRole('dialog', { name: 'Your session has ended' });
    await again.getByLabel('Access token').fill(installation.owner);
    const loadedAgain = page.waitForResponse(/\/active-org\/keys\?/);
    await again.getByRole('button', { name: 'Sign in' }).click();
    await loadedAgain;
    assert.equal(await page.getByLabel('Dollars').count(), 1);
    assert.equal(await page.getByLabel('Dollars').inputValue(), '12.50');
    await page.context().close();
  });

  test('nobody leaves what is typed, or a secret that is shown once, without being asked', async () => {
    const { page } = await installation.signedIn(installation.owner);
    /** What is tried asks; the address stays where somebody says no. */
    const asks = async (attempt: () => unknown, says: 'yes' | 'no') => {
      const asked = page.waitForEvent('dialog');
      const done = attempt();
      const dialog = await asked;
      await (says === 'yes' ? dialog.accept() : dialog.dismiss());
      await done;
      return dialog.type();
    };
    const back = () => page.evaluate('history.back()');
    const isAt = (screen: string) =>
      waitFor(
        screen,
        () => new URL(page.url()).pathname,
        (at) => at === `/console/${screen}`,
      );
    await open(page, 'overview');
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    const name = page.getByLabel('Name');
    await name.waitFor();
    await back();
    await isAt('overview');
    await page.goForward();
    await page.getByRole('button', { name: 'New key' }).click();
    await name.fill('typed and kept');
    for (const _ of ['once', 'again']) {
      assert.equal(await asks(back, 'no'), 'confirm');
      await isAt('keys');
      assert.equal(await name.inputValue(), 'typed and kept');
    }
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const secret = page.locator('.secret');
    await secret.waitFor();
    assert.equal(await asks(back, 'no'), 'confirm');
    assert.ok(await secret.isVisible());
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByRole('button', { name: 'New key' }).click();
    await name.fill('not to be kept');
    assert.equal(await asks(back, 'yes'), 'confirm');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    await open(page, 'guardrails');
    await page.getByRole('button', { name: 'New policy' }).click();
    await name.fill('draft');
    const [media, close] = [page.getByRole('link', { name: 'Media' }), page.getByRole('button', { name: 'Close' })];
    const leaving = [
      () => media.click(),
      // The screen itself, without the policy that is open.
      () => page.getByRole('link', { name: 'Guardrails', exact: true }).click(),
      () => close.click(),
      () => page.getByRole('button', { name: 'Sign out' }).click(),
    ];
    for (const leave of leaving) {
      assert.equal(await asks(leave, 'no'), 'confirm');
      assert.equal(await name.inputValue(), 'draft');
    }
    assert.equal(await asks(() => page.reload(), 'yes'), 'beforeunload');
    await name.waitFor();
    await close.click();
    await media.click();
    await isAt('media');
    await page.context().close();
  });

  test('a link signs nobody in to another account unasked', async () => {
    const { api, tollgate } = installation;
    await api('POST', '/v1/admin/active-org/members', { email: 'linked@demo.test', role: 'member' });
    const { page } = await installation.signedIn(installation.owner);
    const { output } = await tollgate.run(['console', '--user', 'linked@demo.test', '--organization', 'demo']);
    const [link = ''] = /http\S+\/console#link=\S+/.exec(output) ?? assert.fail(output);
    const who = async (opened: Page) => {
      const answer = await opened.request.get(`${tollgate.url}/v1/console/session`, {
        headers: { 'x-tollgate-console': '1', 'sec-fetch-site': 'same-origin' },
      });
      return ((await answer.json()) as { data: { user: { email: string } } }).data.user.email;
    };
    for (const [choice, email] of [
      ['Stay', 'owner@demo.test'],
      ['Sign in by the link', 'linked@demo.test'],
    ] as const) {
      const opened = await page.context().newPage();
      await opened.goto(link);
      const asked = opened.getByRole('dialog', { name: 'Sign in by this link?' });
      await asked.waitFor();
      assert.match(await asked.innerText(), /owner@demo\.test/);
      assert.equal(await who(opened), 'owner@demo.test');
      await asked.getByRole('button', { name: choice }).click();
      await asked.waitFor({ state: 'detached' });
      assert.equal(await who(opened), email);
    }
    await page.context().close();
  });

  test('who signs in after somebody else on the same page asks the playground with a key of their own', async () => {
    const { api, tokenOf } = installation;
    await api('POST', '/v1/admin/active-org/members', { email: 'next@demo.test', role: 'member' });
    const next = await tokenOf('next@demo.test');
    const deposit = ['--organization', 'demo', '--user', 'next@demo.test', '--amount', '5', '--reference', 'next'];
    assert.equal((await installation.tollgate.run(['credit', 'add', ...deposit])).exitCode, 0);
    const watched = await installation.signedIn(installation.owner);
    const { page } = watched;
    await open(page, 'playground');
    const used: (string | undefined)[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/chat/completions')) used.push(request.headers()['authorization']);
    });
    const ask = async () => {
      const before = used.length;
      await page.getByLabel('Message').fill('x');
      await page.getByLabel('Message').press('Control+Enter');
      await waitFor(
        'the playground to ask',
        () => used.length,
        (count) => count > before,
      );
      await page.locator('.facts', { hasText: 'Served by' }).waitFor();
    };
    await ask();
    await ask();
    assert.equal(used[0], used[1], 'of one person one key');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Access token').fill(next);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByLabel('Message').waitFor();
    await ask();
    assert.notEqual(used[2], used[0]);
    const { data } = await api<{ data: { name: string }[] }>('GET', '/v1/me/keys', undefined, next);
    assert.deepEqual(
      data.map(({ name }) => name.split(' ')[0]),
      ['playground'],
    );
    await page.context().close();
  });

  test('two tabs of two organizations: what is meant for one is never done in the other', async () => {
    const { api, owner } = installation;
    const body = { slug: 'second', display_name: 'שנייה', billing: 'none' };
    const { data: made } = await api<{ data: { id: string } }>('POST', '/v1/admin/organizations', body);
    await api('POST', `/v1/admin/organizations/${made.id}/members`, { email: 'owner@demo.test', role: 'owner' });
    await api('POST', `/v1/admin/organizations/${made.id}/teams`, { slug: 'of-second' });
    const watched = await installation.signedIn(owner);
    const { page: first } = watched;
    await open(first, 'people');
    await first.getByRole('button', { name: 'New team' }).click();
    await first.getByLabel('Slug').fill('meant-for-demo');
    const second = await first.context().newPage();
    await open(second, 'people');
    await second.getByRole('combobox', { name: 'Organization' }).selectOption(made.id);
    await second.getByRole('cell', { name: 'of-second' }).first().waitFor();
    await first.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    const notice = first.getByRole('dialog', { name: 'Another organization is chosen' });
    await notice.waitFor();
    assert.deepEqual(await findBarriers(watched), []);
    const teamsOf = async (organization: string) =>
      (await api<{ data: { slug: string }[] }>('GET', `/v1/admin/organizations/${organization}/teams`)).data.map(
        ({ slug }) => slug,
      );
    assert.deepEqual(await teamsOf(made.id), ['of-second']);
    await notice.getByRole('button', { name: 'Go on here' }).click();
    await notice.waitFor({ state: 'detached' });
    assert.equal(await first.getByLabel('Slug').inputValue(), 'meant-for-demo');
    await first.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await first.getByRole('cell', { name: 'meant-for-demo' }).first().waitFor();
    // Now the other tab is the one that shows what is not chosen.
    await second.getByRole('link', { name: 'Media' }).click();
    await second.getByRole('button', { name: /^Show/ }).click();
    await second.getByRole('dialog').waitFor({ state: 'detached' });
    const { data: me } = await api<{ data: { organization_id: string } }>('GET', '/v1/me');
    assert.equal(await second.getByRole('combobox', { name: 'Organization' }).inputValue(), me.organization_id);
    assert.deepEqual(await teamsOf(made.id), ['of-second']);
    await first.context().close();
  });

  test('two tabs of two people: what is meant to be done by one is never done by the other', async () => {
    const { api, owner, tokenOf } = installation;
    const email = 'second@demo.test';
    await api('POST', '/v1/admin/active-org/members', { email, role: 'owner' });
    const other = await tokenOf(email);
    const keysMade = async () => {
      const { data } = await api<{ data: { name: string }[] }>('GET', '/v1/admin/active-org/keys');
      return data.filter(({ name }) => name === 'meant for the first').length;
    };
    const watched = await installation.signedIn(owner);
    const { page: first } = watched;
    await open(first, 'keys');
    await first.getByRole('button', { name: 'New key' }).click();
    const name = first.getByLabel('Name');
    await name.fill('meant for the first');
    const second = await first.context().newPage();
    await open(second, 'keys');
    const signInAsOther = async () => {
      await second.getByRole('button', { name: 'Sign out' }).click();
      await second.getByLabel('Access token').fill(other);
      await second.getByRole('button', { name: 'Sign in', exact: true }).click();
      await second.getByRole('heading', { name: 'Keys', exact: true }).waitFor();
    };
    await signInAsOther();
    const create = () => first.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await create();
    const notice = first.getByRole('dialog', { name: 'Somebody else is signed in' });
    await notice.getByText(email).first().waitFor();
    assert.deepEqual(await findBarriers(watched), []);
    assert.equal(await keysMade(), 0);
    // Signed in again as before, the page goes on with what was typed, and the other tab is the one that is told.
    await notice.getByLabel('Access token').fill(owner);
    await notice.getByRole('button', { name: 'Sign in', exact: true }).click();
    await notice.waitFor({ state: 'detached' });
    assert.equal(await name.inputValue(), 'meant for the first');
    await create();
    await first.getByRole('button', { name: 'I have it' }).click();
    assert.equal(await keysMade(), 1);
    await second.getByRole('button', { name: 'Sign out' }).click();
    const told = second.getByRole('dialog', { name: 'Somebody else is signed in' });
    await told.getByRole('button', { name: 'Go on as owner@demo.test' }).click();
    await told.waitFor({ state: 'detached' });
    await second.getByRole('cell', { name: 'meant for the first' }).first().waitFor();
    await signInAsOther();
    // Whoever stays may also go on as the other one.
    await first.getByRole('link', { name: 'Requests' }).click();
    await notice.getByRole('button', { name: `Go on as ${email}` }).click();
    await notice.waitFor({ state: 'detached' });
    assert.equal(await first.getByRole('link', { name: 'Live' }).count(), 0);
    await first.context().close();
  });

  test('an organization is chosen while answers are late, come in another order or refuse', async () => {
    const { api, owner, tollgate } = installation;
    const organizations: string[] = [];
    for (const slug of ['one', 'two', 'three']) {
      const body = { slug: `late-${slug}`, display_name: `Late ${slug}`, billing: 'none' };
      const { data: made } = await api<{ data: { id: string } }>('POST', '/v1/admin/organizations', body);
      await api('POST', `/v1/admin/organizations/${made.id}/members`, { email: 'owner@demo.test', role: 'owner' });
      await api('POST', `/v1/admin/organizations/${made.id}/teams`, { slug: `of-${slug}` });
      organizations.push(made.id);
    }
    const [one, two, three] = organizations as [string, string, string];
    const { page } = await installation.signedIn(owner);
    await open(page, 'people');
    const choice = page.getByRole('combobox', { name: 'Organization' });
    const isAt = async (slug: string, id: string) => {
      await page
        .getByRole('cell', { name: `of-${slug}` })
        .first()
        .waitFor();
      assert.equal(await choice.inputValue(), id);
      assert.equal(await page.getByRole('dialog').count(), 0);
    };
    const session = '**/v1/console/session';
    // The session is elsewhere, and its gateway has not been told.
    await page.route(session, async (route) => {
      if (route.request().method() !== 'PATCH') return route.continue();
      const client = new pg.Client(tollgate.postgresUrl);
      await client.connect();
      await client.query(
        `UPDATE access_tokens SET active_organization_id = $1 WHERE id = (SELECT id FROM access_tokens
           WHERE kind = 'session' ORDER BY created_at DESC LIMIT 1)`,
        [one],
      );
      await client.end();
      return route.fulfill({ json: { data: { organization_id: one } } });
    });
    await choice.selectOption(one);
    await isAt('one', one);
    await page.unroute(session);
    // Each answer in turn is late; what the page asks meanwhile is of the organization that it left.
    for (const [late, slug, id] of [
      ['**/v1/console/session', 'two', two],
      ['**/v1/me/organizations*', 'one', one],
      ['**/active-org/members*', 'two', two],
      ['**/active-org/teams*', 'one', one],
    ] as const) {
      await page.route(late, async (route) => {
        await pause(500);
        await route.continue();
      });
      await choice.selectOption(id);
      await isAt(slug, id);
      await page.unrouteAll({ behavior: 'wait' });
    }
    // Three at once, as by the arrow keys: the first one's request is the last to leave.
    let patched = 0;
    await page.route(session, async (route) => {
      if (route.request().method() === 'PATCH') await pause(patched++ === 0 ? 800 : 0);
      await route.continue();
    });
    for (const id of [three, one, two]) await choice.selectOption(id);
    await isAt('two', two);
    assert.equal(patched, 3);
    await page.unrouteAll({ behavior: 'wait' });
    await page.route(session, (route) => route.fulfill({ status: 503, json: { error: 'the store is busy' } }));
    await choice.selectOption(three);
    await page
      .getByRole('dialog', { name: 'The organization was not switched' })
      .getByText('the store is busy')
      .waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    await isAt('two', two);
    // With a draft it is asked for once, and the draft is gone with the organization.
    await page.unrouteAll({ behavior: 'wait' });
    await open(page, 'guardrails');
    await page.getByRole('button', { name: 'New policy' }).click();
    await page.getByLabel('Name').fill('draft');
    let asked = 0;
    page.on('dialog', (dialog) => {
      asked += 1;
      void dialog.accept();
    });
    await choice.selectOption(one);
    await page.getByLabel('Name').waitFor({ state: 'detached' });
    assert.deepEqual([asked, await choice.inputValue()], [1, one]);
    await page.context().close();
  });

  test('every member can be reached, however many there are; a page that does not come is said', async () => {
    const { api, owner } = installation;
    const place = '/v1/admin/active-org/members';
    const { data: members } = await api<{ data: object[] }>('GET', place);
    const watched = await installation.signedIn(owner);
    const { page } = watched;
    const COUNT = 2_345;
    let refused = 0;
    await page.route(`**${place}?*`, async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const from = Number(query.get('cursor') ?? 0);
      if (from === 100 && refused++ === 0) return route.fulfill({ status: 503, json: { error: 'the store is busy' } });
      const data = Array.from({ length: Math.min(100, COUNT - from) }, (_, index) => ({
        ...members[0],
        user_id: `user-${from + index}`,
        email: `${from + index}@demo.test`,
      }));
      return route.fulfill({ json: { data, next_cursor: from + 100 < COUNT ? String(from + 100) : null } });
    });
    await open(page, 'people');
    const table = page.getByRole('table', { name: 'Members' });
    const more = page.getByRole('button', { name: 'More' });
    assert.equal(await table.getAttribute('aria-rowcount'), '101');
    await more.click();
    await page.getByRole('alert').getByText('the store is busy').waitFor();
    assert.equal(await table.getAttribute('aria-rowcount'), '101');
    for (const rows of ['1101', '2101', '2346']) {
      await more.click();
      await page.locator(`table[aria-rowcount="${rows}"]`).waitFor();
    }
    assert.equal(await more.count(), 0);
    assert.deepEqual(await findBarriers(watched), []);
    await open(page, 'limits');
    const offered = page.getByLabel('Limits of').locator('option', { hasText: /^Member / });
    assert.equal(await offered.count(), COUNT, 'a choice of a member offers them all');
    await page.context().close();
  });

  test('a link to any screen leads there once one has signed in; one that makes no sense breaks nothing', async () => {
    const watched = await openPage(installation.browser, { width: 360 });
    const { page } = watched;
    for (const screen of ['audit?of=platform', 'requests?from=2026-99-99&to=2026-99-99&zone=Not/Any&status=x%00']) {
      await page.context().clearCookies();
      await page.goto(`${installation.tollgate.url}/console/${screen}`);
      await page.getByLabel('Access token').fill(installation.owner);
      await page.keyboard.press('Enter');
      await page.locator('#main h1').waitFor();
      assert.ok(page.url().endsWith(screen), page.url());
    }
    assert.deepEqual(
      (await watched.complaints()).filter((line) => !/status of 400/.test(line)),
      [],
    );
    await page.context().close();
  });
});
