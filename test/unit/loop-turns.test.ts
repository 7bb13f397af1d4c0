// Turns of the event loop are given to one at a time, in order, and whatever else is due comes in between.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoopTurns } from '../../src/platform/event-loop/loop-turns.ts';

test('each goes on in a turn of its own, in order', async () => {
  const turns = new LoopTurns({ monotonicMs: () => 0 });
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

test('after each nobody goes on for three times as long as it took', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  const turns = new LoopTurns({ monotonicMs: () => nowMs });
  await turns.next();
  nowMs += 20;
  let isOn = false;
  const next = turns.next().then(() => (isOn = true));
  await twoTurns();
  context.mock.timers.tick(59);
  await twoTurns();
  assert.equal(isOn, false);
  context.mock.timers.tick(1);
  await next;
});

async function twoTurns(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
