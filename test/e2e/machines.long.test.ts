// Three machines on one Postgres and one ClickHouse, in network namespaces (machines-run.ts says what befalls them):
// money agrees to the digit, and whoever has room is served by the machines that are there.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { missingForMachines } from './machine-network.ts';

const RUN = fileURLToPath(new URL('machines-run.ts', import.meta.url));
const missing = missingForMachines();

test('a machine is cut off, another is lost for good, the clock of the third is an hour ahead', {
  skip: missing ?? false,
}, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [RUN, '--seconds', '4', '--seed', '29'], {
    maxBuffer: 1 << 26,
  }).catch((fault: unknown) => fault as { stdout: string });
  const report = JSON.parse(stdout.slice(stdout.indexOf('\n{\n'))) as { requests: number; problems: string[] };
  assert.deepEqual(report.problems, []);
  assert.ok(report.requests > 1_000, `only ${report.requests} requests`);
});
