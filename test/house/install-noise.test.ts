// `npm ci` prints no engine warning, whatever Node the host has: npm installs the Node that runs everything.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The PATH without the repository's programs, which `npm exec` and `npm test` put first. */
const HOST_PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((directory) => !directory.includes('node_modules') && !directory.includes('node-gyp-bin'));
const HOST_NPM = HOST_PATH.map((directory) => join(directory, 'npm')).find((file) => existsSync(file));

test('npm ci prints no engine warning', {
  skip: HOST_NPM === undefined && 'npm is not on the PATH',
}, async (context) => {
  const directory = temporaryDirectory(context);
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(ROOT, file), join(directory, file));
  const env = { PATH: HOST_PATH.join(delimiter), HOME: process.env.HOME };
  // Without this npm announces its own newer version once a week.
  const args = ['ci', '--dry-run', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  const { stdout, stderr } = await promisify(execFile)(HOST_NPM ?? '', args, { cwd: directory, env });
  assert.doesNotMatch(stdout + stderr, /EBADENGINE/);
  assert.equal(stderr, '');
});
