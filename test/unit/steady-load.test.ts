// What a steady load says of answers that should not have been.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { UNLIMITED } from '../e2e/kill-world.ts';
import { SteadyLoad } from '../e2e/steady-load.ts';

test('problems of a load are counted by what they are, with the minutes in which they were', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end('{"error":{"code":"billing_unavailable","message":"none"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const load = new SteadyLoad<'only'>(`http://127.0.0.1:${port}`, { rate: 1_000, seed: 1 });
  const asker = { ...UNLIMITED, clients: 0, delayMsMax: 2, slug: 'acme', key: 'none', creditPico: null, share: 1 };
  await load.run('only', [asker], 0.005);
  await load.end();
  server.close();
  const problems = load.countProblems(({ response }) => `${response.organization}: ${response.status}`);
  assert.deepEqual(problems, ['5 × acme: 503, in minute 0']);
  assert.deepEqual(
    load.countProblems(() => null),
    [],
  );
});
