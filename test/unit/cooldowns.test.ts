// Cooldowns of provider-models: begun by Retry-After, ended by time, and what is left when every offer has one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Cooldowns } from '../../src/data-plane/admission/cooldowns.ts';
import type { Offer } from '../../src/data-plane/catalog/serving-catalog.ts';

const offer = (id: string, providerModel: string): Offer => ({
  provider: { id, baseUrl: 'http://127.0.0.1', apiKey: 'k', auth: 'bearer', onDisconnect: 'cancel' },
  providerModel,
  modelJson: Buffer.from('""'),
  modelText: Buffer.from(''),
  price: null,
  asksForUsage: false,
});
const first = offer('a', 'm');
const second = offer('b', 'm');
const otherModel = offer('a', 'n');

describe('cooldowns', () => {
  test('an offer in cooldown is passed over, the others of the same provider are not', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, '3', 1_000, 0);
    assert.deepEqual(cooldowns.filter([first, second], 1_000), [second]);
    assert.deepEqual(cooldowns.filter([first, otherModel], 3_999), [otherModel]);
    assert.deepEqual(cooldowns.filter([first, second], 4_000), [first, second]);
  });

  test('when every offer has one, the shortest wait is told', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, '30', 0, 0);
    cooldowns.begin(second, '2', 0, 0);
    assert.deepEqual(cooldowns.filter([first, second], 500), { kind: 'upstream_cooldown', retryAfterMs: 1_500 });
  });

  test('a date is read against the wall clock', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'Fri, 20 Nov 2026 14:00:05 GMT', 0, Date.parse('Fri, 20 Nov 2026 14:00:00 GMT'));
    assert.deepEqual(cooldowns.filter([first], 4_999), { kind: 'upstream_cooldown', retryAfterMs: 1 });
    assert.deepEqual(cooldowns.filter([first], 5_000), [first]);
  });

  for (const value of [null, '', 'soon', '0', '-3', 'Fri, 20 Nov 2020 14:00:00 GMT']) {
    test(`${JSON.stringify(value)} begins none`, () => {
      const cooldowns = new Cooldowns();
      cooldowns.begin(first, value, 0, Date.parse('2026-11-20'));
      assert.equal(cooldowns.size, 0);
    });
  }

  test('an hour is cut to ten minutes, a shorter one does not end a longer one, ended ones are forgotten', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, '3600', 0, 0);
    cooldowns.begin(first, '1', 0, 0);
    assert.deepEqual(cooldowns.filter([first], 599_999), { kind: 'upstream_cooldown', retryAfterMs: 1 });
    cooldowns.forgetEnded(600_000);
    assert.equal(cooldowns.size, 0);
  });
});
