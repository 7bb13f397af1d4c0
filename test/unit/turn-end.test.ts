// What is left until the end of a turn of the event loop: in which order it is done, and that none of it is lost.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { atTurnEnd, isTurnEnd, TurnWork } from '../../src/platform/turn-end.ts';

const done: string[] = [];
const first = new TurnWork<string>((item) => {
  done.push(`first ${item}`);
  if (item === 'more') second.add('from first');
  if (item === 'again') first.add('later');
});
const second = new TurnWork<string>((item) => {
  done.push(`second ${item} ${isTurnEnd()}`);
  if (item === 'end') atTurnEnd(() => done.push(`end ${isTurnEnd()}`));
});

async function turns(count: number): Promise<string[]> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
  return done.splice(0);
}

describe('work at the end of a turn', () => {
  test('by kind, in the order in which the kinds were made, and before what is called at the end', async () => {
    atTurnEnd(() => done.push('called'));
    second.add('a');
    first.add('b');
    second.add('c');
    first.add('d');
    assert.deepEqual(done, []);
    assert.deepEqual(await turns(1), ['first b', 'first d', 'second a false', 'second c false', 'called']);
    assert.deepEqual(await turns(2), []);
  });

  test('what it adds to a later kind, and leaves for the end, is part of the same turn; what it adds to its own, of the next', async () => {
    first.add('more');
    second.add('end');
    first.add('again');
    assert.deepEqual(await turns(1), [
      'first more',
      'first again',
      'second end false',
      'second from first false',
      'end true',
    ]);
    assert.deepEqual(await turns(2), ['first later']);
  });

  test('what is called at the end of a turn leaves its work to the next', async () => {
    atTurnEnd(() => first.add('x'));
    assert.deepEqual(await turns(1), []);
    assert.deepEqual(await turns(2), ['first x']);
  });
});
