// Execution ids: RFC 9562 layout, order within a process, and what is taken for one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource, executionIdTimeMs } from '../../src/platform/execution-id.ts';

const LAYOUT = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function clockAt(nowMs: number): { nowMs(): number; monotonicMs(): number; set(ms: number): void } {
  let now = nowMs;
  return {
    nowMs: () => now,
    monotonicMs: () => now,
    set: (ms) => {
      now = ms;
    },
  };
}

describe('createExecutionIdSource', () => {
  test('lays bits out as the RFC does: time, version, counter, variant, randomness', () => {
    // The timestamp of the RFC's own example (appendix A.6).
    const makeId = createExecutionIdSource(clockAt(0x017f22e279b0), (bytes) => bytes.fill(0xff));
    assert.equal(makeId(), '017f22e2-79b0-77ff-bfff-ffffffffffff');
    const zeroes = createExecutionIdSource(clockAt(0x017f22e279b0), (bytes) => bytes.fill(0));
    assert.equal(zeroes(), '017f22e2-79b0-7000-8000-000000000000');
  });

  test('grows within a millisecond, past the counter, and while the clock steps back', () => {
    const clock = clockAt(1_700_000_000_000);
    // Seeds at half the range: 2,049 ids fit into a millisecond.
    const makeId = createExecutionIdSource(clock, (bytes) => bytes.fill(0xff));
    let last = '';
    for (let made = 0; made < 20_000; made++) {
      if (made === 7_000) clock.set(1_600_000_000_000);
      if (made === 14_000) clock.set(1_700_000_100_000);
      const id = makeId();
      assert.match(id, LAYOUT);
      assert.ok(id > last, `${id} after ${last}`);
      last = id;
    }
    assert.equal(executionIdTimeMs(last), 1_700_000_100_002);
  });

  test('never repeats, also between processes that share a millisecond', () => {
    const clock = clockAt(1_700_000_000_000);
    const sources = [createExecutionIdSource(clock), createExecutionIdSource(clock)];
    const seen = new Set<string>();
    for (let made = 0; made < 50_000; made++) for (const makeId of sources) seen.add(makeId());
    assert.equal(seen.size, 100_000);
  });

  test('carries the time it was made', () => {
    const before = systemClock.nowMs();
    const madeMs = executionIdTimeMs(createExecutionIdSource(systemClock)());
    assert.ok(madeMs !== null && madeMs >= Math.floor(before) && madeMs <= systemClock.nowMs());
  });

  test('refuses a clock outside 48 bits', () => {
    assert.throws(createExecutionIdSource(clockAt(2 ** 48)), { name: 'AssertionFault' });
  });
});

describe('executionIdTimeMs', () => {
  test('reads lower and upper case', () => {
    assert.equal(executionIdTimeMs('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'), 0x017f22e279b0);
    assert.equal(executionIdTimeMs('017F22E2-79B0-7CC3-98C4-DC0C0C07398F'), 0x017f22e279b0);
  });
  const others = [
    '',
    'x',
    '017f22e279b07cc398c4dc0c0c07398f',
    '017f22e2-79b0-4cc3-98c4-dc0c0c07398f',
    '017f22e2-79b0-7cc3-18c4-dc0c0c07398f',
    '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n',
    ' 017f22e2-79b0-7cc3-98c4-dc0c0c07398',
    '{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}',
    "017f22e2-79b0-7cc3-98c4-dc0c0c07398'",
    'a'.repeat(100_000),
  ];
  for (const id of others)
    test(`takes ${JSON.stringify(id.slice(0, 40))} for no execution`, () => assert.equal(executionIdTimeMs(id), null));
});
