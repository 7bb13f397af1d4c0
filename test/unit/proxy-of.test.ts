// Which proxy a provider is called through.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyOf } from '../../src/upstream/proxy-of.ts';

const HTTPS = 'http://proxy.acme.test:3128';
const HTTP = 'http://plain.acme.test:3128';
const NONE = 'internal.test, .corp.test,*.lab.test api.beta.test:8443';

const CASES: readonly (readonly [origin: string, proxy: string | null])[] = [
  ['https://api.openai.com', HTTPS],
  ['https://api.openai.com:8443', HTTPS],
  ['http://api.openai.com', HTTP],
  ['https://8.8.8.8', HTTPS],
  ['https://[2606:4700::1]', HTTPS],
  // This machine and private networks.
  ['http://localhost:11434', null],
  ['http://127.0.0.1:8000', null],
  ['http://[::1]:8000', null],
  ['https://10.1.2.3', null],
  ['https://192.168.1.9', null],
  ['http://gpu-server:8000', null],
  // NO_PROXY.
  ['https://internal.test', null],
  ['https://llm.internal.test', null],
  ['https://notinternal.test', HTTPS],
  ['https://corp.test', null],
  ['https://a.corp.test', null],
  ['https://lab.test', null],
  ['https://x.lab.test:444', null],
  ['https://api.beta.test:8443', null],
  ['https://api.beta.test', HTTPS],
];

for (const [origin, expected] of CASES) {
  test(`${origin}: ${expected ?? 'directly'}`, () => {
    assert.equal(proxyOf(origin, undefined, { https: HTTPS, http: HTTP, none: NONE }), expected);
  });
}

test('what a provider says itself goes before the environment', () => {
  const settings = { https: HTTPS, http: HTTP, none: '*' };
  assert.equal(proxyOf('https://api.openai.com', 'socks5://10.0.0.1:1080', settings), 'socks5://10.0.0.1:1080');
  assert.equal(proxyOf('https://127.0.0.1', 'http://10.0.0.1:3128', settings), 'http://10.0.0.1:3128');
  assert.equal(proxyOf('https://api.openai.com', 'none', { ...settings, none: '' }), null);
  assert.equal(proxyOf('https://api.openai.com', undefined, settings), null);
  assert.equal(proxyOf('https://api.openai.com', undefined, { https: null, http: HTTP, none: '' }), null);
});
