// The embedded ClickHouse gives way: its threads, also those that it starts later, have a lower priority than the main
// thread, which posts.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, before, test } from 'node:test';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';

/** Of the embedded engine's threads (embedded-clickhouse.ts). */
const NICENESS = 10;

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
});
after(() => clickhouse.close());

/** Of all threads but the main one. */
function priorities(): Map<number, number> {
  const seen = new Map<number, number>();
  for (const thread of readdirSync('/proc/self/task').map(Number)) {
    try {
      if (thread !== process.pid) seen.set(thread, getPriority(thread));
    } catch {
      // It ended meanwhile.
    }
  }
  return seen;
}

test('every thread but the main one gives way, and so do those that statements start', {
  skip:
    (process.platform !== 'linux' && 'only Linux gives a thread a priority of its own') ||
    (getPriority() >= NICENESS && 'a process that gives way itself has no threads that give way to it'),
}, async () => {
  const main = getPriority(process.pid);
  const early = priorities();
  // The engine keeps threads of the statements before it: this one wants more than are idle.
  const counting = selectRows(
    clickhouse.client,
    'SELECT number % 10 AS digit, count() AS numbers FROM numbers_mt(3e7) GROUP BY digit SETTINGS max_threads = 32',
  );
  const during: Map<number, number>[] = [];
  let isCounting = true;
  void counting.finally(() => {
    isCounting = false;
  });
  do {
    during.push(priorities());
    await new Promise((resolve) => setImmediate(resolve));
  } while (isCounting);
  assert.equal((await counting).length, 10);
  const all = new Map([early, ...during].flatMap((seen) => [...seen]));
  assert.ok(all.size > early.size, 'the statement has started threads');
  assert.equal(getPriority(process.pid), main);
  assert.deepEqual(new Set(all.values()), new Set([NICENESS]));
});
