// The own keys that a gateway process holds: when they are read again, what serves while the store is away, and what is
// forgotten when changes may have been missed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BYOK_DEFAULTS } from '../../src/domain/own-keys/byok-settings.ts';
import { HeldOwnKeys } from '../../src/generation/own-keys/held-own-keys.ts';
import type { Clock } from '../../src/platform/clock.ts';

const SET = { settings: BYOK_DEFAULTS, keys: [], prices: new Map() };
const USE = { organizationId: 'o', keyId: 'k', fingerprint: '00000001', providerModel: 'm' };

function heldAt(): { held: HeldOwnKeys; store: { isAway: boolean; asked: number }; at: { ms: number } } {
  const at = { ms: 1_000 };
  const store = { isAway: false, asked: 0 };
  const clock: Clock = { nowMs: () => at.ms, monotonicMs: () => at.ms };
  const find = () => {
    store.asked += 1;
    return store.isAway ? Promise.reject(new Error('away')) : Promise.resolve(SET);
  };
  return { held: new HeldOwnKeys(find, clock), store, at };
}

describe('own keys that are held', () => {
  test('are read again after a minute, and once by all who ask meanwhile', async () => {
    const { held, store, at } = heldAt();
    await Promise.all([held.find('o'), held.find('o'), held.find('o')]);
    assert.equal(store.asked, 1);
    at.ms += 59_999;
    assert.ok(!(held.find('o') instanceof Promise));
    at.ms += 1;
    await held.find('o');
    assert.equal(store.asked, 2);
  });

  test('serve while the store is away, which is asked now and then and not by every request', async () => {
    const { held, store, at } = heldAt();
    const known = await held.find('o');
    store.isAway = true;
    at.ms += 60_000;
    assert.equal(await held.find('o'), known);
    assert.equal(store.asked, 2);
    for (let times = 0; times < 10; times += 1) assert.equal(held.find('o'), known);
    assert.equal(store.asked, 2);
    at.ms += 5_000;
    assert.equal(await held.find('o'), known);
    assert.equal(store.asked, 3);
    assert.equal(await held.find('nobody knows it'), 'unavailable');
    at.ms += 1_800_000;
    assert.equal(await held.find('o'), known, 'half an hour');
    at.ms += 1_800_000;
    assert.equal(await held.find('o'), 'unavailable');
  });

  test('an answer that comes after its deadline serves those who ask next', async ({ mock }) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { promise, resolve } = Promise.withResolvers<typeof SET>();
    let asked = 0;
    const clock: Clock = { nowMs: () => 1_000, monotonicMs: () => 1_000 };
    const slow = new HeldOwnKeys(() => {
      asked += 1;
      return promise;
    }, clock);
    const late = slow.find('o');
    mock.timers.tick(2_000);
    assert.equal(await late, 'unavailable');
    resolve(SET);
    await promise;
    assert.ok(!(slow.find('o') instanceof Promise));
    assert.equal(asked, 1);
  });

  test('of an answer that comes after its deadline and after a change nothing is kept', async ({ mock }) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { promise, resolve } = Promise.withResolvers<typeof SET>();
    const clock: Clock = { nowMs: () => 1_000, monotonicMs: () => 1_000 };
    const slow = new HeldOwnKeys(() => promise, clock);
    const late = slow.find('o');
    mock.timers.tick(2_000);
    await late;
    slow.forget('o');
    resolve(SET);
    await promise;
    assert.ok(slow.find('o') instanceof Promise);
  });

  test('a change is read at once, also one that comes while the keys are being read', async () => {
    const { held, store } = heldAt();
    const reading = held.find('o');
    held.forget('o');
    await reading;
    await held.find('o');
    assert.equal(store.asked, 2);
    held.forget('o');
    await held.find('o');
    assert.equal(store.asked, 3);
  });

  test('are forgotten with their pauses where changes may have been missed', async () => {
    const { held, store, at } = heldAt();
    await held.find('o');
    held.pauses.begin(USE, 'quota', null, at.ms);
    held.forgetAll();
    assert.equal(held.pauses.find(USE, at.ms), null);
    await held.find('o');
    assert.equal(store.asked, 2);
  });
});
