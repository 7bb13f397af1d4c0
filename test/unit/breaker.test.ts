// The breaker of the routing classifier: what opens it for one organization and what for all, who finds out after a
// pause, and what closes it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Breaker } from '../../src/generation/pauses/breaker.ts';

const PAUSE_MS = 10_000;
/** As the classifier has them. */
const RULES = { failuresMax: 5, withinMs: Number.POSITIVE_INFINITY, pauseMs: PAUSE_MS, pauseMsMax: PAUSE_MS };

function fail(breaker: Breaker, organization: string, times: number, nowMs: number): void {
  for (let failure = 0; failure < times; failure += 1) breaker.failed('judge', organization, nowMs);
}

test('opens for an organization after five failures of its own in a row, for one classifier alone', () => {
  const breaker = new Breaker(RULES);
  fail(breaker, 'acme', 4, 0);
  assert.ok(breaker.admits('judge', 'acme', 0));
  breaker.answered('judge', 'acme');
  for (let failure = 0; failure < 5; failure += 1) {
    assert.ok(breaker.admits('judge', 'acme', 0), `after ${failure}`);
    fail(breaker, 'acme', 1, 0);
  }
  assert.ok(!breaker.admits('judge', 'acme', PAUSE_MS - 1));
  assert.ok(breaker.admits('another', 'acme', 0));
});

test('stays closed for everybody else, however often one organization’s questions fail', () => {
  const breaker = new Breaker(RULES);
  for (let round = 0; round < 20; round += 1) fail(breaker, 'acme', 5, round * 1_000);
  assert.ok(breaker.admits('judge', 'other', 20_000));
  // Failures of others that are fewer than a row do not open it for all either.
  fail(breaker, 'other', 4, 20_000);
  assert.ok(breaker.admits('judge', 'third', 20_000));
});

test(
  'opens for all when a second organization’s row is full while the first one waits, and closes with ' + 'the pause',
  () => {
    const breaker = new Breaker(RULES);
    fail(breaker, 'acme', 5, 0);
    fail(breaker, 'other', 5, 3_000);
    assert.ok(!breaker.admits('judge', 'third', 3_000 + PAUSE_MS - 1));
    assert.ok(breaker.admits('judge', 'third', 3_000 + PAUSE_MS));
  },
);

test('opens for each alone where the second fails after the first has waited', () => {
  const breaker = new Breaker(RULES);
  fail(breaker, 'acme', 5, 0);
  fail(breaker, 'other', 5, PAUSE_MS);
  assert.ok(breaker.admits('judge', 'third', PAUSE_MS));
});

test('after a pause one caller of the organization finds out, and its others wait for it', () => {
  const breaker = new Breaker(RULES);
  fail(breaker, 'acme', 5, 0);
  assert.ok(breaker.admits('judge', 'acme', PAUSE_MS));
  assert.ok(!breaker.admits('judge', 'acme', PAUSE_MS));
  fail(breaker, 'acme', 1, PAUSE_MS);
  assert.ok(!breaker.admits('judge', 'acme', 2 * PAUSE_MS - 1));
  assert.ok(breaker.admits('judge', 'acme', 2 * PAUSE_MS));
  breaker.answered('judge', 'acme');
  assert.ok(breaker.admits('judge', 'acme', 2 * PAUSE_MS) && breaker.admits('judge', 'acme', 2 * PAUSE_MS));
});
