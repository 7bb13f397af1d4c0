// A process that exits with the embedded ClickHouse open ends at once: no destructor of the engine runs beside its
// threads, where it crashes or waits for ever. Once the engine is closed an exit has its code.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../support/temporary-directory.ts';

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
