// Moving and copying bytes does what the native calls do, at every length around the one from which these are used.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyInto, moveWithin } from '../../src/platform/move-bytes.ts';

const ORIGINAL = Buffer.from(Array.from({ length: 256 }, (_, index) => index));

test('pieces are moved to the left and to the right, over themselves too', () => {
  for (const length of [0, 1, 2, 63, 64, 65, 100]) {
    for (const to of [0, 70, 79, 80, 81, 90, 150]) {
      const moved = Buffer.from(ORIGINAL);
      moveWithin(moved, to, 80, 80 + length);
      assert.deepEqual(moved, Buffer.from(ORIGINAL).copyWithin(to, 80, 80 + length), `${length} bytes to ${to}`);
    }
  }
});

test('pieces are copied whole', () => {
  for (const length of [0, 1, 63, 64, 65, 100]) {
    const copied = Buffer.from(ORIGINAL);
    copyInto(copied, 7, Buffer.alloc(length, 'x'));
    assert.deepEqual(
      copied,
      Buffer.concat([ORIGINAL.subarray(0, 7), Buffer.alloc(length, 'x'), ORIGINAL.subarray(7 + length)]),
    );
  }
});
