// Pieces of long work run one in a tick, in order, and whatever else is due comes in between.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TimeSlices } from '../../src/platform/event-loop/time-slices.ts';

test('each piece runs in a tick of its own, in order', async () => {
  const slices = new TimeSlices({ monotonicMs: () => 0 });
  const seen: string[] = [];
  let isOver = false;
  const count = (): void => {
    seen.push('|');
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const work = async (name: string): Promise<void> => {
    for (let piece = 0; piece < 3; piece += 1) {
      await slices.next();
      seen.push(name);
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  isOver = true;
  assert.equal(seen.join('').replace(/\|+/g, '|'), '|a|b|c|a|b|c|a|b|c');
});

test('after each piece no other runs for three times as long as it took', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  const slices = new TimeSlices({ monotonicMs: () => nowMs });
  await slices.next();
  nowMs += 20;
  let isOn = false;
  const next = slices.next().then(() => (isOn = true));
  await twoTicks();
  context.mock.timers.tick(59);
  await twoTicks();
  assert.equal(isOn, false);
  context.mock.timers.tick(1);
  await next;
});

async function twoTicks(): Promise<void> {
  for (let tick = 0; tick < 2; tick += 1) await new Promise((resolve) => setImmediate(resolve));
}
