// A map with a limited number of entries forgets the one that was set longest ago.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedMap } from '../../src/platform/bounded-map.ts';

test('the entry that was set longest ago gives way to a new one, and a key that is set again is the newest', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3);
  assert.equal(map.size, 2);
  map.set('c', 4);
  assert.deepEqual(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  );
  map.set('c', 5);
  assert.equal(map.size, 2);
});
