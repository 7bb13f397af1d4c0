// The head of a request to a provider: what it says, and that nothing in it can end a line or the head itself early.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HeaderLines, requestHead, type UpstreamRequest } from '../../src/upstream/http1/request-head.ts';

const POST: UpstreamRequest = {
  method: 'POST',
  path: '/v1/x?y=z',
  headers: ['authorization', 'Bearer k', 'accept', '*/*'],
  body: Buffer.from('{}'),
};

describe('the head of a request', () => {
  test('says method, path, host, our headers and the length', () => {
    assert.equal(
      requestHead(POST, 'api.example:8080'),
      'POST /v1/x?y=z HTTP/1.1\r\nhost: api.example:8080\r\nconnection: keep-alive\r\nauthorization: ' +
        'Bearer k\r\naccept: */*\r\ncontent-length: 2\r\n\r\n',
    );
  });

  test('lines of many requests stand where single headers do, after those of the provider', () => {
    const headers = new HeaderLines(['accept', '*/*']);
    const head = requestHead(
      { ...POST, providerHeaders: new HeaderLines(['authorization', 'Bearer k']), headers },
      'api.example:8080',
    );
    assert.equal(head, requestHead(POST, 'api.example:8080'));
    for (const list of [
      ['x', 'a\r\nb: c'],
      ['host', 'other'],
    ]) {
      assert.equal(requestHead({ ...POST, headers: new HeaderLines(list) }, 'h'), null);
      assert.equal(requestHead({ ...POST, providerHeaders: new HeaderLines(list) }, 'h'), null);
    }
  });

  test("a provider's own lines behind whatever method, path and host the request has", () => {
    const providerHeaders = new HeaderLines(['authorization', 'Bearer k']);
    const bare = { ...POST, headers: ['accept', '*/*'] };
    const requests: readonly Partial<UpstreamRequest>[] = [
      {},
      {},
      { path: '/v1/other' },
      { method: 'GET' },
      { path: '/x y' },
      { path: '/v1/other' },
      {},
    ];
    for (const host of ['one', 'other', 'one']) {
      for (const change of requests) {
        const expected = requestHead({ ...POST, ...change }, host);
        assert.equal(requestHead({ ...bare, ...change, providerHeaders }, host), expected);
      }
    }
  });

  test('a length always where a method means to carry content, else only with content', () => {
    for (const method of ['POST', 'PUT', 'PATCH'] as const) {
      assert.match(requestHead({ ...POST, method, body: null }, 'h') ?? '', /\r\ncontent-length: 0\r\n\r\n$/);
      assert.match(
        requestHead({ ...POST, method, body: Buffer.alloc(0) }, 'h') ?? '',
        /\r\ncontent-length: 0\r\n\r\n$/,
      );
    }
    for (const method of ['GET', 'DELETE'] as const)
      assert.doesNotMatch(requestHead({ ...POST, method, body: null }, 'h') ?? 'content-length', /content-length/);
    assert.match(requestHead({ ...POST, method: 'DELETE' }, 'h') ?? '', /\r\ncontent-length: 2\r\n\r\n$/);
  });

  const REFUSED: Readonly<Record<string, Partial<UpstreamRequest>>> = {
    'CR LF in a value': { headers: ['x', 'a\r\nb: c'] },
    'a bare LF in a value': { headers: ['x', 'a\nb'] },
    'a bare CR in a value': { headers: ['x', 'a\rb'] },
    'NUL in a value': { headers: ['x', 'a\0b'] },
    'a character that is no byte': { headers: ['x', 'a\u010d\u010ab'] },
    'CR LF in a name': { headers: ['x: y\r\nz', 'a'] },
    'a colon in a name': { headers: ['x:', 'a'] },
    'an empty name': { headers: ['', 'a'] },
    'a length of its own': { headers: ['Content-Length', '1'] },
    'a coding of its own': { headers: ['transfer-encoding', 'chunked'] },
    'a host of its own': { headers: ['host', 'other'] },
    'CR LF in the path': { path: '/x HTTP/1.1\r\nhost: y\r\n\r\n' },
    'a space in the path': { path: '/x y' },
    'a path beyond Latin-1': { path: '/\u010a' },
    'a path that is none': { path: 'http://other/' },
    'an empty path': { path: '' },
  };
  for (const [name, change] of Object.entries(REFUSED)) {
    test(`refused: ${name}`, () => {
      assert.equal(requestHead({ ...POST, ...change }, 'h'), null);
      // The decision is remembered, and is the same the second time.
      assert.equal(requestHead({ ...POST, ...change }, 'h'), null);
    });
  }
});
