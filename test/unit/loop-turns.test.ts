// Turns of the event loop are given to one at a time, in order, and whatever else is due comes in between.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoopTurns } from '../../src/platform/loop-turns.ts';

test('each goes on in a turn of its own, in order', async () => {
  const turns = new LoopTurns();
  const seen: string[] = [];
  let isOver = false;
  const count = (): void => {
    seen.push('|');
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const work = async (name: string): Promise<void> => {
    for (let piece = 0; piece < 3; piece += 1) {
      await turns.next();
      seen.push(name);
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  isOver = true;
  assert.equal(seen.join('').replace(/\|+/g, '|'), '|a|b|c|a|b|c|a|b|c');
});
