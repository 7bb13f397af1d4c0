// Compares reports figure by figure: counts and money to the last digit, ratios to the last decimal that is shown.

import assert from 'node:assert/strict';

/** Covers ratios, which are rounded to six decimals, and percentages, which have four. */
const TOLERANCE = 6e-5;

/** Asserts that both are equal; fractions are compared to the last decimal that is shown. */
export function assertFigures(actual: unknown, expected: unknown, path: string): void {
  if (typeof actual === 'number' && typeof expected === 'number' && !Number.isInteger(expected)) {
    assert.ok(Math.abs(actual - expected) <= TOLERANCE, `${path}: ${actual} instead of ${expected}`);
  } else if (typeof expected === 'object' && expected !== null && typeof actual === 'object' && actual !== null) {
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort(), path);
    for (const key of Object.keys(expected)) {
      assertFigures(
        (actual as Record<string, unknown>)[key],
        (expected as Record<string, unknown>)[key],
        `${path}.${key}`,
      );
    }
  } else if (typeof actual === 'number' && typeof expected === 'number') {
    assert.ok(
      Math.abs(actual - expected) <= (Number.isInteger(actual) ? 0 : TOLERANCE),
      `${path}: ${actual} instead of ${expected}`,
    );
  } else assert.equal(actual, expected, path);
}
