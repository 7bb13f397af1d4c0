// Ranges of uploaded files (RFC 9110, 14.2) against slices: whatever two numbers a header names, what is served is the
// slice that they name, or nothing is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askedRange } from '../../src/domain/media/byte-range.ts';
import { seededRandom } from '../support/byte-splits.ts';

const CASES = 20_000;

test('any range is the slice that it names, and one without a byte is unsatisfiable', () => {
  const random = seededRandom(1);
  const below = (most: number): number => Math.floor(random() * most);
  for (let count = 0; count < CASES; count += 1) {
    const bytes = Uint8Array.from({ length: below(40) }, (_, at) => at);
    const [one, other] = [below(50), below(50)];
    const forms: readonly (readonly [string, Uint8Array])[] = [
      [`bytes=${one}-${other}`, other < one ? bytes.subarray(0, 0) : bytes.subarray(one, other + 1)],
      [`bytes=${one}-`, bytes.subarray(one)],
      [`bytes=-${one}`, one === 0 ? bytes.subarray(0, 0) : bytes.subarray(-one)],
    ];
    for (const [header, slice] of forms) {
      const asked = askedRange(header, null, '"x"', bytes.length);
      const what = `${header} of ${bytes.length}`;
      if (slice.length === 0) assert.equal(asked, 'unsatisfiable', what);
      else assert.deepEqual(asked, { first: slice[0], last: slice.at(-1) }, what);
    }
  }
});
