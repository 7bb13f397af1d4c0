// JSON with integers of any size.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { tokenSum } from '../../src/domain/usage/token-sum.ts';
import { writeJson } from '../../src/platform/write-json.ts';

describe('JSON', () => {
  test('has bigints as numbers, to the digit, and all else as it is', () => {
    const long = 2n ** 64n - 1n;
    assert.equal(
      writeJson({ long, list: [-long, 1, '12', { none: null, absent: undefined }], text: `"${long}"` }),
      `{"long":${long},"list":[-${long},1,"12",{"none":null}],"text":"\\"${long}\\""}`,
    );
    const plain = { a: [1, 'b', null], c: { d: true } };
    assert.equal(writeJson(plain), JSON.stringify(plain));
  });

  test('a sum is a number as long as one holds it', () => {
    assert.deepEqual(['0', '9007199254740991', 9_007_199_254_740_992n, '9007199254740993'].map(tokenSum), [
      0,
      9_007_199_254_740_991,
      9_007_199_254_740_992n,
      9_007_199_254_740_993n,
    ]);
  });
});
