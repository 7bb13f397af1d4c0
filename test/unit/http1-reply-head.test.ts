// The head of a provider's reply (RFC 9112 4 to 6): what is read, how its body is framed, and what is refused because
// it could be framed in two ways.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ReplyHead, readReplyHead, replyHeader } from '../../src/upstream/http1/reply-head.ts';
import { seededRandom } from '../support/byte-splits.ts';

/** It lies in the middle of what a read brought. */
function read(lines: readonly string[]): ReplyHead | string {
  const bytes = Buffer.from(`x: y${lines.join('\r\n')}\r\n\r\nbody`, 'latin1');
  return readReplyHead(bytes, 4, bytes.length - 6);
}

function head(...lines: readonly string[]): ReplyHead {
  const found = read(lines);
  assert.ok(typeof found !== 'string', JSON.stringify([lines, found]));
  return found;
}

const OK = 'HTTP/1.1 200 OK';

describe('the head of a reply', () => {
  test('status and headers, names in lower case, values without blanks around them, repeats one by one', () => {
    const found = head(
      OK,
      'Content-Type:text/event-stream',
      'X-Request-Id: \t a b \t',
      'set-cookie: one',
      'Set-Cookie: two',
      'empty:',
      'obs: caf\xe9',
    );
    assert.equal(found.status, 200);
    assert.deepEqual(found.headers, [
      'content-type',
      'text/event-stream',
      'x-request-id',
      'a b',
      'set-cookie',
      'one',
      'set-cookie',
      'two',
      'empty',
      '',
      'obs',
      'caf\xe9',
    ]);
    assert.equal(replyHeader(found.headers, 'set-cookie'), 'one');
    assert.equal(replyHeader(found.headers, 'one'), undefined);
  });

  test('a value that is UTF-8 is read as that, so that who writes it writes the bytes that came', () => {
    const value = 'attachment; filename="d\u00e9j\u00e0 \u{1f600}.png"';
    const found = head(OK, `content-disposition: ${Buffer.from(value).toString('latin1')}`, 'plain: a');
    assert.deepEqual(found.headers, ['content-disposition', value, 'plain', 'a']);
  });

  test('a status line without a reason, with an odd one, with an odd code', () => {
    for (const line of ['HTTP/1.1 204', 'HTTP/1.1 204 ', 'HTTP/1.1 204 No  Content: \xfe', 'HTTP/1.0 204 x'])
      assert.equal(head(line).status, 204);
    assert.equal(head('HTTP/1.1 529 Overloaded').status, 529);
    assert.equal(head('HTTP/1.1 999 Denied').status, 999);
  });

  const FRAMINGS: readonly (readonly [name: string, lines: readonly string[], expected: Partial<ReplyHead>])[] = [
    ['a length', [OK, 'content-length: 17'], { framing: 'length', bodyBytes: 17, keepAlive: true }],
    ['a length of 0', [OK, 'content-length: 0'], { framing: 'none', bodyBytes: 0, keepAlive: true }],
    ['chunks', [OK, 'transfer-encoding: Chunked'], { framing: 'chunked', keepAlive: true }],
    ['neither', [OK], { framing: 'until_close', keepAlive: false }],
    ['204', ['HTTP/1.1 204 No Content'], { framing: 'none', keepAlive: true }],
    [
      '304 with the length it would have',
      ['HTTP/1.1 304 x', 'content-length: 9'],
      { framing: 'none', keepAlive: true },
    ],
    ['204 that claims a body', ['HTTP/1.1 204 x', 'content-length: 9'], { framing: 'none', keepAlive: false }],
    ['304 that claims chunks', ['HTTP/1.1 304 x', 'transfer-encoding: chunked'], { framing: 'none', keepAlive: false }],
    ['close', [OK, 'content-length: 1', 'connection: close'], { keepAlive: false }],
    ['close among others', [OK, 'content-length: 1', 'connection: x, CLOSE ,y'], { keepAlive: false }],
    ['an option that only begins like close', [OK, 'content-length: 1', 'connection: closet'], { keepAlive: true }],
    ['HTTP/1.0', ['HTTP/1.0 200 OK', 'content-length: 1'], { keepAlive: false }],
    [
      'HTTP/1.0 that would be kept',
      ['HTTP/1.0 200 OK', 'content-length: 1', 'connection: keep-alive'],
      { keepAlive: false },
    ],
    ['a hint', [OK, 'content-length: 1', 'keep-alive: max=9, timeout=5'], { keepAliveHintMs: 5_000 }],
    ['no hint', [OK, 'content-length: 1', 'keep-alive: timeout=soon'], { keepAliveHintMs: null }],
  ];
  for (const [name, lines, expected] of FRAMINGS) {
    test(`framing: ${name}`, () => {
      const found = head(...lines);
      for (const [key, value] of Object.entries(expected)) assert.equal(found[key as keyof ReplyHead], value, key);
    });
  }

  const REFUSED: readonly (readonly [name: string, lines: readonly string[]])[] = [
    ['no HTTP', ['SSH-2.0-OpenSSH_9.6']],
    ['another version', ['HTTP/2.0 200 OK']],
    ['a version of three parts', ['HTTP/1.1.1 200']],
    ['lower case', ['http/1.1 200 OK']],
    ['a code of two digits', ['HTTP/1.1 20 OK']],
    ['a code of four digits', ['HTTP/1.1 2000 OK']],
    ['a code below 100', ['HTTP/1.1 099 OK']],
    ['a code with a sign', ['HTTP/1.1 +20 OK']],
    ['two spaces before the code', ['HTTP/1.1  200 OK']],
    ['an empty line in front', ['', OK]],
    ['a line without a colon', [OK, 'content-length']],
    ['a name that is empty', [OK, ': 1']],
    ['a space before the colon', [OK, 'content-length : 1']],
    ['a folded line', [OK, 'x: 1', ' content-length: 2']],
    ['a line folded by a tab', [OK, 'x: 1', '\tcontent-length: 2']],
    ['a name with a bracket', [OK, 'content(length): 1']],
    ['a name beyond ASCII', [OK, 'content-l\xe4ngth: 1']],
    ['NUL in a value', [OK, 'x: a\0b']],
    ['NUL in the reason', ['HTTP/1.1 200 O\0K']],
    ['a bare LF', [OK, 'x: a\ncontent-length: 1']],
    ['a bare CR', [OK, 'x: a\rcontent-length: 1']],
    ['CR CR LF', [OK, 'x: a\r']],
    ['DEL in a value', [OK, 'x: a\x7fb']],
    ['content-length twice', [OK, 'content-length: 1', 'content-length: 2']],
    ['content-length twice, equal', [OK, 'content-length: 1', 'Content-Length: 1']],
    ['a list of lengths', [OK, 'content-length: 1, 1']],
    ['a length with a sign', [OK, 'content-length: +1']],
    ['a negative length', [OK, 'content-length: -1']],
    ['a length in hexadecimal', [OK, 'content-length: 0x1']],
    ['a length with a fraction', [OK, 'content-length: 1.0']],
    ['an empty length', [OK, 'content-length:']],
    ['a length beyond all measure', [OK, 'content-length: 9999999999999999999999']],
    ['both framings', [OK, 'content-length: 1', 'transfer-encoding: chunked']],
    ['both framings, the other way round', [OK, 'transfer-encoding: chunked', 'content-length: 1']],
    ['another coding', [OK, 'transfer-encoding: gzip']],
    ['another coding first', [OK, 'transfer-encoding: gzip, chunked']],
    ['another coding last', [OK, 'transfer-encoding: chunked, identity']],
    ['chunked twice', [OK, 'transfer-encoding: chunked, chunked']],
    ['chunked twice in two lines', [OK, 'transfer-encoding: chunked', 'transfer-encoding: chunked']],
    ['chunked misspelt', [OK, 'transfer-encoding: xchunked']],
    ['chunked with a vertical tab', [OK, 'transfer-encoding: \x0bchunked']],
    ['chunks in HTTP/1.0', ['HTTP/1.0 200 OK', 'transfer-encoding: chunked']],
  ];
  for (const [name, lines] of REFUSED) {
    test(`refused: ${name}`, () => {
      assert.equal(typeof read(lines), 'string');
      // Also behind a head that is good.
      head(OK, 'x: a', 'content-length: 1');
      assert.equal(typeof read(lines), 'string');
    });
  }

  test('heads that share most of their lines: each is read as what it says', () => {
    const random = seededRandom(20_261_122);
    const oneOf = <Of>(all: readonly Of[]): Of => all[Math.floor(random() * all.length)] as Of;
    const NAMES = [
      'Date',
      'date',
      'x',
      'x-a',
      'X-Request-Id',
      'vary',
      ...Array.from({ length: 1_200 }, (_, index) => `x-${index}`),
    ];
    const VALUES = [
      '',
      'a',
      'ab',
      'b',
      'a b',
      'application/json',
      'application/json; charset=utf-8',
      'caf\xe9',
      'a'.repeat(300),
    ];
    for (let round = 0; round < 20_000; round++) {
      const lines = Array.from({ length: Math.floor(random() * 6) }, () => {
        const value = random() < 0.2 ? String(round) : oneOf(VALUES);
        return {
          name: random() < 0.01 ? oneOf(NAMES) : oneOf(NAMES.slice(0, 6)),
          value,
          sent: `${oneOf(['', ' ', '\t '])}${value}${oneOf(['', '', ' '])}`,
        };
      });
      const status = oneOf([200, 200, 200, 429, 500]);
      const found = head(`HTTP/1.1 ${status} x`, ...lines.map(({ name, sent }) => `${name}:${sent}`));
      assert.equal(found.status, status);
      assert.deepEqual(
        found.headers,
        lines.flatMap(({ name, value }) => [name.toLowerCase(), value]),
      );
    }
  });
});
