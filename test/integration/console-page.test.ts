// The console's page as browsers get it: from a folder as the build leaves it, and where there is none.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { type BuiltConsole, readBuiltConsole } from '../../src/control-plane/console/built-console.ts';
import { consoleRoutes } from '../../src/routes/console-routes.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { NOTHING_BEHIND } from '../support/route-table.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const PAGE = '<!doctype html><script src="/console/app-0a1b2c3d.js"></script>';
const SCRIPT = 'console.log("a script that is long enough to be worth its compression, compression, compression")';
const fronts: HttpFront[] = [];

async function serve(built: BuiltConsole | null): Promise<string> {
  const parts = { ...NOTHING_BEHIND, console: { built } } as unknown as typeof NOTHING_BEHIND;
  const front = await startHttpFront(consoleRoutes(parts));
  fronts.push(front);
  return front.url;
}

describe('the console', () => {
  let url: string;

  before(async () => {
    const folder = join(temporaryDirectory({ after: (hook) => after(() => (hook as () => void)()) }), 'built');
    mkdirSync(folder);
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'app-0a1b2c3d.js'), SCRIPT);
    writeFileSync(join(folder, 'app-0a1b2c3d.js.br'), brotliCompressSync(SCRIPT));
    writeFileSync(join(folder, 'app-4e5f6a7b.css'), 'body{}');
    writeFileSync(join(folder, 'manifest.json'), '{}');
    url = await serve(readBuiltConsole(folder));
  });

  after(async () => {
    for (const front of fronts) await front.stop();
  });

  test('is one page at every address in it, asked for by its version', async () => {
    for (const path of ['/console', '/console/requests', '/console/organizations/acme/keys?zone=UTC']) {
      const { status, headers, body } = await httpCall(`${url}${path}`);
      assert.equal(status, 200, path);
      assert.equal(body.toString(), PAGE);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.equal(headers['cache-control'], 'no-cache');
      const again = await httpCall(`${url}${path}`, { headers: { 'if-none-match': `W/${headers.etag}, "other"` } });
      assert.equal(again.status, 304);
      assert.equal(again.body.length, 0);
    }
    const head = await httpCall(`${url}/console`, { method: 'HEAD' });
    assert.equal(head.headers['content-length'], String(PAGE.length));
  });

  test('has a script and a stylesheet that are kept, compressed where the browser takes it', async () => {
    const plain = await httpCall(`${url}/console/app-0a1b2c3d.js`, { headers: { 'accept-encoding': 'gzip, br;q=0' } });
    assert.equal(plain.body.toString(), SCRIPT);
    assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable');
    assert.equal(plain.headers['content-encoding'], undefined);
    const brotli = await httpCall(`${url}/console/app-0a1b2c3d.js`, { headers: { 'accept-encoding': 'gzip, br' } });
    assert.equal(brotli.headers['content-encoding'], 'br');
    assert.equal(brotliDecompressSync(brotli.body).toString(), SCRIPT);
    const style = await httpCall(`${url}/console/app-4e5f6a7b.css`, { headers: { 'accept-encoding': 'br' } });
    assert.equal(style.headers['content-type'], 'text/css; charset=utf-8');
    assert.equal(style.headers['content-encoding'], undefined);
  });

  test('has nothing else: no file of another build, none of another kind, none outside its folder', async () => {
    for (const path of [
      'app-99999999.js',
      'manifest.json',
      'app-0a1b2c3d.js.br',
      '..%2f..%2fpackage.json',
      '%2e%2e/x.js',
    ])
      assert.equal((await httpCall(`${url}/console/${path}`)).status, 404, path);
  });

  test('is served under a policy that lets nothing foreign, inline or made of text run', async () => {
    for (const path of ['/console', '/console/app-0a1b2c3d.js', '/console/app-4e5f6a7b.css']) {
      const { headers } = await httpCall(`${url}${path}`);
      const policy = String(headers['content-security-policy']);
      for (const part of [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
      ])
        assert.ok(policy.split('; ').includes(part), part);
      assert.doesNotMatch(policy, /unsafe|https?:|\*/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
    }
  });

  test('says how it is built where it is not, and is nowhere where it is switched off', async (context) => {
    const absent = await serve(readBuiltConsole(join(temporaryDirectory(context), 'never-built')));
    const page = await httpCall(`${absent}/console/keys`);
    assert.equal(page.status, 503);
    assert.match(page.body.toString(), /npm run prepare/);
    const off = await serve(null);
    for (const path of ['/console', '/console/keys', '/v1/console/sign-in'])
      assert.equal((await httpCall(`${off}${path}`)).status, 404, path);
  });
});
