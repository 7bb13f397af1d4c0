// The file of OpenID providers (SIGN_IN_FILE): the start reads it before anything runs, and names each mistake in it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readSignInFile } from '../../src/gateway/read-sign-in-file.ts';
import { RUN_ENVIRONMENT } from '../support/run-environment.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const GOOD = `oidc:
  - id: okta
    issuer: https://acme.okta.test
    client_id: tollgate
    client_secret: \${OKTA_SECRET}
`;

async function start(
  context: TestContext,
  text: string | null,
): Promise<{ exitCode: number; lines: string[]; file: string }> {
  const directory = temporaryDirectory(context);
  const file = join(directory, 'sign-in.yaml');
  if (text !== null) writeFileSync(file, text);
  const child = spawn(process.execPath, [COMMAND, 'start'], {
    cwd: directory,
    env: { ...RUN_ENVIRONMENT, PATH: process.env.PATH, HOME: process.env.HOME, SIGN_IN_FILE: file },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 20_000,
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [exitCode] = (await once(child, 'close')) as [number];
  assert.equal(existsSync(join(directory, '.tollgate')), false, `nothing is started: ${said}`);
  return { exitCode, lines: said.trimEnd().split('\n'), file };
}

test('a good file is read', (context) => {
  const file = join(temporaryDirectory(context), 'sign-in.yaml');
  writeFileSync(file, GOOD);
  assert.equal(readSignInFile(file, { OKTA_SECRET: 'secret' })[0]?.client_secret, 'secret');
  assert.deepEqual(readSignInFile(null, {}), []);
});

test('a file that is not there', async (context) => {
  const { exitCode, lines, file } = await start(context, null);
  assert.equal(exitCode, 1);
  assert.deepEqual(lines.length, 1, lines.join('\n'));
  assert.ok(lines[0]?.startsWith(`tollgate: SIGN_IN_FILE: cannot read ${file}: ENOENT`), lines[0]);
});

test('every mistake in the file, each in a line', async (context) => {
  const { exitCode, lines, file } = await start(
    context,
    `${GOOD.replace('client_id', 'clientid')}  - { id: Two, issuer: x, client_id: c, client_secret: s }\n`,
  );
  assert.equal(exitCode, 1);
  assert.deepEqual(lines, [
    `tollgate: SIGN_IN_FILE: ${file} cannot be used:`,
    'tollgate: OKTA_SECRET is not set',
    'tollgate: oidc[0].client_id: Invalid input: expected string, received undefined',
    'tollgate: oidc[0]: Unrecognized key: "clientid"',
    'tollgate: oidc[1].id: must be a name in small letters',
    'tollgate: oidc[1].issuer: must be the URL of the issuer',
  ]);
});

test('a file that is no YAML', async (context) => {
  const { exitCode, lines, file } = await start(context, 'oidc: [\n');
  assert.equal(exitCode, 1);
  assert.equal(lines[0], `tollgate: SIGN_IN_FILE: ${file} cannot be used:`);
  assert.match(lines[1] ?? '', /line 2/);
});
