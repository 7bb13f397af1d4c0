// The turn's clock: one reading for all of a turn, a new one whenever the event loop may have waited.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../src/platform/clock.ts';
import { TurnClock } from '../../src/platform/turn-clock.ts';
import { atTurnEnd } from '../../src/platform/turn-end.ts';

/** Another time with every reading. */
function countingClock(): Clock & { readings: number } {
  const clock = { readings: 0, nowMs: () => ++clock.readings, monotonicMs: () => ++clock.readings };
  return clock;
}

const roundsOfLoop = (): number => performance.nodeTiming.uvMetricsInfo.loopCount;

describe('turn clock', () => {
  test('one reading in a turn, of each time; the next turn has its own', async () => {
    const clock = countingClock();
    const turn = new TurnClock(clock);
    assert.deepEqual([turn.nowMs(), turn.monotonicMs(), turn.nowMs(), turn.monotonicMs()], [1, 2, 1, 2]);
    await Promise.resolve();
    assert.equal(turn.monotonicMs(), 2);
    await nextTurn();
    assert.deepEqual([turn.monotonicMs(), turn.nowMs(), turn.monotonicMs()], [3, 4, 3]);
  });

  test('read anew after every wait, wherever it was read before', async () => {
    const turn = new TurnClock(countingClock());
    const waits: (() => Promise<unknown>)[] = [
      () => sleep(2),
      () =>
        new Promise<void>((resolve) => atTurnEnd(() => resolve())).then(() => void turn.nowMs()).then(() => sleep(2)),
      () => new Promise<void>((resolve) => setImmediate(() => resolve(void turn.nowMs()))).then(() => sleep(2)),
      () => new Promise<void>((resolve) => atTurnEnd(() => resolve(void turn.nowMs()))).then(() => sleep(2)),
      () => new Promise<void>((resolve) => setTimeout(() => resolve(void turn.nowMs()), 1)).then(() => sleep(2)),
    ];
    for (const [index, wait] of waits.entries()) {
      let last = turn.nowMs();
      for (let round = 0; round < 3; round++) {
        const rounds = roundsOfLoop();
        // A timer that is due before the timers of a turn are done is served among them: nothing has waited then.
        while (roundsOfLoop() === rounds) await wait();
        const next = turn.nowMs();
        assert.ok(next > last, `wait ${index}`);
        last = next;
      }
    }
  });

  test('what a socket brings after a wait is not told the time before it', async (context) => {
    const turn = new TurnClock(countingClock());
    const server = createServer((_request, response) => response.end(String(turn.nowMs())));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    context.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    for (let round = 0; round < 5; round++) {
      const before = turn.nowMs();
      assert.ok(Number(await (await fetch(`http://127.0.0.1:${port}/`)).text()) > before);
      await sleep(2);
    }
  });

  test('work at the end of a turn has one reading, and what it leaves for the next has another', async () => {
    const clock = countingClock();
    const turn = new TurnClock(clock);
    const read: number[] = [turn.nowMs()];
    atTurnEnd(() => {
      read.push(turn.nowMs(), turn.nowMs());
      atTurnEnd(() => read.push(turn.nowMs()));
    });
    atTurnEnd(() => read.push(turn.nowMs()));
    await nextTurn();
    await nextTurn();
    assert.deepEqual(read, [1, 2, 2, 2, 3]);
  });
});
