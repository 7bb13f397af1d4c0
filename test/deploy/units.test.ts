// The systemd unit: systemd finds nothing wrong with it, and little that it leaves open.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { needs } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);
const UNIT = fileURLToPath(new URL('../../deploy/systemd/tollgate.service', import.meta.url));
/** Of 10, by `systemd-analyze security`; below 2 it calls a unit well kept. */
const EXPOSURE_MAX = 2;

test('systemd verifies the unit', needs('systemd-analyze'), async (context) => {
  const file = join(temporaryDirectory(context), 'tollgate.service');
  const text = readFileSync(UNIT, 'utf8');
  // The command need not be installed here: any that is stands for it.
  writeFileSync(file, text.replace(/^(ExecStart=)\S+/m, `$1${process.execPath}`));
  const { stdout, stderr } = await run('systemd-analyze', ['verify', file]);
  const own = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('tollgate.service'));
  assert.deepEqual(own, []);
});

test('it leaves little open', needs('systemd-analyze'), async () => {
  const { stdout } = await run('systemd-analyze', ['security', '--offline=true', UNIT]);
  const exposure = Number(/Overall exposure level for tollgate\.service: ([\d.]+)/.exec(stdout)?.[1]);
  assert.ok(exposure < EXPOSURE_MAX, `${exposure}`);
});

test('its processes get the time that a stop may take', () => {
  const text = readFileSync(UNIT, 'utf8');
  assert.match(text, /^KillMode=mixed$/m);
  const drain = Number(/^DRAIN_SECONDS=(\d+)$/m.exec(readFileSync(join(UNIT, '../tollgate.env'), 'utf8'))?.[1]);
  assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]) >= drain + 60);
});
