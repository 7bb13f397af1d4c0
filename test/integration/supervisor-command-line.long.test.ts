// The command as people call it: from any directory, with any Node, wrongly and rightly.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../support/free-port.ts';
import { RUN_ENVIRONMENT } from '../support/run-environment.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const DEMO = fileURLToPath(new URL('../../deploy/demo.yaml', import.meta.url));
/** Without type stripping this Node is one that cannot run the source: the command has to find the pinned one. */
const FOREIGN_NODE = ['--no-experimental-strip-types'];

interface Answer {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function call(
  context: TestContext,
  args: readonly string[],
  options: { env?: Record<string, string>; node?: readonly string[]; signal?: NodeJS.Signals } = {},
): Promise<Answer> {
  const child = spawn(process.execPath, [...(options.node ?? []), COMMAND, ...args], {
    cwd: temporaryDirectory(context),
    env: { ...RUN_ENVIRONMENT, PATH: process.env.PATH, HOME: process.env.HOME, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [exitCode, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { exitCode, signal, stdout, stderr };
}

describe('command line', () => {
  for (const [name, node] of [
    ['the pinned Node', []],
    ['another Node', FOREIGN_NODE],
  ] as const) {
    test(`with ${name}: --version, --help, exit codes`, async (context) => {
      assert.match((await call(context, ['--version'], { node })).stdout, /^\d+\.\d+\.\d+\n$/);
      const help = await call(context, ['--help'], { node });
      assert.equal(help.exitCode, 0);
      for (const command of [
        'start',
        'apply',
        'status',
        'org create',
        'member add',
        'token create',
        'key create',
        'key rotate',
        'key revoke',
        'credit add',
        'audit',
        'gateway',
        'jobs',
      ])
        assert.match(help.stdout, new RegExp(`^ {2}tollgate ${command}`, 'm'));
      const unknown = await call(context, ['strat'], { node });
      assert.deepEqual(
        [unknown.exitCode, unknown.stderr],
        [2, 'tollgate: unknown command "strat"; "tollgate --help" lists the commands\n'],
      );
    });
  }

  for (const [name, args, env] of [
    ['a configuration file is given', ['--config', 'own.yaml'], {}],
    ['a configuration file is given', [], { TOLLGATE_CONFIG: 'own.yaml' }],
    [
      'DATABASE_URL is given',
      [],
      { DATABASE_URL: 'postgres://localhost/own', MASTER_KEY: Buffer.alloc(32).toString('base64') },
    ],
    ['CLICKHOUSE_URL is given', [], { CLICKHOUSE_URL: 'http://127.0.0.1:9' }],
  ] as const)
    test(`made-up traffic is for the demo alone: ${name} (${[...args, ...Object.keys(env)].join(' ')})`, async (context) => {
      const answer = await call(context, ['start', '--demo-traffic', ...args], { env });
      assert.equal(answer.exitCode, 2, answer.stderr);
      assert.match(answer.stderr, new RegExp(`^tollgate: --demo-traffic is for the demo .*, and ${name}`));
    });

  test('wrong settings: each in one line, exit code 2, no stack, nothing started', async (context) => {
    const answer = await call(context, ['start'], { env: { PORT: 'abc', BRAND: '1', DRAIN_SECONDS: 'soon' } });
    assert.deepEqual(answer, {
      exitCode: 2,
      signal: null,
      stdout: '',
      stderr: [
        'tollgate: PORT: must be an integer from 1 to 65535, got "abc"',
        'tollgate: BRAND: must be 1 to 32 letters, digits or hyphens, the first a letter, got "1"',
        'tollgate: DRAIN_SECONDS: must be an integer from 0 to 3600, got "soon"',
        '',
      ].join('\n'),
    });
  });

  test('weak secrets in production: named, not repeated, nothing started', async (context) => {
    const env = {
      DATABASE_URL: 'postgres://127.0.0.1:1/tollgate',
      MASTER_KEY: Buffer.alloc(32).toString('base64'),
      ADMIN_TOKEN: 'twenty-characters-20',
      DELEGATION_KEY: '',
    };
    for (const args of [['start', '--config', 'nowhere.yaml'], ['gateway'], ['jobs']]) {
      const { exitCode, stdout, stderr } = await call(context, args, { env });
      assert.deepEqual([exitCode, stdout], [2, '']);
      assert.match(
        stderr,
        /^tollgate: MASTER_KEY: [^\n]+\ntollgate: ADMIN_TOKEN: [^\n]+\ntollgate: DELEGATION_KEY: [^\n]+\n$/,
      );
      assert.ok(!stderr.includes(env.MASTER_KEY) && !stderr.includes(env.ADMIN_TOKEN));
    }
  });

  for (const manifest of ['{"format": 1', '{"format": 2}'])
    test(`a backup whose record is ${manifest} is told without a stack, and nothing is restored`, async (context) => {
      const backup = temporaryDirectory(context);
      const dataDirectory = join(temporaryDirectory(context), 'restored');
      writeFileSync(join(backup, 'backup.json'), manifest);
      const answer = await call(context, ['restore', backup], { env: { DATA_DIR: dataDirectory } });
      assert.deepEqual([answer.exitCode, answer.stdout], [1, '']);
      assert.match(answer.stderr, /^tollgate: [^\n]*backup\.json is of another version, or damaged\n$/);
      assert.equal(existsSync(dataDirectory), false);
    });

  test('a wrong call is answered with the usage', async (context) => {
    for (const [args, complaint] of [
      [['key', 'create', '--name', 'x'], '--organization is missing'],
      [['key'], 'create, update, rotate, revoke or list is missing'],
      [['team', 'member', 'add', '--organization', 'a', '--user', 'b@a.test'], '--team is missing'],
      [
        ['limit', 'set', '--organization', 'a', '--kind', 'budget', '--limit', '5'],
        '--window: a budget needs one of hour, day, week, month',
      ],
      [['access', 'set', '--organization', 'a'], '--models is missing'],
      [['key', 'forget', '--organization', 'a', '--name', 'x'], 'unknown action "forget"'],
      [
        ['credit', 'add', '--organization', 'a', '--reference', 'r', '--amount', '0'],
        '--amount: must be dollars as a decimal above 0, such as 25.00, got "0"',
      ],
      [['apply'], 'FILE is missing'],
      [['start', 'x'], 'unexpected argument "x"'],
      [['start', '--wrong'], 'unknown option "--wrong"'],
    ] as const) {
      const answer = await call(context, args);
      assert.equal(answer.exitCode, 2, args.join(' '));
      assert.ok(answer.stderr.startsWith(`tollgate: ${complaint}`), answer.stderr);
      assert.match(answer.stderr, /^tollgate: usage: tollgate /m);
      assert.doesNotMatch(answer.stderr, /\n {4}at /);
    }
  });

  test('commands of an installation that does not run say so', async (context) => {
    for (const args of [
      ['key', 'revoke', '--organization', 'a', '--name', 'x'],
      ['credit', 'add', '--organization', 'a', '--amount', '1', '--reference', 'r'],
    ]) {
      const answer = await call(context, args);
      assert.equal(answer.exitCode, 1);
      assert.match(
        answer.stderr,
        /^tollgate: no installation is running on .*\.tollgate: start it with "tollgate start"/,
      );
    }
    const status = await call(context, ['status']);
    assert.equal(status.exitCode, 1);
    assert.match(status.stdout, /^not running \(.*\.tollgate\)\n$/);
  });

  test('a configuration file that is not there, and a data directory that cannot be, are one line', async (context) => {
    const file = await call(context, ['start', '--config', 'nowhere.yaml']);
    assert.equal(file.exitCode, 1);
    assert.match(file.stderr, /^tollgate: cannot read the configuration file .*nowhere\.yaml: ENOENT[^\n]*\n$/);
    const blocked = join(mkdtempSync(join(temporaryDirectory(context), 'x-')), 'file');
    writeFileSync(blocked, '');
    const directory = await call(context, ['start'], { env: { DATA_DIR: blocked } });
    assert.equal(directory.exitCode, 1);
    assert.match(directory.stderr, /^tollgate: DATA_DIR: must be a directory that this user can write, got "[^\n]*\n$/);
  });

  test('a database that is not there, or is none, is told in one line', async (context) => {
    const other = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    context.after(() => other.close());
    const { port } = other.address() as { port: number };
    const secret = () => randomBytes(32).toString('base64');
    for (const [address, says] of [
      ['127.0.0.1:9', 'ECONNREFUSED'],
      ['nowhere.invalid', 'ENOTFOUND|EAI_AGAIN'],
      [`127.0.0.1:${port}`, 'Connection terminated|ECONNRESET'],
    ] as const) {
      const answer = await call(context, ['start', '--config', DEMO], {
        env: {
          DATABASE_URL: `postgres://somebody:secret@${address}/tollgate`,
          CLICKHOUSE_URL: 'http://127.0.0.1:9/tollgate',
          SIMULATED_PROVIDER_URL: 'http://127.0.0.1:9',
          MASTER_KEY: secret(),
          DELEGATION_KEY: secret(),
          PORT: String(await findFreePort()),
          LOG_LEVEL: 'silent',
        },
      });
      assert.equal(answer.exitCode, 1, answer.stderr);
      assert.match(answer.stderr, new RegExp(`^tollgate: the database cannot be reached: [^\n]*(${says})[^\n]*\n$`));
      assert.doesNotMatch(answer.stderr, /secret/);
    }
  });

  test('a port that is taken is named, before anything is started', async (context) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server.close());
    const { port } = server.address() as { port: number };
    const data = temporaryDirectory(context);
    const answer = await call(context, ['start'], { env: { PORT: String(port), DATA_DIR: data } });
    assert.deepEqual(
      [answer.exitCode, answer.stderr],
      [
        1,
        `tollgate: PORT: port ${port} on 127.0.0.1 is in use by another program; give another PORT or stop ` +
          `that program\n`,
      ],
    );
    assert.equal(existsSync(join(data, 'postgres.json')), false);
    const host = await call(context, ['start'], { env: { HOST: '192.0.2.1', PORT: String(port), DATA_DIR: data } });
    assert.equal(host.exitCode, 1);
    assert.match(
      host.stderr,
      /^tollgate: HOST, PORT: cannot listen on 192\.0\.2\.1 port \d+: [^\n]*EADDRNOTAVAIL[^\n]*\n$/,
    );
  });

  test('a gateway alone, without a database or secrets to find, says what is missing', async (context) => {
    const answer = await call(context, ['gateway']);
    assert.equal(answer.exitCode, 1);
    assert.match(answer.stderr, /^tollgate: MASTER_KEY is not given, and .* holds no secrets/);
  });
});
