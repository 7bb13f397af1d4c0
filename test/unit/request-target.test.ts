// Where a request to a provider goes, and with which of the client's headers: the usual paths, and each setting that
// changes them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configuredProvider } from '../../src/domain/configuration/schema/provider-schema.ts';
import { readRequestSettings } from '../../src/domain/configuration/schema/request-settings.ts';
import { HeaderLines } from '../../src/upstream/http1/request-head.ts';
import { ProviderAddress, type RequestTarget } from '../../src/upstream/request-target.ts';

type Settings = Parameters<typeof readRequestSettings>[0];

function address(baseUrl: string, settings: Settings = {}, auth = 'bearer'): ProviderAddress {
  return new ProviderAddress({ baseUrl, auth, requests: readRequestSettings(settings) });
}

const CHAT: RequestTarget = {
  api: 'chat_completions',
  path: '/v1/chat/completions',
  query: '',
  providerModel: 'acme/large-1',
  streamed: false,
};

describe('the usual path', () => {
  test('has the query of the client', () => {
    const calls: readonly (readonly [baseUrl: string, query: string, expected: string])[] = [
      ['https://llm.test', '', '/v1/chat/completions'],
      ['https://llm.test', 'beta=true', '/v1/chat/completions?beta=true'],
      ['https://llm.test', '', '/v1/chat/completions'],
      ['https://llm.test/v2', '', '/v2/v1/chat/completions'],
    ];
    for (const [baseUrl, query, expected] of [...calls, ...calls])
      assert.equal(address(baseUrl).pathOf({ ...CHAT, query }), expected);
  });

  test('stands behind a base URL, whose own /v1 at its end is not doubled; any other path stays before it', () => {
    const calls: Readonly<Record<string, string>> = {
      'https://api.openai.com': '/v1/responses',
      'https://api.openai.com/': '/v1/responses',
      'https://api.openai.com/v1': '/v1/responses',
      'https://api.openai.com/v1/': '/v1/responses',
      'https://api.openai.com/v1//': '/v1/responses',
      'http://127.0.0.1:11434/v1': '/v1/responses',
      'https://acme.openai.azure.com/openai/v1/': '/openai/v1/responses',
      'https://openrouter.ai/api/v1': '/api/v1/responses',
      'https://api.groq.com/openai': '/openai/v1/responses',
      // As it was: only a path that ends in /v1 says so.
      'https://generativelanguage.googleapis.com/v1beta/openai/': '/v1beta/openai/v1/responses',
      'https://llm.acme.test/v1/projects/p': '/v1/projects/p/v1/responses',
      'https://llm.acme.test/api': '/api/v1/responses',
      'https://llm.acme.test/v2': '/v2/v1/responses',
      'https://llm.acme.test/V1': '/V1/v1/responses',
      'https://llm.acme.test/llm-v1': '/llm-v1/v1/responses',
      'https://llm.acme.test/v1/v1': '/v1/v1/responses',
    };
    for (const [baseUrl, expected] of Object.entries(calls))
      assert.equal(address(baseUrl).pathOf({ ...CHAT, api: 'responses', path: '/v1/responses' }), expected, baseUrl);
  });
});

describe('a path of its own', () => {
  const settings: Settings = {
    apis: {
      chat_completions: { path: '/models/{model}/{path}' },
      messages: { path: '/m/{model}:rawPredict', path_stream: '/m/{model}:streamRawPredict' },
      images: { path: '/{path}' },
    },
  };

  test('stands behind the whole base URL, its templates filled in', () => {
    const target = address('https://llm.test/api/v1', settings);
    assert.equal(target.pathOf(CHAT), '/api/v1/models/acme%2Flarge-1/chat/completions');
    assert.equal(
      target.pathOf({ ...CHAT, providerModel: '../a?b#c d' }),
      '/api/v1/models/..%2Fa%3Fb%23c%20d/chat/completions',
    );
    const edits = { ...CHAT, api: 'images', path: '/v1/images/edits' } as const;
    assert.equal(target.pathOf(edits), '/api/v1/images/edits');
    const messages = { ...CHAT, api: 'messages', path: '/v1/messages', providerModel: 'claude' } as const;
    assert.equal(target.pathOf(messages), '/api/v1/m/claude:rawPredict');
    assert.equal(target.pathOf({ ...messages, streamed: true }), '/api/v1/m/claude:streamRawPredict');
    assert.equal(target.pathOf({ ...messages, query: 'beta=true' }), '/api/v1/m/claude:rawPredict?beta=true');
  });

  test('is of its API alone', () => {
    const target = address('https://llm.test/api/v1', settings);
    assert.equal(target.pathOf({ ...CHAT, api: 'responses', path: '/v1/responses' }), '/api/v1/responses');
  });
});

