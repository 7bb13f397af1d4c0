// Reading JSON that was cut: at every place, by property and by table.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { closeCutJson } from '../../src/domain/usage/cut-json.ts';

describe('closeCutJson', () => {
  test('what was cut anywhere is JSON, and tells nothing that was not there', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), fc.boolean(), (value, at, indented) => {
        const whole = JSON.stringify(value, null, indented ? 2 : 0);
        const cut = whole.slice(0, 1 + (at % whole.length));
        const closed = closeCutJson(cut);
        assert.ok(closed !== null);
        for (const key of Object.keys(JSON.parse(closed) as object))
          assert.ok(Object.hasOwn(value, key), `${key} in ${closed}`);
        assert.deepEqual(JSON.parse(closeCutJson(whole) as string), JSON.parse(whole));
      }),
      { numRuns: 2000 },
    );
  });
  const cuts: readonly (readonly [string, string | null])[] = [
    ['{', '{}'],
    ['{"a', '{}'],
    ['{"a":', '{}'],
    ['{"a":tr', '{}'],
    ['{"a":12', '{}'],
    ['{"a":12,', '{"a":12}'],
    ['{"a":"x\\', '{"a":"x"}'],
    ['{"a":"x\\u00e', '{"a":"x"}'],
    ['{"a":"x\\\\', '{"a":"x\\\\"}'],
    ['{"a":["x","y', '{"a":["x","y"]}'],
    ['{"a":[{"b":"x"},', '{"a":[{"b":"x"}]}'],
    ['{]', null],
    ['', null],
    ['<html>{', null],
  ];
  for (const [cut, closed] of cuts) test(JSON.stringify(cut), () => assert.equal(closeCutJson(cut), closed));
});
