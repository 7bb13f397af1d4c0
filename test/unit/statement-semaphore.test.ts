// The semaphore of report statements: so many at once, so many waiting, and nobody in the way who has left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SemaphoreFull, StatementSemaphore } from '../../jobs/reports/statement-semaphore.ts';

test('whoever leaves while they wait gives up their place, and is not served', async () => {
  const semaphore = new StatementSemaphore({ atOnce: 1, waitingMax: 1 });
  const [staying, leaving] = [new AbortController(), new AbortController()];
  const served: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = semaphore.run(staying.signal, async () => {
    served.push('first');
    await gate.promise;
  });
  const second = semaphore.run(leaving.signal, async () => served.push('second'));
  await assert.rejects(
    semaphore.run(staying.signal, async () => served.push('too many')),
    SemaphoreFull,
  );
  leaving.abort(new Error('gone'));
  await assert.rejects(second, /gone/);
  const third = semaphore.run(staying.signal, async () => served.push('third'));
  gate.resolve();
  await Promise.all([first, third]);
  await assert.rejects(
    semaphore.run(leaving.signal, async () => served.push('late')),
    /gone/,
  );
  // Who leaves once they are served takes nothing along.
  await semaphore.run(staying.signal, async () => served.push('fourth'));
  staying.abort(new Error('gone'));
  assert.deepEqual(served, ['first', 'third', 'fourth']);
});
