// How deep a place lies, told from either end, with strings shorter and longer than what is looked through byte by
// byte.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DepthFromEnd, DepthFromStart, NO_DEPTH } from '../../src/platform/bytes/json-depth.ts';
import { seededRandom } from '../support/byte-splits.ts';

const KEY = '"sought"';

test('strings of every length around the limit, with quotes and backslashes in them', () => {
  const random = seededRandom(7);
  for (let length = 0; length < 100; length++) {
    for (let round = 0; round < 20; round++) {
      const text = Array.from({ length }, () => ['a', 'b', '"', '\\', '{', ']', 'é'][Math.floor(random() * 7)]).join(
        '',
      );
      const depth = 1 + Math.floor(random() * 4);
      const inner = `{${JSON.stringify(text)}:${JSON.stringify(text)},${KEY}:1,"x":[${JSON.stringify(text)},{"${'y'.repeat(length)}":2}]}`;
      const document = Buffer.from(`${`{${JSON.stringify(text)}:`.repeat(depth - 1)}${inner}${'}'.repeat(depth - 1)}`);
      const key = document.indexOf(KEY);
      assert.equal(new DepthFromStart(document, 0).at(key), depth, document.toString());
      assert.equal(new DepthFromEnd(document, document.length).at(key), depth, document.toString());
    }
  }
});

test('a place within a string, and one whose string has no end', () => {
  for (const length of [0, 30, 31, 32, 33, 34, 64, 200]) {
    const within = Buffer.from(`{"x":"${'a'.repeat(length)}sought${'a'.repeat(length)}"}`);
    assert.equal(new DepthFromStart(within, 0).at(within.indexOf('sought')), NO_DEPTH);
    assert.equal(new DepthFromEnd(within, within.length).at(within.indexOf('sought')), NO_DEPTH);
    const open = Buffer.from(`{"x":"${'a'.repeat(length)}`);
    assert.equal(new DepthFromStart(open, 0).at(open.length), NO_DEPTH);
  }
});

test('behind a place within a string the places that follow are told', () => {
  const document = Buffer.from('{"a":[{"sought":1}],"b\\"sought":[2],"c":{"sought":3}}');
  const [first, within, last] = [...document.toString().matchAll(/sought/g)].map(({ index }) => index - 1);
  assert.ok(first !== undefined && within !== undefined && last !== undefined);
  const fromEnd = new DepthFromEnd(document, document.length);
  assert.deepEqual(
    [last, within, first].map((place) => fromEnd.at(place)),
    [2, NO_DEPTH, 3],
  );
  const fromStart = new DepthFromStart(document, 0);
  assert.deepEqual(
    [first, within, last].map((place) => fromStart.at(place)),
    [3, NO_DEPTH, 2],
  );
});

test('behind a string without an end nothing is told', () => {
  const document = Buffer.from(`{"a":1,"${'b'.repeat(100)}`);
  const fromStart = new DepthFromStart(document, 0);
  assert.deepEqual(
    [50, 60, document.length].map((place) => fromStart.at(place)),
    [NO_DEPTH, NO_DEPTH, NO_DEPTH],
  );
  const fromEnd = new DepthFromEnd(Buffer.from(`${'b'.repeat(100)}"}`), 102);
  assert.deepEqual(
    [60, 50, 0].map((place) => fromEnd.at(place)),
    [NO_DEPTH, NO_DEPTH, NO_DEPTH],
  );
});
