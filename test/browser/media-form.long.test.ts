// Uploads from a browser's own form, in a real Chromium (spec 4.7): a form that a page reads and sends with a key, from
// the gateway's own origin and from one that may call it; from any other nothing arrives; and what a form can send by
// itself, without a key, is refused in the platform's envelope.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { findChromium, openChromium } from '../support/console-browser.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const chromium = findChromium();
const skip = chromium === null ? 'no Chromium is installed here' : false;
const NAME = 'Größe "1" €.png';

describe('a browser’s form', { skip }, () => {
  let front: Front;
  let browser: Browser;
  let allowed: Server;
  let other: Server;

  before(async () => {
    const port = await findFreePort();
    front = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }),
      env: { MEDIA: 'disk', CORS_ORIGINS: `http://127.0.0.1:${port}` },
    });
    allowed = await servePages(front.url, port);
    other = await servePages(front.url, 0);
    browser = await openChromium(chromium ?? '');
  });
  after(async () => {
    await browser?.close();
    for (const server of [allowed, other]) {
      server?.closeAllConnections();
      server?.close();
    }
    await front?.stop();
  });

  async function openForm(origin: string, bytes: Buffer): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    // The gateway has no such page of its own: one of its origin. Where pages are replaced Playwright answers
    // preflights itself, so nowhere else.
    if (origin === front.url)
      await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: 'text/html', body: pageOf(origin) }));
    await page.goto(`${origin}/page`);
    await page.locator('#file').setInputFiles({ name: NAME, mimeType: 'text/html', buffer: bytes });
    return page;
  }

  /** What the page's own script shows of the answer. */
  async function sendByScript(page: Page): Promise<string> {
    await page.locator('#send').click();
    const shown = page.locator('#shown');
    await shown.filter({ hasText: /./ }).waitFor();
    return (await shown.textContent()) ?? '';
  }

  for (const whose of ['the gateway', 'an allowed page'] as const)
    test(`of ${whose}, sent with a key, is answered with the envelope`, async () => {
      const bytes = randomBytes(300_000);
      const page = await openForm(whose === 'the gateway' ? front.url : originOf(allowed), bytes);
      const [status, text = ''] = (await sendByScript(page)).split(/ (.*)/s);
      assert.equal(status, '200', text);
      const body = JSON.parse(text) as Record<string, unknown>;
      assert.deepEqual(Object.keys(body), ['id', 'mime', 'bytes', 'deduped', 'url']);
      assert.deepEqual([body['mime'], body['bytes'], body['deduped']], ['application/octet-stream', 300_000, false]);
      const headers = { authorization: `Bearer ${KEYS.acme}` };
      const kept = await httpCall(`${front.url}/v1/media/${String(body['id'])}`, { headers });
      assert.ok(kept.body.equals(bytes));
    });

  test('of a page that may not call the gateway sends nothing', async () => {
    const bytes = randomBytes(1_000);
    assert.match(await sendByScript(await openForm(originOf(other), bytes)), /^TypeError/);
    const page = await openForm(front.url, bytes);
    assert.match(await sendByScript(page), /"deduped":false/, 'nobody has uploaded these bytes before');
  });

  test('by itself has no key: it is refused in the envelope, and nothing of it is kept', async () => {
    const bytes = randomBytes(1_000);
    for (const origin of [front.url, originOf(other)]) {
      const page = await openForm(origin, bytes);
      const answering = page.waitForResponse(`${front.url}/v1/media/upload`);
      await page.locator('#submit').click();
      const answer = await answering;
      assert.equal(answer.status(), 401);
      const { error, request_id: id } = JSON.parse((await page.locator('body').textContent()) ?? '') as {
        error: unknown;
        request_id: unknown;
      };
      assert.deepEqual([typeof error, typeof id], ['string', 'string']);
    }
    assert.match(await sendByScript(await openForm(front.url, bytes)), /"deduped":false/);
  });
});

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function servePages(gatewayUrl: string, port: number): Promise<Server> {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(pageOf(gatewayUrl)),
  );
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

function pageOf(gatewayUrl: string): string {
  return `<!doctype html><meta charset="utf-8">
    <form id="form" method="post" enctype="multipart/form-data" action="${gatewayUrl}/v1/media/upload">
      <input name="note" value="a field before it"><input id="file" type="file" name="file">
      <button id="submit">Upload</button>
    </form>
    <button id="send">Send with a key</button><pre id="shown"></pre>
    <script>
      document.querySelector('#send').onclick = async () => {
        const form = document.querySelector('#form');
        const headers = { authorization: 'Bearer ${KEYS.acme}' };
        const shown = document.querySelector('#shown');
        try {
          const answer = await fetch(form.action, { method: 'POST', headers, body: new FormData(form) });
          shown.textContent = answer.status + ' ' + (await answer.text());
        } catch (error) {
          shown.textContent = String(error);
        }
      };
    </script>`;
}
