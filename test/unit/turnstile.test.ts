// The turnstile of report statements: so many at once, so many waiting, and nobody in the way who has left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turnstile, TurnstileFull } from '../../jobs/reports/turnstile.ts';

test('whoever leaves while they wait gives up their place, and is not served', async () => {
  const turnstile = new Turnstile({ atOnce: 1, waitingMax: 1 });
  const [staying, leaving] = [new AbortController(), new AbortController()];
  const served: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = turnstile.run(staying.signal, async () => {
    served.push('first');
    await gate.promise;
  });
  const second = turnstile.run(leaving.signal, async () => served.push('second'));
  await assert.rejects(
    turnstile.run(staying.signal, async () => served.push('too many')),
    TurnstileFull,
  );
  leaving.abort(new Error('gone'));
  await assert.rejects(second, /gone/);
  const third = turnstile.run(staying.signal, async () => served.push('third'));
  gate.resolve();
  await Promise.all([first, third]);
  await assert.rejects(
    turnstile.run(leaving.signal, async () => served.push('late')),
    /gone/,
  );
  // Who leaves once they are served takes nothing along.
  await turnstile.run(staying.signal, async () => served.push('fourth'));
  staying.abort(new Error('gone'));
  assert.deepEqual(served, ['first', 'third', 'fourth']);
});
