// The second transport: the suites of the relay, the replays of recordings and the isolation run once more, with undici
// in the place of our own client.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const RUNNER = fileURLToPath(new URL('../run.ts', import.meta.url));
const SUITES = [
  'test/isolation/isolation.test.ts',
  'test/integration/relay-*.test.ts',
  'test/integration/stream-usage.test.ts',
  'test/integration/early-answers.long.test.ts',
  'test/integration/body-in-chunks.test.ts',
  'test/integration/outcome-matrix.test.ts',
  'test/integration/hostile-usage.test.ts',
  'test/integration/cooldown-scope.test.ts',
  'test/integration/generation-faults.test.ts',
  'test/integration/provider-shapes.long.test.ts',
  'test/contract/4.*.test.ts',
  'test/e2e/clients-*.test.ts',
];

test('every suite of the relay passes over undici', async () => {
  // In short, and not as a part of this run, whose runner it would otherwise report to.
  const { NODE_TEST_CONTEXT: _, TOLLGATE_TEST_AT_LENGTH: __, ...rest } = process.env;
  const child = spawn(process.execPath, [RUNNER, ...SUITES], {
    env: { ...rest, UPSTREAM_CLIENT: 'undici' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-100_000)));
  const code = await new Promise((resolve) => child.once('close', resolve));
  assert.equal(code, 0, said.slice(said.indexOf('failing tests')));
});
