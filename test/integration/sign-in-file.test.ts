// The file of OpenID providers (SIGN_IN_FILE): the start reads it before anything runs, and names each mistake in it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { withoutNamedIn } from '../../src/commands/configuration-file/configuration-file.ts';
import { readSignInFile } from '../../src/installation/read-sign-in-file.ts';
import { StartFault } from '../../src/installation/start-fault.ts';
import { BROKEN_VALUES, QUOTED_SECRET } from '../support/broken-yaml.ts';
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

test('a variable that the configuration file names too is left to the processes, which read this one', (context) => {
  const directory = temporaryDirectory(context);
  const [configuration, signIn] = [join(directory, 'tollgate.yaml'), join(directory, 'sign-in.yaml')];
  writeFileSync(configuration, 'providers: [{ id: p, base_url: "https://p.${DOMAIN}", api_key: "${PROVIDER_KEY}" }]');
  writeFileSync(signIn, GOOD.replace('acme.okta.test', '${DOMAIN}'));
  const environment = { DOMAIN: 'acme.test', PROVIDER_KEY: 'secret', OKTA_SECRET: 'secret', PORT: '1' };
  const leftBeside = (readByAll: string | null) =>
    Object.keys(withoutNamedIn(configuration, environment, { kept: ['PORT'], readByAll }));
  assert.deepEqual(leftBeside(signIn), ['DOMAIN', 'OKTA_SECRET', 'PORT']);
  assert.deepEqual(leftBeside(null), ['OKTA_SECRET', 'PORT']);
  assert.deepEqual(leftBeside(join(directory, 'gone')), ['OKTA_SECRET', 'PORT']);
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
    'tollgate: oidc[0].client_id: is missing',
    'tollgate: oidc[0]: has an unknown key: clientid',
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

function faultOf(context: TestContext, text: string): string {
  const file = join(temporaryDirectory(context), 'sign-in.yaml');
  writeFileSync(file, text);
  try {
    readSignInFile(file, { OKTA_SECRET: 'secret' });
  } catch (error) {
    assert.ok(error instanceof StartFault, `${text}: ${String(error)}`);
    return error.message;
  }
  assert.fail(`read: ${text}`);
}

test('aliases that stand for nothing that could be read', (context) => {
  const line = 'x,'.repeat(9);
  const bomb = ['a', 'b', 'c', 'd'].map((name, at, names) => {
    const inner = at === 0 ? line : `*${names[at - 1]},`.repeat(9);
    return `${name}: &${name} [${inner}]\n`;
  });
  for (const [text, expected] of [
    ['oidc: *nothere\n', /line 1: an alias names an anchor that does not stand before it$/],
    ['a: 1\noidc: &a [*a]\n', /line 2: an alias stands within its own anchor$/],
    [`${bomb.join('')}oidc: [*d, *d, *d]\n`, /Excessive alias count/],
  ] as const)
    assert.match(faultOf(context, text), expected);
});

test('what is wrong with the file is said without quoting it', (context) => {
  for (const value of BROKEN_VALUES) {
    const fault = faultOf(context, GOOD.replace('${OKTA_SECRET}', value));
    assert.ok(!fault.includes(QUOTED_SECRET.slice(0, 4)), fault);
  }
});
