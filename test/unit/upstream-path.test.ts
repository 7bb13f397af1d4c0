// The path of a call to a provider, whatever was called before it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { upstreamPath } from '../../src/upstream/upstream-path.ts';

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
