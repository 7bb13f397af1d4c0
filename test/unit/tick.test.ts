// What is left until the end of a tick of the event loop: in which order it is done, and that none of it is lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { atTickEnd, isTickEnd, TickWork } from '../../src/platform/tick.ts';

const done: string[] = [];
const first = new TickWork<string>((item) => {
  done.push(`first ${item}`);
  if (item === 'more') second.add('from first');
  if (item === 'again') first.add('later');
});
const second = new TickWork<string>((item) => {
  done.push(`second ${item} ${isTickEnd()}`);
  if (item === 'end') atTickEnd(() => done.push(`end ${isTickEnd()}`));
});

async function ticks(count: number): Promise<string[]> {
  for (let tick = 0; tick < count; tick++) await nextTick();
  return done.splice(0);
}

describe('work at the end of a tick', () => {
  test('by kind, in the order in which the kinds were made, and before what is called at the end', async () => {
    atTickEnd(() => done.push('called'));
    second.add('a');
    first.add('b');
    second.add('c');
    first.add('d');
    assert.deepEqual(done, []);
    assert.deepEqual(await ticks(1), ['first b', 'first d', 'second a false', 'second c false', 'called']);
    assert.deepEqual(await ticks(2), []);
  });

  test(
    'what it adds to a later kind, and leaves for the end, is part of the same tick; what it adds to its ' +
      'own, of the next',
    async () => {
      first.add('more');
      second.add('end');
      first.add('again');
      assert.deepEqual(await ticks(1), [
        'first more',
        'first again',
        'second end false',
        'second from first false',
        'end true',
      ]);
      assert.deepEqual(await ticks(2), ['first later']);
    },
  );

  test('what is called at the end of a tick leaves its work to the next', async () => {
    atTickEnd(() => first.add('x'));
    assert.deepEqual(await ticks(1), []);
    assert.deepEqual(await ticks(2), ['first x']);
  });
});