test('a parameter that names a credential does not go along, however spelt', () => {
  const [plain, set] = [address('https://llm.test'), address('https://llm.test', { query: { mode: 'x' } })];
  const cases: Readonly<Record<string, string>> = {
    'key=a': '',
    'KEY=a&beta=true': 'beta=true',
    'beta=true&%6Bey=a&api%5fkey=b': 'beta=true',
    'access_token=a&Api-Key=b&subscription-key=c': '',
    '$key=a&%24key=b&oauth_token=c&$userProject=d&x-goog-api-key=e&b=$key&a=1&b=2': 'b=$key&a=1&b=2',
    // A provider that ends the address at a fragment would not read what stands behind it.
    'beta=true#x&y=1': 'beta=true',
    '#': '',
    '#key=a': '',
    'keys=a&%zz=b&&c': 'keys=a&%zz=b&&c',
  };
  for (const [query, expected] of Object.entries(cases)) {
    const path = '/v1/chat/completions';
    assert.equal(plain.pathOf({ ...CHAT, query }), expected === '' ? path : `${path}?${expected}`, query);
    assert.equal(set.pathOf({ ...CHAT, query }), `${path}?${expected === '' ? '' : `${expected}&`}mode=x`, query);
  }
});

test('parameters of the query go before those of the client where they are written in capitals', () => {
  const target = address('https://llm.test', { query: { 'API-Version': '1' } });
  assert.equal(target.pathOf({ ...CHAT, query: 'api-version=2&b=3' }), '/v1/chat/completions?b=3&API-Version=1');
});

test('parameters of the query go before those of the client with the same name, however spelt', () => {
  const target = address('https://llm.test', { query: { 'api-version': '2026-05-01', mode: 'x' } });
  const cases: Readonly<Record<string, string>> = {
    '': 'api-version=2026-05-01&mode=x',
    'beta=true': 'beta=true&api-version=2026-05-01&mode=x',
    'api-version=1&beta=true': 'beta=true&api-version=2026-05-01&mode=x',
    'api%2Dversion=1&mode&m=2': 'm=2&api-version=2026-05-01&mode=x',
    'API-VERSION=evil2&Mode=y&api%2dVersion': 'api-version=2026-05-01&mode=x',
    '%zz=1': '%zz=1&api-version=2026-05-01&mode=x',
  };
  for (const [query, expected] of Object.entries(cases))
    assert.equal(target.pathOf({ ...CHAT, query }), `/v1/chat/completions?${expected}`, query);
});

describe('headers of the client', () => {
  const sent = ['accept', '*/*', 'anthropic-version', '2023-06-01', 'openai-beta', 'x'];

  test('go along as they are', () => {
    const lines = new HeaderLines(sent);
    assert.equal(address('https://llm.test').headersOf(lines), lines);
    assert.equal(address('https://llm.test', {}, 'api-key').headersOf(sent), sent);
  });

  test('stay behind where the provider drops them, or gets one of the configuration in their place', () => {
    const target = address('https://llm.test', {
      headers: { 'openai-beta': 'y' },
      drop_headers: ['anthropic-version'],
    });
    assert.deepEqual(target.headersOf(new HeaderLines(sent)), ['accept', '*/*']);
    assert.deepEqual(target.headersOf(sent), ['accept', '*/*']);
    const keyed = address('https://llm.test', {}, 'openai-beta');
    assert.deepEqual(keyed.headersOf(sent), ['accept', '*/*', 'anthropic-version', '2023-06-01']);
  });
});

describe('a base URL as people paste it', () => {
  const pasted = (text: string) => configuredProvider.safeParse({ id: 'p', base_url: text, api_key: 'k' });
  for (const text of [
    'https://a.test',
    'https://a.test/',
    'https://a.test/v1',
    'https://a.test/v1//',
    ' https://a.test/v1/ ',
    'https://a.test/v1?',
    'https://a.test/v1/#',
    'HTTPS://A.test/v1',
  ])
    test(`"${text}" goes to /v1 once`, () => {
      const { data } = pasted(text);
      const { origin } = address(data?.baseUrl ?? '');
      assert.deepEqual([origin, address(data?.baseUrl ?? '').pathOf(CHAT)], ['https://a.test', CHAT.path]);
    });

  for (const [text, expected] of [
    ['https://a.test/v1/chat/completions', /leave out \/chat\/completions/],
    ['https://a.test/v1/messages/', /leave out \/messages/],
    ['https://:secret@a.test', /without query, fragment or credentials/],
    ['https://user@a.test', /without query, fragment or credentials/],
    ['https://a.test/v1?key=1', /without query/],
    ['a.test/v1', /must be an http/],
    ['ftp://a.test', /must be an http/],
    ['https://a b.test', /must be an http/],
    ['', /must be an http/],
  ] as const)
    test(`"${text}" is a mistake that is named`, () => {
      assert.match(pasted(text).error?.issues[0]?.message ?? '', expected);
    });
});
