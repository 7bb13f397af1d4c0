// The worker pool on real threads: deadlines that kill, caps that hold, crashes that stay inside, nothing left after
// close.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { begunFlag } from '../../src/platform/begun-flag.ts';
import { createLog } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import { pause } from '../support/waiting.ts';

const directory = new URL('../support/worker-tasks/', import.meta.url);
const GENEROUS = { bytes: 1, deadlineMs: 60_000 };
const SOON = { bytes: 1, deadlineMs: 300 };

type TestTask = 'echo' | 'spin' | 'fail' | 'take';

function startPool(
  context: TestContext,
  options: { threads?: number; queueBytesMax?: number; idleTimeoutMs?: number } = {},
): { pool: WorkerPool<TestTask>; metrics: MetricsRegistry } {
  const metrics = new MetricsRegistry();
  const log = createLog({ level: 'silent', process: 'test' });
  const pool = new WorkerPool<TestTask>({
    threads: options.threads ?? 1,
    queueBytesMax: options.queueBytesMax ?? 1000,
    log,
    metrics,
    directory,
    idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
  });
  context.after(() => pool.close());
  return { pool, metrics };
}

function threadsOf(metrics: MetricsRegistry): number {
  return Number(/^tollgate_worker_threads (\d+)$/m.exec(metrics.render())?.[1]);
}

