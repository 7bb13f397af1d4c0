// The path of a call to a provider, whatever was called before it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathPrefixOf, upstreamPath } from '../../src/upstream/upstream-path.ts';

test('prefix, path and a query that may stand in a URL', () => {
  const calls: readonly (readonly [prefix: string, path: string, query: string, expected: string])[] = [
    ['/v1', '/messages', '', '/v1/messages'],
    ['/v1', '/messages', 'beta=true', '/v1/messages?beta=true'],
    ['/v1', '/messages', '', '/v1/messages'],
    ['', '/v1/messages', '', '/v1/messages'],
    ['/v2', '/messages', '', '/v2/messages'],
    ['/v2', '/responses', 'a b', '/v2/responses'],
    ['/v2', '/responses', 'a=\u00e9', '/v2/responses'],
    ['', '', '', ''],
  ];
  for (const [prefix, path, query, expected] of [...calls, ...calls])
    assert.equal(upstreamPath(prefix, path, query), expected);
});

test('a base URL that ends in /v1 has the /v1 of the API already; any other path stays before it', () => {
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
    assert.equal(upstreamPath(pathPrefixOf(new URL(baseUrl)), '/v1/responses', ''), expected, baseUrl);
});
