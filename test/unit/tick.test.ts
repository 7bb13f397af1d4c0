// What is left until the end of a tick of the event loop: in which order it is done, and that none of it is lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { atTickEnd, isTickEnd, tickCount } from '../../src/platform/event-loop/tick.ts';

const done: string[] = [];

async function ticks(count: number): Promise<string[]> {
  for (let tick = 0; tick < count; tick++) await nextTick();
  return done.splice(0);
}

describe('work at the end of a tick', () => {
  test('is done in the order in which it was left, once, and knows where it runs', async () => {
    atTickEnd(() => done.push(`first ${isTickEnd()}`));
    atTickEnd(() => done.push('second'));
    assert.equal(isTickEnd(), false);
    assert.deepEqual(done, []);
    assert.deepEqual(await ticks(1), ['first true', 'second']);
    assert.deepEqual(await ticks(2), []);
  });

  test('what it leaves for the end of a tick is done at the end of the next', async () => {
    atTickEnd(() => {
      done.push('this');
      atTickEnd(() => done.push('next'));
    });
    assert.deepEqual(await ticks(1), ['this']);
    assert.deepEqual(await ticks(1), ['next']);
  });

  test('ticks with something to do are counted, and no others', async () => {
    const before = tickCount();
    await ticks(3);
    assert.equal(tickCount(), before);
    atTickEnd(() => undefined);
    await ticks(3);
    assert.equal(tickCount(), before + 1);
  });
});
