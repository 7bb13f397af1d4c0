// Files that would run in a browser, if one took them for pages or scripts, in a real Chromium: nothing of them runs,
// however they are put into a page, and opened by themselves. The same bytes, served as a page, do run.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { startMediaFront } from '../support/media-front.ts';
import { openTestDatabase } from '../support/postgres.ts';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];
/** Chromium waits on for a page that becomes a download. */
const BUDGET_MS = 10_000;
/** Opened by themselves, beside being put into a page. */
const OPENED = ['html', 'svg', 'png', 'late'];

function findBrowser(): string | null {
  for (const name of BROWSERS) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8' }).trim();
    } catch {
      // The next one.
    }
  }
  return null;
}

const browser = findBrowser();
const skip = browser === null ? 'no Chromium is installed here' : false;

function hostileFiles(beacon: string): Readonly<Record<string, Buffer>> {
  const run = (name: string) => `new Image().src='${beacon}/ran?${name}'`;
  const page = (name: string) => `<!doctype html><body onload="${run(name)}"><script>${run(name)}</script>`;
  const bytes = (...parts: readonly string[]) => Buffer.from(parts.join(''), 'latin1');
  return {
    html: bytes(page('html')),
    svg: bytes('<svg xmlns="http://www.w3.org/2000/svg"><script>', run('svg'), '</script></svg>'),
    xhtml: bytes(
      '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>',
      run('xhtml'),
      '</script></html>',
    ),
    gif: bytes('GIF89a/*', '\0'.repeat(20), '*/=1;', run('gif')),
    png: bytes('\x89PNG\r\n\x1a\n', page('png')),
    jpeg: bytes('\xff\xd8\xff\xe0', page('jpeg')),
    pdf: bytes('%PDF-1.4\n', page('pdf')),
    script: bytes(run('script')),
    bom: bytes('\xef\xbb\xbf', page('bom')),
    late: bytes(' '.repeat(5_000), page('late')),
    utf7: bytes('+ADw-script+AD4-', run('utf7'), '+ADw-/script+AD4-'),
    css: bytes('body{background:url(', beacon, '/ran?css)}'),
  };
}

describe('uploaded files in a browser', { skip }, () => {
  test('run nowhere', { timeout: 300_000 }, async (context) => {
    const database = await openTestDatabase();
    const media = await startMediaFront(database.postgres, {
      publicUrl: 'https://files.test',
      limits: { fileBytesMax: 1_000_000, organizationBytesMax: 10_000_000 },
    });
    const ran = new Set<string>();
    let harnessPage = '';
    const harness = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://harness.test');
      if (url.pathname === '/ran') ran.add(url.search.slice(1));
      const bytes = url.pathname === '/as-page' ? files[url.search.slice(1)] : harnessPage;
      response.writeHead(200, { 'content-type': 'text/html' }).end(bytes);
    });
    await new Promise<void>((resolve) => harness.listen(0, '127.0.0.1', resolve));
    const own = `http://127.0.0.1:${(harness.address() as AddressInfo).port}`;
    const files = hostileFiles(own);
    const profile = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    context.after(async () => {
      harness.closeAllConnections();
      harness.close();
      await media.stop();
      await database.close();
      rmSync(profile, { recursive: true, force: true });
    });
    const addresses: string[] = [];
    for (const [name, bytes] of Object.entries(files)) {
      const { status, body } = await media.upload('acme', bytes, {
        filename: `${name}.png`,
        headers: ['Content-Type: image/png'],
      });
      assert.equal(status, 200, name);
      addresses.push(`${media.url}${new URL(body.url).pathname}`);
    }
    harnessPage = pageOf(own, addresses);
    await open(profile, own);
    assert.deepEqual([...ran], ['control'], 'only the page itself ran');
    const total = Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0);
    assert.ok((media.media?.metrics.servedBytes.value ?? 0) >= total, 'the browser asked for the files');
    for (const name of OPENED) await open(profile, addresses[Object.keys(files).indexOf(name)] ?? '');
    assert.deepEqual([...ran], ['control'], 'nothing ran by itself');
    await open(profile, `${own}/as-page?html`);
    assert.ok(ran.has('html'), 'the same bytes run where they are served as a page');
  });
});

function pageOf(own: string, addresses: readonly string[]): string {
  const uses = addresses.map(
    (address) =>
      `<img src="${address}"><script src="${address}"></script><link rel="stylesheet" href="${address}">` +
      `<script type="module" src="${address}"></script><iframe src="${address}"></iframe><embed src="${address}">` +
      `<object data="${address}"></object><video src="${address}"></video>`,
  );
  return `<!doctype html><script>new Image().src='${own}/ran?control'</script>${uses.join('\n')}`;
}

function open(profile: string, address: string): Promise<void> {
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
  return new Promise((resolve) => {
    execFile(
      browser ?? '',
      [...flags, `--user-data-dir=${profile}`, '--timeout=3000', '--dump-dom', address],
      { timeout: BUDGET_MS },
      // A download is no page to dump, which is an error to it.
      () => resolve(),
    );
  });
}
