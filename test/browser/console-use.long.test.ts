// The console in the hands of people, in a real Chromium: lists that are longer than a page, sessions that end while
// somebody types, two tabs, clicks that come twice, answers that do not come.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { findBarriers, openScreen } from '../support/console-browser.ts';
import { type ConsoleInstallation, skipWithoutConsole, startConsole } from '../support/console-installation.ts';
import { waitFor } from '../support/waiting.ts';

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
});
