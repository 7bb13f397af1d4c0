// A process that exits with the embedded ClickHouse open ends at once: no destructor of the engine runs beside its
// threads, where it crashes or waits for ever. Once the engine is closed an exit has its code.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../support/free-port.ts';
import { startTestPostgres } from '../support/postgres.ts';
import { RUN_ENVIRONMENT } from '../support/run-environment.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const SCRIPT = join(import.meta.dirname, '../support/exit-with-open-engine.ts');

async function endOf(context: TestContext, state: 'open' | 'closed'): Promise<unknown[]> {
  const directory = join(temporaryDirectory(context), 'clickhouse');
  return once(spawn(process.execPath, [SCRIPT, directory, state], { stdio: 'inherit' }), 'exit');
}

test('with a statement under way, though one of two connections is closed, an exit is a kill', async (context) => {
  assert.deepEqual(await endOf(context, 'open'), [null, 'SIGKILL']);
});

test('with all connections closed an exit has its code', async (context) => {
  assert.deepEqual(await endOf(context, 'closed'), [1, null]);
});

test('a fault that nobody handles is told all the same', async (context) => {
  const directory = join(temporaryDirectory(context), 'clickhouse');
  const child = spawn(process.execPath, [SCRIPT, directory, 'fault'], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL']);
  assert.match(said, /Error: with the engine open/);
});

test('jobs that is told to end while it opens the engine closes it, and ends in order', async (context) => {
  const server = await startTestPostgres();
  context.after(() => server.stop());
  const dataDirectory = temporaryDirectory(context);
  const [MASTER_KEY, ADMIN_TOKEN] = [1, 2].map(() => randomBytes(32).toString('base64'));
  const child = spawn(process.execPath, [COMMAND, 'jobs'], {
    env: {
      ...process.env,
      ...RUN_ENVIRONMENT,
      MASTER_KEY,
      ADMIN_TOKEN,
      DATABASE_URL: await server.createDatabase(),
      DATA_DIR: dataDirectory,
      ADMIN_PORT: String(await findFreePort()),
    },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  await waitFor('the engine to be opened', () => existsSync(join(dataDirectory, 'clickhouse')), Boolean);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
