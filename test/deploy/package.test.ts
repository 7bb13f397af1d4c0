// The package: what `npm pack` writes runs in an empty directory, twice packed it is the same file, and without the
// embedded databases it says what it needs. Asks the npm registry (or npm's cache) for the dependencies.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { packProduct } from '../support/pack-product.ts';
import { waitFor } from '../support/waiting.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What docs/one-machine.md has an operator write there. */
const OPERATORS_FILES = ['.env', 'providers.env', 'tollgate.yaml'].map((name) => join(ROOT, 'deploy/compose', name));
/** To a file of the repository. */
const LINK = /\]\((?!#|\w+:)([^)\s#]+)(?:#[^)\s]*)?\)/g;
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];

/** As on somebody's machine: nothing of the test run, and no program of this checkout. */
const ENVIRONMENT = {
  PATH: (process.env.PATH ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'))
    .join(delimiter),
  HOME: process.env.HOME,
};

describe('the package', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  let tarball = '';

  after(() => rmSync(directory, { recursive: true, force: true }));

  before(async () => {
    // As who runs the compose file has them in the checkout.
    const made = OPERATORS_FILES.filter((path) => !existsSync(path));
    for (const path of made) writeFileSync(path, 'SECRET=of-an-operator\n');
    try {
      tarball = await packProduct(join(directory, 'first'));
    } finally {
      for (const path of made) rmSync(path);
    }
  });

  test('twice packed is the same file', async () => {
    const again = await packProduct(join(directory, 'second'));
    assert.equal(sha256(again), sha256(tarball));
  });

  test('has what runs and what is read, and neither sources nor tests', async () => {
    const { stdout } = await run('tar', ['tzf', tarball]);
    const names = stdout.trim().split('\n');
    for (const name of ['bin/tollgate.js', 'built/src/main.js', 'built/workers/count-tokens.js', 'SECURITY.md'])
      assert.ok(names.includes(`package/${name}`), name);
    const foreign = names.filter((name) => /\.(ts|tsx|tgz|log)$|\/(test|benchmarks|node_modules)\//.test(name));
    assert.deepEqual(foreign, ['package/benchmarks/README.md']);
    // Pictures are large, and a page without them still says everything.
    for (const page of names.filter((name) => /^package\/(README|docs\/[\w-]+)\.md$/.test(name)))
      for (const [, target = ''] of readFileSync(join(ROOT, relative('package', page)), 'utf8').matchAll(LINK)) {
        const linked = join(dirname(page), target).replace(/\/$/, '');
        const isThere = names.some((name) => name === linked || name.startsWith(`${linked}/`));
        assert.ok(isThere || linked.startsWith('package/docs/pictures/'), `${page} links to ${target}`);
      }
    for (const path of OPERATORS_FILES) assert.ok(!names.includes(`package/${relative(ROOT, path)}`), path);
    const page = readFileSync(join(ROOT, 'docs/one-machine.md'), 'utf8');
    const copied = [...page.matchAll(/node_modules\/tollgate\/(\S+)/g)].map(([, path = '']) => path);
    assert.ok(copied.length > 0);
    for (const path of [...copied, 'deploy/compose/example.env', 'deploy/clickhouse/cluster/keeper.xml'])
      assert.ok(names.includes(`package/${path}`), path);
  });

  test('serves in an empty directory, and ends when it is told to', async () => {
    const home = await install('whole', tarball, []);
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const child = spawn('npx', ['tollgate', 'start'], {
      cwd: home,
      env: { ...ENVIRONMENT, PORT: String(port), ADMIN_PORT: String(adminPort) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const said = listen(child);
    try {
      await waitFor('the banner', said, (text) => text.includes('Try it:'), 120_000);
      const [key] = /tg-[\w-]{20,}/.exec(said()) ?? assert.fail(said());
      const url = `http://127.0.0.1:${port}`;
      const answer = await httpCall(`${url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'service/auto', messages: [{ role: 'user', content: 'Sort these' }] }),
      });
      assert.equal(answer.status, 200, answer.body.toString());
      const id = String(answer.headers['x-service-execution-id']);
      const record = await httpCall(`${url}/v1/generation?id=${id}&wait=10`, {
        headers: { authorization: `Bearer ${key}` },
      });
      assert.match(record.body.toString(), /"billing_status":"final"/);
      assert.equal((await httpCall(`${url}/console`)).status, 200, 'the console is in it');
    } finally {
      process.kill(-(child.pid ?? assert.fail('it has a process')), 'SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  });

  test('without the optional packages names the two addresses that it needs', async () => {
    const home = await install('slim', tarball, ['--omit=optional']);
    const start = run(process.execPath, ['node_modules/tollgate/bin/tollgate.js', 'start'], {
      cwd: home,
      env: ENVIRONMENT,
    });
    const fault = await start.then(
      () => assert.fail('it started'),
      (error: { code: number; stderr: string }) => error,
    );
    assert.equal(fault.code, 1);
    assert.match(fault.stderr, /^.*DATABASE_URL: must be given, since no embedded Postgres is installed/m);
    assert.match(fault.stderr, /^.*CLICKHOUSE_URL: must be given, since no embedded ClickHouse is installed/m);
    const trim = await run(process.execPath, [join(ROOT, 'build/trim-dependencies.js'), join(home, 'node_modules')]);
    assert.match(trim.stdout, /^\d+ MB before, \d+ MB now/);
    const help = await run(process.execPath, ['node_modules/tollgate/bin/tollgate.js', '--help'], { cwd: home });
    assert.match(help.stdout, /tollgate start/);
  });

  async function install(name: string, file: string, options: readonly string[]): Promise<string> {
    const home = join(directory, name);
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{}\n');
    await run('npm', ['install', ...QUIET, ...options, file], { cwd: home, env: ENVIRONMENT });
    return home;
  }
});

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

function listen(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  return () => text;
}
