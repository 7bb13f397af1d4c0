// The breaker of the routing classifier: it opens after failures in a row, lets one caller find out, and closes with a success.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Breaker } from '../../src/data-plane/routing/breaker.ts';

const PAUSE_MS = 10_000;

test('opens after five failures in a row, for one classifier alone', () => {
  const breaker = new Breaker();
  for (let failure = 0; failure < 4; failure += 1) breaker.failed('judge', 0);
  assert.ok(breaker.admits('judge', 0));
  breaker.succeeded('judge');
  for (let failure = 0; failure < 5; failure += 1) {
    assert.ok(breaker.admits('judge', 0), `after ${failure}`);
    breaker.failed('judge', 0);
  }
  assert.ok(!breaker.admits('judge', PAUSE_MS - 1));
  assert.ok(breaker.admits('another', 0));
});

test('after a pause one caller finds out, and the others wait for it', () => {
  const breaker = new Breaker();
  for (let failure = 0; failure < 5; failure += 1) breaker.failed('judge', 0);
  assert.ok(breaker.admits('judge', PAUSE_MS));
  assert.ok(!breaker.admits('judge', PAUSE_MS));
  breaker.failed('judge', PAUSE_MS);
  assert.ok(!breaker.admits('judge', 2 * PAUSE_MS - 1));
  assert.ok(breaker.admits('judge', 2 * PAUSE_MS));
  breaker.succeeded('judge');
  assert.ok(breaker.admits('judge', 2 * PAUSE_MS) && breaker.admits('judge', 2 * PAUSE_MS));
});
