// The header allowlist in both directions: what passes, and above all what must not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Provider } from '../../src/domain/models/provider.ts';
import { providerCredential } from '../../src/upstream/credential.ts';
import { forwardedHeaders, passesToClient } from '../../src/upstream/header-policy.ts';
import { HeaderLines } from '../../src/upstream/http1/request-head.ts';

const provider: Provider = {
  id: 'p',
  baseUrl: 'http://127.0.0.1',
  apiKey: 'provider-secret',
  auth: 'bearer',
  onDisconnect: 'cancel',
};
const asObject = (list: readonly string[]) =>
  Object.fromEntries(list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1]]] : [])));

/** Of a request that may be like others. */
function sharedLines(clientHeaders: readonly string[]): HeaderLines {
  const lines = forwardedHeaders(clientHeaders);
  assert.ok(lines instanceof HeaderLines);
  return lines;
}

function upstreamHeaders(clientHeaders: readonly string[], provider: Provider): string[] {
  return [...providerCredential(provider).headers, ...sharedLines(clientHeaders).headers];
}

describe('request headers', () => {
  const client = [
    'host',
    'gateway.example',
    'authorization',
    'Bearer tg-client',
    'x-api-key',
    'tg-client',
    'cookie',
    'a=b',
    'connection',
    'keep-alive, x-secret',
    'x-secret',
    'planted',
    'x-client-request-id',
    'correlation',
    'x-service-tag',
    'team-a',
    'x-forwarded-for',
    '10.0.0.1',
    'content-length',
    '12',
    'openai-organization',
    'org-of-the-client',
    'content-type',
    'application/json',
    'user-agent',
    'OpenAI/JS',
    'openai-beta',
    'assistants=v2',
    'anthropic-version',
    '2023-06-01',
    'x-stainless-lang',
    'js',
    'accept',
    '*/*',
    'accept-encoding',
    'gzip',
    'expect',
    '100-continue',
    'te',
    'trailers',
  ];

  test('only the listed ones pass, with our credential', () => {
    assert.deepEqual(asObject(upstreamHeaders(client, provider)), {
      'accept-encoding': 'identity',
      authorization: 'Bearer provider-secret',
      'content-type': 'application/json',
      'user-agent': 'OpenAI/JS',
      'openai-beta': 'assistants=v2',
      'anthropic-version': '2023-06-01',
      'x-stainless-lang': 'js',
      accept: '*/*',
    });
  });

  test('requests with the same headers share their lines, and no others do', () => {
    const change = (name: string, value: string): string[] => client.with(client.indexOf(name) + 1, value);
    const lines = sharedLines(client);
    assert.equal(sharedLines(client.slice()), lines);
    // What stays here may change.
    for (const name of ['content-length', 'authorization', 'openai-organization'])
      assert.equal(sharedLines(change(name, '77')), lines);
    for (const name of ['content-type', 'user-agent', 'accept']) {
      const changed = sharedLines(change(name, 'another'));
      assert.equal(asObject(changed.headers)[name], 'another');
      assert.equal(changed.text, lines.text?.replace(new RegExp(`^${name}: .*$`, 'm'), `${name}: another`));
    }
    // A header more, a name in the place of another, another order.
    assert.equal(asObject(sharedLines([...client, 'openai-beta', 'b']).headers)['openai-beta'], 'b');
    const renamed = client.with(client.indexOf('x-stainless-lang'), 'x-not-listed');
    assert.equal(asObject(sharedLines(renamed).headers)['x-not-listed'], undefined);
    const turned = [...client.slice(-2), ...client.slice(0, -2)];
    assert.deepEqual(sharedLines(turned).headers, lines.headers);
  });

  test('a request with a key of its own is not remembered in the place of one that comes again', () => {
    const lines = sharedLines(client);
    for (let index = 0; index < 40; index++) {
      const keyed = ['idempotency-key', `key-${index}`, ...client];
      assert.deepEqual(forwardedHeaders(keyed), ['idempotency-key', `key-${index}`, ...lines.headers]);
    }
    assert.equal(forwardedHeaders(client), lines);
  });

  test('a value of any UTF-8 goes along as the bytes it came in, also for a client that comes again', () => {
    for (const value of ['d\u00e9', 'Zürich \u{1f600}', '\u0080', '日本', 'tab\there']) {
      const bytes = Buffer.from(value).toString('latin1');
      for (let round = 0; round < 2; round++) {
        const { text } = sharedLines([...client, 'openai-beta', value]);
        assert.ok(text?.endsWith(`openai-beta: ${bytes}\r\n`));
      }
      assert.deepEqual(forwardedHeaders(['idempotency-key', value]), ['idempotency-key', bytes]);
    }
  });

  test('a value that cannot be written is refused by its name, where it would go along', () => {
    for (const value of ['d\ufffd', 'a\x7f', 'a\x01b', 'a\r\nb: c', '\0']) {
      assert.deepEqual(forwardedHeaders([...client, 'openai-beta', value]), {
        kind: 'unsendable_header',
        name: 'openai-beta',
      });
      assert.ok(forwardedHeaders([...client, 'x-not-listed', value]) instanceof HeaderLines);
    }
  });

  test('among many clients each gets its own', () => {
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 40; index++) {
        const agent = `agent ${(index * 7) % 11}`;
        const { headers, text } = sharedLines(['host', 'h', 'user-agent', agent, 'content-length', String(index)]);
        assert.deepEqual([headers, text], [['user-agent', agent], `user-agent: ${agent}\r\n`]);
      }
    }
  });

  test('what would end a line early is refused each time', () => {
    const refused = { kind: 'unsendable_header', name: 'user-agent' };
    for (let round = 0; round < 3; round++)
      assert.deepEqual(forwardedHeaders(['user-agent', 'a\r\nx-planted: b']), refused);
  });

  test('the credential goes where the provider wants it', () => {
    assert.deepEqual(asObject(upstreamHeaders([], { ...provider, auth: 'x-api-key' })), {
      'accept-encoding': 'identity',
      'x-api-key': 'provider-secret',
    });
  });
});

describe('reply headers', () => {
  const PASS = [
    'content-type',
    'content-encoding',
    'retry-after',
    'x-request-id',
    'x-ratelimit-remaining-tokens',
    'openai-processing-ms',
  ];
  const OWN = ['x-service-execution-id', 'content-length', 'transfer-encoding', 'connection', 'server'];
  const SECRET = ['openai-organization', 'set-cookie', 'authorization', 'x-api-key'];

  test('only the listed ones pass', () => {
    for (const name of PASS) assert.ok(passesToClient(name), name);
    for (const name of [...OWN, ...SECRET]) assert.ok(!passesToClient(name), name);
  });
});
