// Every text that any answer has, made hostile in turn, in a real Chromium: whatever the console shows of it, it shows
// as text. Nothing runs, nothing becomes an element, no link leads elsewhere, and the policy has nothing to keep out.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openScreen, type WatchedPage } from '../support/console-browser.ts';
import {
  ALL_SCREENS,
  type ConsoleInstallation,
  skipWithoutConsole,
  startConsole,
} from '../support/console-installation.ts';
import { waitFor } from '../support/waiting.ts';

const MARKUP = `"'><img src=x onerror=globalThis.ran=1><script>globalThis.ran=1</script>`;
const ADDRESS = 'javascript:globalThis.ran=1//';
const PLACE = '/v1/admin/active-org';

describe('hostile answers', { skip: skipWithoutConsole }, () => {
  let installation: ConsoleInstallation;
  let requestId: string;

  before(async () => {
    installation = await startConsole();
    const { api, tollgate } = installation;
    await api('POST', `${PLACE}/teams`, { slug: 'team', display_name: 'Team' });
    await api('PUT', `${PLACE}/limits`, { limits: [{ kind: 'budget', window: 'month', limit: '50.00' }] });
    await api('PUT', `${PLACE}/webhook`, { url: 'https://example.com/' });
    const rules = [{ id: 'mail', detect: ['email'], stage: 'input', action: 'flag' }];
    await api('PUT', `${PLACE}/guardrails/policies/people`, { rules });
    await api('PUT', `${PLACE}/guardrails/assignments`, { policies: ['people'] });
    await api('PUT', '/v1/admin/guardrails/policies/people', { rules });
    const { data: me } = await api<{ data: { organization_id: string } }>('GET', '/v1/me');
    await api('PATCH', `/v1/admin/organizations/${me.organization_id}/byok`, { enabled: true });
    await api('POST', `${PLACE}/provider-credentials`, { kind: 'sim', name: 'ours', secret: 'ours-s', verify: false });
    const { data: key } = await api<{ data: { secret: string } }>('POST', `${PLACE}/keys`, { name: 'key' });
    const authorization = `Bearer ${key.secret}`;
    const form = new FormData();
    form.set('file', new Blob(['%PDF-1.4'], { type: 'application/pdf' }), 'file.pdf');
    await fetch(`${tollgate.url}/v1/media/upload`, { method: 'POST', headers: { authorization }, body: form });
    for (const model of ['service/auto', 'sim/small', 'sim/nobody']) {
      const messages = [{ role: 'user', content: `Write to ada@example.com about ${model}` }];
      const response = await fetch(`${tollgate.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', 'x-service-tag': 'tag' },
        body: JSON.stringify({ model, max_tokens: 9, messages }),
      });
      await response.text();
    }
    const { data } = await waitFor(
      'the requests to be in the reports',
      () => api<{ data: { id: string }[] }>('GET', `${PLACE}/usage/requests?routed=true`),
      (found) => found.data.length > 0,
      60_000,
    );
    requestId = data[0]?.id ?? '';
  });
  after(async () => {
    await installation?.stop();
  });

  for (const [how, hostile] of [
    ['with markup behind it', `text + ${JSON.stringify(MARKUP)}`],
    ['with an address that is a script in front of it', `${JSON.stringify(ADDRESS)} + text`],
  ] as const)
    test(`every text ${how} stays text`, async () => {
      const { signedIn, tollgate } = installation;
      const watched = await signedIn(installation.owner);
      await watched.page.addInitScript({ content: answersMade(hostile) });
      const opened = [`requests?request=${requestId}`, 'policies?policy=default', 'guardrails?policy=people'];
      const shown: string[] = [];
      for (const screen of [...ALL_SCREENS, ...opened, 'audit?of=platform', 'limits?of=team']) {
        await openScreen(watched, tollgate.url, screen);
        await nothingRan(watched, screen);
        if (/globalThis\.ran=1/.test(await watched.page.locator('body').innerText())) shown.push(screen);
      }
      // Where nothing of it was shown, nothing was tried.
      const unseen = [...ALL_SCREENS, ...opened].filter((screen) => !shown.includes(screen));
      assert.deepEqual(unseen, []);
      await watched.page.context().close();
    });

  test('what a model says, and what its refusal says, stays text', async () => {
    const watched = await installation.signedIn(installation.owner);
    const { page } = watched;
    const say = async (body: string, status = 200) => {
      await page.route('**/v1/chat/completions', (route) =>
        route.fulfill({ status, contentType: status === 200 ? 'text/event-stream' : 'application/json', body }),
      );
      await openScreen(watched, installation.tollgate.url, 'playground');
      await page.getByLabel('Message').fill(MARKUP);
      await page.getByLabel('Message').press('Control+Enter');
      await page.locator('.sample, [role=alert]').getByText('globalThis.ran=1').first().waitFor();
      await nothingRan(watched, `the playground, ${status}`);
    };
    const chunk = { model: MARKUP, choices: [{ index: 0, delta: { content: MARKUP }, finish_reason: null }] };
    await say(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    await page.unrouteAll();
    await say(JSON.stringify({ error: { message: MARKUP } }), 400);
    await page.context().close();
  });

  test('what stands in the address stays text', async () => {
    const watched = await installation.signedIn(installation.owner);
    const text = encodeURIComponent(MARKUP);
    const names = ['policy', 'request', 'id', 'of', 'zone', 'range', 'from', 'to', 'model', 'tag', 'by', 'whose'];
    const query = names.map((name) => `${name}=${text}`).join('&');
    for (const screen of ALL_SCREENS) {
      await openScreen(watched, installation.tollgate.url, `${screen}?${query}`);
      await nothingRan(watched, screen);
    }
    // One with a point in it would be a file.
    await openScreen(watched, installation.tollgate.url, encodeURIComponent(`"'><img src=x onerror=ran=1>`));
    await nothingRan(watched, 'no screen');
    await watched.page.context().close();
  });
});

async function nothingRan(watched: WatchedPage, where: string): Promise<void> {
  const { page } = watched;
  assert.equal(await page.evaluate('globalThis.ran'), undefined, where);
  const complaints = await watched.complaints();
  assert.deepEqual(
    complaints.filter((line) => !/status of 400/.test(line)),
    [],
    where,
  );
  assert.deepEqual(await page.evaluate(FOREIGN), [], where);
}

/** What no text may have become. */
const FOREIGN = `[
  ...[...document.querySelectorAll('#console img, #console script, iframe, object, embed, style, base')],
  ...[...document.querySelectorAll('[href], [src], [action]')].filter((one) => {
    const address = one.getAttribute('href') ?? one.getAttribute('src') ?? one.getAttribute('action');
    return one.closest('#console') !== null && !/^(\\/|#)/.test(address);
  }),
].map((one) => one.outerHTML.slice(0, 200))`;

/**
 * Changes every text of every answer before the page has it, but for those that choose what is drawn: the page's
 * permissions, units of time, and what is written as a moment, an amount or an id.
 */
const answersMade = (hostile: string) => `(() => {
  const kept = /^(permissions|granularity|next_cursor|id|.*_id|.*_at|at|until)$/;
  const written = /^(\\d{4}-\\d\\d-\\d\\d.*|-?\\d+(\\.\\d+)?|[0-9a-f]{8}-[0-9a-f-]{27})$/;
  const made = (value, name) =>
    typeof value === 'string' ? (kept.test(name) || written.test(value) ? value : ((text) => ${hostile})(value))
    : Array.isArray(value) ? value.map((one) => made(one, name))
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, made(one, key)]))
      : value;
  const { fetch } = globalThis;
  globalThis.fetch = async (...asked) => {
    const response = await fetch(...asked);
    if (!/json/.test(response.headers.get('content-type') ?? '')) return response;
    const { status, headers } = response;
    return new Response(JSON.stringify(made(await response.json(), '')), { status, headers });
  };
})()`;
