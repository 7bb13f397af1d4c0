// Runs suites within a test, with settings other than those of the run that contains the test.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const RUNNER = fileURLToPath(new URL('../run.ts', import.meta.url));

/** Runs them in their short form, and not as a part of this run, to whose runner they would report otherwise. */
export async function assertSuitesPass(
  suites: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const { NODE_TEST_CONTEXT: _, TOLLGATE_TEST_AT_LENGTH: __, ...rest } = process.env;
  const child = spawn(process.execPath, [RUNNER, ...suites], {
    env: { ...rest, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-100_000)));
  const code = await new Promise((resolve) => child.once('close', resolve));
  assert.equal(code, 0, said.slice(said.indexOf('failing tests')));
}
