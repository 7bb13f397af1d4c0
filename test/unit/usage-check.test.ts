// Which reports of a provider can be charged by.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkUsage, NO_USAGE_BOUNDS, type RawUsage, type UsageBounds } from '../../src/domain/usage/check-usage.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';

const BOUNDS: UsageBounds = { inputTokensMax: 100, outputTokensMax: 50, imagesMax: 10 };

describe('checkUsage accepts', () => {
  const rows: readonly (readonly [string, RawUsage, object])[] = [
    ['a plain report', { inputTokens: 10, outputTokens: 5 }, { inputTokens: 10, outputTokens: 5 }],
    [
      'counts at their bounds',
      { inputTokens: 100, outputTokens: 50, images: 10 },
      { inputTokens: 100, outputTokens: 50, images: 10 },
    ],
    ['zeroes, the negative one too', { inputTokens: 0, outputTokens: -0 }, { inputTokens: 0, outputTokens: 0 }],
    ['absent and null as unknown', { inputTokens: null, outputTokens: 5 }, { outputTokens: 5 }],
    ['an empty report', {}, {}],
    [
      'cache reads and writes that fill the input',
      { inputTokens: 10, cachedInputTokens: 6, cacheWriteTokens: 4, outputTokens: 1 },
      { inputTokens: 10, cachedInputTokens: 6, cacheWriteTokens: 4, outputTokens: 1 },
    ],
    ['reasoning inside the output', { outputTokens: 5, reasoningTokens: 5 }, { outputTokens: 5, reasoningTokens: 5 }],
    ['reasoning counted beside the output, as unknown', { outputTokens: 5, reasoningTokens: 6 }, { outputTokens: 5 }],
  ];
  for (const [name, raw, usage] of rows)
    test(name, () => assert.deepEqual(checkUsage(raw, BOUNDS), { ok: true, usage: { ...NO_COUNTS, ...usage } }));
});

describe('checkUsage refuses', () => {
  const notCounts: readonly unknown[] = [
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    1e300,
    '10',
    true,
    {},
    [],
    10n,
  ];
  for (const value of notCounts) {
    test(`${typeof value} ${String(value)}`, () => {
      for (const name of Object.keys(NO_COUNTS)) {
        const check = checkUsage({ inputTokens: 5, outputTokens: 5, [name]: value }, BOUNDS);
        assert.deepEqual(check, { ok: false, reason: `${name} is not a non-negative whole number`, claimed: null });
      }
    });
  }

  const outOfRange: readonly (readonly [string, RawUsage, RegExp])[] = [
    ['input above its bound', { inputTokens: 101, outputTokens: 1 }, /inputTokens is above the bound of 100/],
    ['output above its bound', { inputTokens: 1, outputTokens: 51 }, /outputTokens is above the bound of 50/],
    ['images above their bound', { images: 11 }, /images is above/],
  ];
  for (const [name, raw, reason] of outOfRange) {
    test(`${name}, and says what was claimed`, () => {
      const check = checkUsage(raw, BOUNDS);
      assert.ok(!check.ok);
      assert.match(check.reason, reason);
      assert.deepEqual(check.claimed, { ...NO_COUNTS, ...raw });
    });
  }
});

describe('a cached part that is no part of the input', () => {
  for (const raw of [
    { inputTokens: 7, cachedInputTokens: 163, outputTokens: 1 },
    { inputTokens: 10, cachedInputTokens: 6, cacheWriteTokens: 5, outputTokens: 1 },
    { cachedInputTokens: 3, outputTokens: 1 },
  ]) {
    test(`${JSON.stringify(raw)} is unknown, and the rest of the report stands`, () => {
      const check = checkUsage(raw, BOUNDS);
      assert.ok(check.ok);
      assert.deepEqual(check.usage, { ...NO_COUNTS, ...raw, cachedInputTokens: null, cacheWriteTokens: null });
    });
  }
});

test('checkUsage never lets through what is not a count, whatever is thrown at it', () => {
  const anything = fc.record(
    {
      inputTokens: fc.anything(),
      cachedInputTokens: fc.anything(),
      cacheWriteTokens: fc.anything(),
      outputTokens: fc.anything(),
      reasoningTokens: fc.anything(),
      images: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(anything, (raw) => {
      const check = checkUsage(raw, NO_USAGE_BOUNDS);
      if (check.ok)
        for (const count of Object.values(check.usage))
          assert.ok(count === null || (Number.isSafeInteger(count) && count >= 0));
    }),
  );
});
