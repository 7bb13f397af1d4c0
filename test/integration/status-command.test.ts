// `tollgate status` where gateways and jobs run without a supervisor: their beats in the database tell of them.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { type BeatingProcess, writeBeat } from '../../src/storage/postgres/processes/beats.ts';
import { runCommand } from '../support/gateway.ts';
import { openTestDatabase } from '../support/postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const NO_FIGURES = { counts: {}, gauges: {}, isLast: false };

test('processes of this machine without a supervisor: who runs, who is missing, how the jobs went', async (context) => {
  const database = await openTestDatabase();
  context.after(() => database.close());
  const status = () =>
    runCommand(['status'], {
      DATABASE_URL: database.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      DATA_DIR: temporaryDirectory(context),
    });
  const beat = (kind: BeatingProcess['kind'], machine: string) => {
    const process = { machine, kind, pid: 7, startedAtMs: Date.now() - 60_000, version: '0.0.0', epoch: null };
    return writeBeat(database.postgres, process, { ...NO_FIGURES, atMs: Date.now() });
  };

  const none = await status();
  assert.equal(none.exitCode, 1);
  assert.match(
    none.output,
    /^no supervisor is running \([^\n]*\)\nnot running on [^\n]*: no gateway and no jobs process re/,
  );

  await beat('gateway', hostname());
  await beat('jobs', 'another');
  const half = await status();
  assert.equal(half.exitCode, 1);
  assert.match(
    half.output,
    /\n\S+ {2}gateway 7 {2}0\.0\.0 {2}runs[^\n]*\nnot running on [^\n]*: no jobs process reported in/,
  );

  await beat('jobs', hostname());
  const { exitCode, output } = await status();
  assert.equal(exitCode, 0, output);
  assert.match(
    output,
    /\nrunning on [^\n]*: a gateway and jobs reported in the last seconds\njob .*\n(?:[a-z-]+ .*\n)+$/,
  );
  assert.doesNotMatch(output, /another/);
});
