// What each reply to a call with an own key means, and for how long it keeps the key from being used: row by row.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { feeOf } from '../../src/domain/own-keys/byok-settings.ts';
import {
  meaningOf,
  OWN_REPLIES,
  type OwnReplyMeaning,
  pauseMs,
  type RefusedFor,
} from '../../src/domain/own-keys/own-reply.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

const REPLIES: readonly [status: number | null, says: RefusedFor | null, meaning: OwnReplyMeaning][] = [
  [401, null, 'key'],
  [401, 'key', 'key'],
  [401, 'scope', 'scope'],
  [400, 'key', 'key'],
  [403, 'key', 'key'],
  [402, null, 'quota'],
  [429, 'billing', 'quota'],
  [400, 'billing', 'quota'],
  [403, 'billing', 'quota'],
  [403, 'scope', 'scope'],
  [404, 'scope', 'scope'],
  [429, null, 'rate'],
  [500, null, 'provider'],
  [503, null, 'provider'],
  [529, null, 'provider'],
  [null, null, 'provider'],
  [400, null, 'relayed'],
  [403, null, 'relayed'],
  [404, null, 'relayed'],
  [409, null, 'relayed'],
  [413, null, 'relayed'],
  [422, null, 'relayed'],
  [200, null, 'relayed'],
];

describe('a reply to an own key', () => {
  for (const [status, says, meaning] of REPLIES)
    test(`${status ?? 'none'} that refuses ${says ?? 'nothing'}: ${meaning}`, () =>
      assert.equal(meaningOf(status, says), meaning));

  test('a refusal of the key or of its quota never reaches a client', () => {
    const hidden = Object.entries(OWN_REPLIES).filter(([, row]) => row.isHidden);
    assert.deepEqual(
      hidden.map(([meaning]) => meaning),
      ['key', 'quota', 'scope'],
    );
  });
});

const PAUSES: readonly [OwnReplyMeaning, inARow: number, retryAfterMs: number | null, ms: number][] = [
  ['key', 1, null, 30 * SECOND_MS],
  ['key', 9, 5, 30 * SECOND_MS],
  ['quota', 1, null, 5 * MINUTE_MS],
  ['quota', 2, null, 10 * MINUTE_MS],
  ['quota', 99, null, 60 * MINUTE_MS],
  ['scope', 3, null, 10 * MINUTE_MS],
  ['rate', 1, null, 5 * SECOND_MS],
  ['rate', 2, null, 10 * SECOND_MS],
  ['rate', 5, null, 60 * SECOND_MS],
  ['rate', 1, 90 * SECOND_MS, 90 * SECOND_MS],
  ['rate', 1, 24 * 60 * MINUTE_MS, 10 * MINUTE_MS],
  ['provider', 1, 90 * SECOND_MS, 2 * SECOND_MS],
  ['provider', 9, null, 30 * SECOND_MS],
  ['relayed', 9, 90 * SECOND_MS, 0],
];

describe('how long a key, or a key for a model, or an address is not used', () => {
  for (const [meaning, inARow, retryAfterMs, ms] of PAUSES)
    test(`${meaning}, ${inARow} in a row, Retry-After ${retryAfterMs}`, () =>
      assert.equal(pauseMs(meaning, inARow, retryAfterMs), ms));
});

test('the fee is a share of the rated cost, rounded down, or an amount for each request', () => {
  const cost = picoUsd(12_345n);
  assert.equal(feeOf(null, cost), 0n);
  assert.equal(feeOf({ kind: 'percent', basisPoints: 250 }, cost), 308n);
  assert.equal(feeOf({ kind: 'percent', basisPoints: 10_000 }, cost), 12_345n);
  assert.equal(feeOf({ kind: 'per_request', amount: picoUsd(7n) }, cost), 7n);
});
