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

  test('who is known does not wait for a store that did not answer last, and is asked about meanwhile', async () => {
    const at = { ms: 1_000 };
    const clock: Clock = { nowMs: () => at.ms, monotonicMs: () => at.ms };
    let answer: () => Promise<typeof SET> = async () => SET;
    let asked = 0;
    const held = new HeldOwnKeys(() => {
      asked += 1;
      return answer();
    }, clock);
    const [known, other] = [await held.find('o'), await held.find('other')];
    answer = () => Promise.reject(new Error('away'));
    at.ms += 60_000;
    assert.equal(await held.find('o'), known);
    const { promise, resolve } = Promise.withResolvers<typeof SET>();
    answer = () => promise;
    at.ms += 5_000;
    for (let times = 0; times < 3; times += 1)
      assert.deepEqual([held.find('o'), held.find('other')], [known, other], 'at once');
    assert.equal(asked, 5);
    assert.ok(held.find('nobody knows it') instanceof Promise);
    resolve(SET);
    await promise;
    await new Promise(setImmediate);
    assert.notEqual(held.find('o'), known);
  });

  test('are not forgotten for idleness as long as they serve where they cannot be read again', async () => {
    const { held, store, at } = heldAt();
    const known = await held.find('o');
    store.isAway = true;
    at.ms += 3_599_999;
    held.forgetIdle(at.ms);
    assert.equal(await held.find('o'), known);
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

  test('where changes may have been missed are read again, and serve if they cannot be', async () => {
    const { held, store, at } = heldAt();
    const known = await held.find('o');
    held.pauses.begin(USE, 'quota', null, at.ms);
    store.isAway = true;
    held.markAllUncertain();
    assert.equal(held.pauses.find(USE, at.ms), null);
    assert.equal(await held.find('o'), known, 'still away after all');
    store.isAway = false;
    held.markAllUncertain();
    const anew = held.find('o');
    assert.ok(anew instanceof Promise, 'nobody is served from memory who may have changed');
    assert.notEqual(await anew, known);
    assert.equal(store.asked, 3);
  });

  test('a question from before that fails later makes nothing serve that may have changed', async () => {
    const at = { ms: 1_000 };
    const clock: Clock = { nowMs: () => at.ms, monotonicMs: () => at.ms };
    let answer: () => Promise<typeof SET> = async () => SET;
    const held = new HeldOwnKeys(() => answer(), clock);
    await held.find('o');
    const { promise, reject } = Promise.withResolvers<typeof SET>();
    answer = () => promise;
    at.ms += 60_000;
    const asking = held.find('o');
    held.markAllUncertain();
    reject(new Error('the connection ended'));
    await asking;
    answer = async () => SET;
    assert.ok(held.find('o') instanceof Promise);
  });

  test('are forgotten with their pauses where a change does not say whose they are', async () => {
    const { held, store, at } = heldAt();
    await held.find('o');
    held.pauses.begin(USE, 'quota', null, at.ms);
    held.forgetAll();
    assert.equal(held.pauses.find(USE, at.ms), null);
    store.isAway = true;
    assert.equal(await held.find('o'), 'unavailable');
    assert.equal(store.asked, 2);
  });
});