describe('WorkerPool', () => {
  test('runs a task and gives its value', async (context) => {
    const { pool, metrics } = startPool(context);
    assert.deepEqual(await pool.run('echo', { a: [1, 'b', null] }, GENEROUS), {
      ok: true,
      value: { a: [1, 'b', null] },
    });
    assert.match(metrics.render(), /tollgate_worker_tasks_total\{task="echo",result="ok"\} 1/);
    assert.match(metrics.render(), /tollgate_worker_queue_bytes 0/);
  });

  test('moves buffers that are given away', async (context) => {
    const { pool } = startPool(context);
    const bytes = new Uint8Array([1, 2, 3]);
    const result = await pool.run<Uint8Array>('echo', bytes, { ...GENEROUS, transfer: [bytes.buffer] });
    assert.ok(result.ok);
    assert.deepEqual([...result.value], [1, 2, 3]);
    assert.equal(bytes.byteLength, 0);
  });

  test('kills a task that loops at its deadline, and the next task works', async (context) => {
    const { pool, metrics } = startPool(context);
    const spinning = pool.run('spin', null, SOON);
    const waiting = pool.run('echo', 'next', GENEROUS);
    assert.deepEqual(await spinning, { ok: false, reason: 'deadline' });
    assert.deepEqual(await waiting, { ok: true, value: 'next' });
    assert.match(metrics.render(), /tollgate_worker_tasks_total\{task="spin",result="deadline"\} 1/);
  });

  test('counts waiting against the deadline', async (context) => {
    const { pool } = startPool(context);
    const results = await Promise.all([
      pool.run('spin', null, { bytes: 1, deadlineMs: 450 }),
      pool.run('echo', 'late', SOON),
    ]);
    assert.deepEqual(results, [
      { ok: false, reason: 'deadline' },
      { ok: false, reason: 'deadline' },
    ]);
  });

  test('counts the deadline of the work from when the task runs', async (context) => {
    const { pool } = startPool(context);
    const begun = begunFlag();
    const work = { begun, deadlineMs: 100 };
    assert.deepEqual(await pool.run('spin', begun, { ...GENEROUS, work }), { ok: false, reason: 'deadline' });
    assert.equal(begun[0], 1);
    const other = { begun: begunFlag(), deadlineMs: 100 };
    assert.deepEqual(await pool.run('echo', 'no word of it', { ...GENEROUS, work: other }), {
      ok: true,
      value: 'no word of it',
    });
  });

  test('does not count as time to work that this process stood still', async (context) => {
    const { pool } = startPool(context);
    const begun = begunFlag();
    const work = { begun, deadlineMs: 100 };
    const taking = pool.run('take', { begun, ms: 60 }, { ...GENEROUS, work });
    while (begun[0] !== 1) await pause(1);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
    assert.equal((await taking).ok, true);
  });

  test('turns away what does not fit its bytes, and takes more when they are free', async (context) => {
    const { pool } = startPool(context, { queueBytesMax: 100 });
    const first = pool.run('echo', 1, { ...GENEROUS, bytes: 60 });
    assert.deepEqual(await pool.run('echo', 2, { ...GENEROUS, bytes: 41 }), { ok: false, reason: 'queue_full' });
    const third = pool.run('echo', 3, { ...GENEROUS, bytes: 40 });
    assert.deepEqual(await Promise.all([first, third]), [
      { ok: true, value: 1 },
      { ok: true, value: 3 },
    ]);
    assert.deepEqual(await pool.run('echo', 4, { ...GENEROUS, bytes: 100 }), { ok: true, value: 4 });
    assert.deepEqual(await pool.run('echo', 5, { ...GENEROUS, bytes: 101 }), { ok: false, reason: 'queue_full' });
  });

  for (const how of ['throw', 'exit', 'uncaught', 'memory']) {
    test(`answers \`crashed\` when a task ends by ${how}, and the next task works`, async (context) => {
      const { pool } = startPool(context);
      assert.deepEqual(await pool.run('fail', how, GENEROUS), { ok: false, reason: 'crashed' });
      assert.deepEqual(await pool.run('echo', how, GENEROUS), { ok: true, value: how });
    });
  }

  test('answers `crashed` for a task that cannot be sent', async (context) => {
    const { pool } = startPool(context);
    assert.deepEqual(await pool.run('echo', () => {}, GENEROUS), { ok: false, reason: 'crashed' });
    assert.deepEqual(await pool.run('echo', 'fine', GENEROUS), { ok: true, value: 'fine' });
  });

  test('runs many more tasks than threads, in order of arrival on one thread', async (context) => {
    const { pool } = startPool(context);
    const order: number[] = [];
    const tasks = Array.from({ length: 100 }, async (_, index) => {
      const result = await pool.run<number>('echo', index, GENEROUS);
      if (result.ok) order.push(result.value);
    });
    await Promise.all(tasks);
    assert.deepEqual(
      order,
      Array.from({ length: 100 }, (_, index) => index),
    );
  });

  test('lets sources take turns, however much one of them asks for', async (context) => {
    const { pool } = startPool(context);
    const done: string[] = [];
    const ask = async (source: string): Promise<void> => {
      const result = await pool.run('echo', source, { ...GENEROUS, source });
      assert.ok(result.ok);
      done.push(source);
    };
    const flood = Array.from({ length: 20 }, () => ask('much'));
    await Promise.all([...flood, ask('little')]);
    assert.ok(done.indexOf('little') <= 2, done.join());
  });

  test('leaves a thread to the others where there are several', async (context) => {
    const { pool } = startPool(context, { threads: 2 });
    const spinning = [1, 2, 3].map(() => pool.run('spin', null, { ...SOON, source: 'slow' }));
    assert.equal((await pool.run('echo', 1, { ...GENEROUS, source: 'other' })).ok, true);
    for (const one of spinning) assert.deepEqual(await one, { ok: false, reason: 'deadline' });
  });

  test('lets one source have a quarter of the bytes, or one task', async (context) => {
    const { pool } = startPool(context, { queueBytesMax: 1000 });
    const ask = (source: string, bytes: number) => pool.run('echo', 1, { bytes, deadlineMs: 60_000, source });
    const [large, second, other, small, more] = await Promise.all([
      ask('large', 600),
      ask('large', 1),
      ask('other', 200),
      ask('other', 50),
      ask('other', 1),
    ]);
    assert.deepEqual([large.ok, other.ok, small.ok], [true, true, true]);
    for (const refused of [second, more]) assert.deepEqual(refused, { ok: false, reason: 'queue_full' });
  });

  test('lets idle threads go but for one, which has what it has loaded, and starts new ones', {
    timeout: 30_000,
  }, async (context) => {
    const { pool, metrics } = startPool(context, { threads: 2, idleTimeoutMs: 10 });
    assert.equal(threadsOf(metrics), 0);
    const results = Promise.all([pool.run('echo', 1, GENEROUS), pool.run('echo', 2, GENEROUS)]);
    await Promise.resolve();
    assert.equal(threadsOf(metrics), 2);
    await results;
    while (threadsOf(metrics) > 1) await new Promise((resolve) => setTimeout(resolve, 20));
    // Many times the idle time: the last one stays.
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(threadsOf(metrics), 1);
    const again = Promise.all([pool.run('echo', 3, GENEROUS), pool.run('echo', 4, GENEROUS)]);
    await Promise.resolve();
    assert.equal(threadsOf(metrics), 2);
    assert.deepEqual(await again, [
      { ok: true, value: 3 },
      { ok: true, value: 4 },
    ]);
  });

  test('closes with tasks open: they are answered, and later ones too', async (context) => {
    const { pool, metrics } = startPool(context);
    const open = [pool.run('spin', null, GENEROUS), pool.run('echo', 1, GENEROUS)];
    await new Promise((resolve) => setTimeout(resolve, 200));
    await pool.close();
    await pool.close();
    assert.deepEqual(await Promise.all(open), [
      { ok: false, reason: 'crashed' },
      { ok: false, reason: 'crashed' },
    ]);
    assert.deepEqual(await pool.run('echo', 2, GENEROUS), { ok: false, reason: 'crashed' });
    assert.equal(threadsOf(metrics), 0);
  });
});
