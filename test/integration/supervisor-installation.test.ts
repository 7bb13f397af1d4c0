// A whole installation as an operator meets it, real databases included: first start, second start, two at once,
// commands beside it, kills.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { REFUSED } from '../../src/commands/start/demo-traffic/mix.ts';
import { AT_LENGTH_ONLY } from '../support/at-length.ts';
import { callWithSession, signedIn } from '../support/console-session.ts';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { startTestPostgres } from '../support/postgres.ts';
import { isRunning, listDescendants, type ProcessEntry } from '../support/process-table.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { RUN_ENVIRONMENT } from '../support/run-environment.ts';
import { startSimulatedProvider } from '../support/simulated-provider.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
/** Of an installation that is asked for none: nobody listens there. */
const WITHOUT_REPORTS = { CLICKHOUSE_URL: 'http://127.0.0.1:9' };
const ENVIRONMENT = { ...RUN_ENVIRONMENT, PATH: process.env.PATH, HOME: process.env.HOME };

interface Installation {
  readonly child: ChildProcess;
  readonly directory: string;
  readonly printed: () => string;
  readonly url: string;
  readonly adminUrl: string;
  /** As the banner shows it. */
  readonly curl: string;
  readonly processes: () => ProcessEntry[];
  /** Ends it by a signal and gives its exit code, once nothing of it runs. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | null>;
}

interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The banner ends with a line to paste. */
  readonly isDemo?: boolean;
}

async function start(
  context: TestContext,
  directory: string,
  { args = [], env = {}, isDemo = args.length === 0 }: StartOptions = {},
): Promise<Installation> {
  const child = spawn(process.execPath, [COMMAND, 'start', ...args], {
    cwd: directory,
    env: { ...ENVIRONMENT, GATEWAY_PROCESSES: '1', LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  const hear = (chunk: Buffer) => {
    printed += chunk.toString();
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  context.after(async () => {
    child.kill('SIGTERM');
    await exit;
  });
  await waitFor(
    'the banner',
    () => {
      if (child.exitCode !== null) throw new Error(`it ended:\n${printed}`);
      return printed;
    },
    (text) => /^Tollgate serves .*\n.*admin .*\n/m.test(text) && (!isDemo || /^curl /m.test(text)),
    120_000,
  );
  return {
    child,
    directory,
    printed: () => printed,
    url: /^Tollgate serves (\S+)/m.exec(printed)?.[1] ?? '',
    adminUrl: /^ +admin (\S+)/m.exec(printed)?.[1] ?? '',
    curl: /^curl .*$/m.exec(printed)?.[0] ?? '',
    processes: () => listDescendants(child.pid ?? 0),
    async end(signal) {
      const entries = listDescendants(child.pid ?? 0);
      child.kill(signal);
      const code = await exit;
      assert.deepEqual(entries.filter(isRunning), [], printed);
      return code;
    },
  };
}

async function callCommand(
  directory: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ exitCode: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [COMMAND, ...args], {
      cwd: directory,
      env: { ...ENVIRONMENT, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('close', (exitCode) => resolve({ exitCode, output }));
  });
}

async function runInShell(line: string): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('close', () => resolve(output));
  });
}

function installationDirectory(context: TestContext): string {
  return temporaryDirectory(context, (directory) => removeInstallation(join(directory, '.tollgate')));
}

function keyOf(installation: Installation): string {
  return /Bearer (tg-[\w-]+)/.exec(installation.curl)?.[1] ?? '';
}

async function ask(installation: Installation, key: string, model = 'sim/small'): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  const answer = await httpCall(`${installation.url}/v1/chat/completions`, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  });
  return answer.status;
}

async function findGeneration(installation: Installation, key: string, id: string): Promise<number> {
  return (await httpCall(`${installation.url}/v1/generation?id=${id}`, { headers: { authorization: `Bearer ${key}` } }))
    .status;
}

function configuration(upstream: string, models: readonly string[]): string {
  const entries = models.map(
    (
      id,
    ) => `  - { id: ${id}, display_name: X, kind: text, context_length: 1000, max_output_tokens: 100, max_completion_tokens_cap: 100, tokenizer: o200k_base,
      served_by: [{ provider: p, model: m, apis: [chat_completions], price: { input: "1", output: "1" } }] }`,
  );
  return `providers:\n  - { id: p, base_url: ${upstream}, api_key: k, auth: bearer }\nmodels:\n${entries.join('\n')}
organizations:\n  - { slug: acme, billing: prepaid, opening_credit: "5.00", users: [{ email: a@acme.test, role: owner }], keys: [{ name: ci, user: a@acme.test }] }\n`;
}

describe('installation', () => {
  test('the demo: a curl line that streams as pasted; a second start finds its data', {
    timeout: 300_000,
  }, async (context) => {
    const directory = installationDirectory(context);
    const first = await start(context, directory, { env: WITHOUT_REPORTS });
    const key = keyOf(first);
    const streamed = await runInShell(`${first.curl.replace('curl -N', 'curl -sSN -D -')}`);
    assert.match(streamed, /^data: \{.*"delta"/m);
    assert.match(streamed, /^data: \[DONE\]/m);
    const id = /^x-service-execution-id: (\S+)/im.exec(streamed)?.[1] ?? '';
    await waitFor(
      'the record',
      () => findGeneration(first, key, id),
      (status) => status === 200,
    );

    const refused = await callCommand(directory, ['start']);
    assert.equal(refused.exitCode, 1);
    assert.match(
      refused.output,
      /^tollgate: this installation is already running as process \d+ on \S+\.tollgate; stop that one, or give another DATA_DIR[^\n]*\n$/,
    );

    assert.equal(await first.end('SIGTERM'), 0);

    const second = await start(context, directory, { env: WITHOUT_REPORTS });
    assert.equal(keyOf(second), key);
    assert.equal(await findGeneration(second, key, id), 200);
    assert.equal(await second.end('SIGTERM'), 0);
  });

  for (const place of ['the embedded Postgres', 'DATABASE_URL'] as const)
    test(`without a file it goes on with what was applied, and the demo takes nothing over: ${place}`, {
      timeout: 300_000,
      ...(place === 'DATABASE_URL' ? {} : AT_LENGTH_ONLY),
    }, async (context) => {
      const directory = installationDirectory(context);
      const file = join(directory, 'tollgate.yaml');
      const masterKey = randomBytes(32).toString('base64');
      const env: Record<string, string> = { ...WITHOUT_REPORTS, PORT: String(await findFreePort()) };
      env.MASTER_KEY = masterKey;
      if (place === 'DATABASE_URL') {
        const server = await startTestPostgres();
        context.after(() => server.stop());
        env.DATABASE_URL = await server.createDatabase();
      }
      writeFileSync(file, configuration('http://127.0.0.1:9', ['one/m']).replaceAll(/\bp\b(?=,)/g, 'sim'));
      const applied = await start(context, directory, { args: ['--config', file], env });
      const before = await callCommand(directory, ['audit'], env);
      assert.equal(await applied.end('SIGTERM'), 0);

      const kept = await start(context, directory, { env, isDemo: false });
      assert.match(kept.printed(), /^Uses the configuration that was applied last; --config FILE applies another\.$/m);
      assert.doesNotMatch(kept.printed(), /tg-|#link=/);
      assert.deepEqual(await callCommand(directory, ['audit'], env), before);
      assert.match((await callCommand(directory, ['org', 'list'], env)).output, /^acme\t[^\n]*\n$/);
      assert.equal(await kept.end('SIGTERM'), 0);

      env.MASTER_KEY = randomBytes(32).toString('base64');
      const closed = await callCommand(directory, ['start'], env);
      assert.equal(closed.exitCode, 1);
      assert.match(closed.output, /^tollgate: MASTER_KEY: [^\n]*encrypted with another MASTER_KEY[^\n]*\n$/m);
      assert.doesNotMatch(closed.output, /^\s+at /m);
    });

  for (const place of ['the embedded Postgres', 'DATABASE_URL'] as const)
    test(`an installation of one's own that is called like the demo stays as it is: ${place}`, {
      timeout: 300_000,
      ...AT_LENGTH_ONLY,
    }, async (context) => {
      const directory = installationDirectory(context);
      const file = join(directory, 'tollgate.yaml');
      const upstreamPort = await findFreePort();
      const env: Record<string, string> = { ...WITHOUT_REPORTS, PORT: String(await findFreePort()) };
      env.MASTER_KEY = randomBytes(32).toString('base64');
      if (place === 'DATABASE_URL') {
        const server = await startTestPostgres();
        context.after(() => server.stop());
        env.DATABASE_URL = await server.createDatabase();
      }
      const own = configuration(`http://127.0.0.1:${upstreamPort}`, ['sim/small'])
        .replaceAll(/\bp\b(?=,)/g, 'sim')
        .replace('slug: acme, billing: prepaid, opening_credit: "5.00"', 'slug: demo, billing: none');
      writeFileSync(file, own);
      const applied = await start(context, directory, { args: ['--config', file], env });
      const before = await callCommand(directory, ['audit'], env);
      assert.equal(await applied.end('SIGTERM'), 0);

      const kept = await start(context, directory, { env, isDemo: false });
      assert.match(kept.printed(), /^Uses the configuration that was applied last;/m);
      assert.doesNotMatch(kept.printed(), /tg-|#link=/);
      assert.deepEqual(await callCommand(directory, ['audit'], env), before);
      // The owner's provider is away, and nobody answers in its place.
      await assert.rejects(httpCall(`http://127.0.0.1:${upstreamPort}/`), /ECONNREFUSED/);
      assert.equal(await kept.end('SIGTERM'), 0);

      if (place === 'the embedded Postgres') return;
      for (const args of [['start'], ['start', '--config', file]]) {
        const weak = await callCommand(directory, args, { ...env, ADMIN_TOKEN: 'change-me-change-me' });
        assert.deepEqual([weak.exitCode, /^tollgate: (\w+): must /m.exec(weak.output)?.[1]], [2, 'ADMIN_TOKEN']);
      }
    });

  test('the demo on one database belongs to the data directory that made it', {
    timeout: 300_000,
    ...AT_LENGTH_ONLY,
  }, async (context) => {
    const server = await startTestPostgres();
    context.after(() => server.stop());
    const env: Record<string, string> = { ...WITHOUT_REPORTS, DATABASE_URL: await server.createDatabase() };
    env.MASTER_KEY = randomBytes(32).toString('base64');
    const directory = installationDirectory(context);
    const demo = await start(context, directory, { env });
    const key = keyOf(demo);
    const other = installationDirectory(context);
    // Only the demo moves to another port.
    const taken = await callCommand(other, ['start'], { ...env, GATEWAY_PROCESSES: '1' });
    assert.deepEqual([taken.exitCode, /^tollgate: PORT: port 8080 .* in use/m.test(taken.output)], [1, true]);
    const beside = await start(context, other, {
      env: { ...env, PORT: String(await findFreePort()) },
      isDemo: false,
    });
    assert.match(beside.printed(), /^Uses the configuration that was applied last;/m);
    assert.doesNotMatch(beside.printed(), /tg-|#link=/);
    assert.equal(await ask(demo, key), 200);
    assert.equal(await beside.end('SIGTERM'), 0);
    assert.equal(await demo.end('SIGTERM'), 0);
    const again = await start(context, directory, { env });
    assert.equal(keyOf(again), key);
    assert.equal(await again.end('SIGTERM'), 0);
  });

  test('a demo to which something of its own was added goes on with both', {
    timeout: 300_000,
    ...AT_LENGTH_ONLY,
  }, async (context) => {
    const directory = installationDirectory(context);
    const demo = await start(context, directory, { env: WITHOUT_REPORTS });
    const key = keyOf(demo);
    assert.equal((await callCommand(directory, ['org', 'create', '--slug', 'acme'])).exitCode, 0);
    assert.equal(await demo.end('SIGTERM'), 0);
    const env = { ...WITHOUT_REPORTS, PORT: String(await findFreePort()) };
    const kept = await start(context, directory, { env, isDemo: false });
    assert.equal(await ask(kept, key), 200);
    assert.equal(await kept.end('SIGTERM'), 0);
    const refused = await callCommand(directory, ['start', '--demo-traffic'], { PORT: env.PORT });
    assert.equal(refused.exitCode, 1);
    assert.match(
      refused.output,
      /--demo-traffic is for the demo, and this installation has a configuration of its own/,
    );
  });

  test('the demo with made-up traffic: every report has something to say, and the books agree', {
    timeout: 300_000,
    ...AT_LENGTH_ONLY,
  }, async (context) => {
    const directory = installationDirectory(context);
    const demo = await start(context, directory, { args: ['--demo-traffic'] });
    const made = Number(/^(\d+) made-up requests of the past hour were written/m.exec(demo.printed())?.[1]);
    assert.ok(made > 400, demo.printed());
    const refused = REFUSED.reduce((sum, { requests }) => sum + requests, 0);
    const cookie = await signedIn(demo.url, { link: /#link=(\S+)/.exec(demo.printed())?.[1] ?? '' });
    const report = async <T>(path: string): Promise<T> => {
      const answer = await callWithSession(`${demo.url}/v1/admin/active-org/usage${path}`, cookie);
      assert.equal(answer.status, 200, answer.body.toString());
      return JSON.parse(answer.body.toString()) as T;
    };
    await waitFor(
      'the requests in the reports',
      () => report<{ data: { requests: number } }>(''),
      // What was refused is none of the usage.
      ({ data }) => data.requests === made - refused,
      60_000,
    );
    for (const dimension of ['model', 'api_key', 'user', 'team', 'tag', 'status']) {
      const { data } = await report<{ data: { groups: unknown[] } }>(`/analytics/series?group_by=${dimension}`);
      assert.ok(data.groups.length >= 3, `${dimension}: ${JSON.stringify(data.groups)}`);
    }
    const { recent_corrections: corrections, ...routing } = await report<Record<string, unknown>>('/analytics/routing');
    assert.notDeepEqual(corrections, []);
    for (const [field, value] of Object.entries(routing))
      if (Array.isArray(value)) assert.notDeepEqual(value, [], field);
    const guardrails = await callWithSession(`${demo.url}/v1/admin/active-org/guardrails/report`, cookie);
    const { data: screened } = JSON.parse(guardrails.body.toString()) as {
      data: { screened: number; blocked: number; rows: { rule: string }[] };
    };
    assert.equal(screened.screened, made, guardrails.body.toString());
    assert.ok(screened.blocked > 0);
    assert.deepEqual(new Set(screened.rows.map(({ rule }) => rule)), new Set(['cards', 'people', 'addresses']));
    const checked = await callCommand(directory, ['reconcile']);
    assert.equal(checked.exitCode, 0, checked.output);
    assert.equal(await demo.end('SIGTERM'), 0);
  });

  test('two demos do not collide; kills are survived', {
    timeout: 300_000,
    ...AT_LENGTH_ONLY,
  }, async (context) => {
    const first = await start(context, installationDirectory(context), { env: { GATEWAY_PROCESSES: '2' } });
    const key = keyOf(first);
    const other = await start(context, installationDirectory(context), { env: WITHOUT_REPORTS });
    assert.notEqual(other.url, first.url);
    assert.notEqual(other.adminUrl, first.adminUrl);
    assert.equal(await ask(other, keyOf(other)), 200);
    assert.equal(await ask(other, key), 401);
    assert.equal(await other.end('SIGINT'), 0);

    for (const command of [/main\.ts gateway/, /main\.ts jobs/, /postgres-owner\.ts/]) {
      const victim = first.processes().find((entry) => command.test(entry.command));
      assert.ok(victim);
      process.kill(victim.pid, 'SIGKILL');
      await waitFor(
        `a successor of ${victim.command}`,
        () => first.processes().some((entry) => command.test(entry.command) && entry.pid !== victim.pid),
        Boolean,
      );
    }
    await waitFor(
      'readiness',
      async () => (await httpCall(`${first.adminUrl}/readyz`)).body.toString(),
      (text) => text === 'ready\n',
      60_000,
    );
    assert.equal(
      await waitFor(
        'an answer',
        () => ask(first, key),
        (status) => status === 200,
      ),
      200,
    );
    assert.equal(await first.end('SIGTERM'), 0);
  });

  test('with a file: keys printed once, mistakes with their lines, changes followed, keys and credit by command', {
    timeout: 300_000,
    ...AT_LENGTH_ONLY,
  }, async (context) => {
    const directory = installationDirectory(context);
    const provider = await startSimulatedProvider();
    context.after(() => provider.stop());
    const upstream = provider.url;
    const file = join(directory, 'tollgate.yaml');
    const withFile = { args: ['--config', file], env: { ...WITHOUT_REPORTS, PORT: String(await findFreePort()) } };
    writeFileSync(file, configuration(upstream, ['one/m']));
    const installation = await start(context, directory, withFile);
    const key = /shown only now: (tg-[\w-]+)/.exec(installation.printed())?.[1] ?? '';
    assert.equal(await ask(installation, key, 'one/m'), 200);
    assert.equal(await ask(installation, key, 'two/m'), 404);

    writeFileSync(file, configuration(upstream, ['one/m', 'two/m']).replace('kind: text', 'kindness: text'));
    const wrong = await callCommand(directory, ['apply', file]);
    assert.equal(wrong.exitCode, 1);
    assert.match(wrong.output, /tollgate\.yaml:4: models\[0\]\.kindness: unknown key/);
    writeFileSync(file, configuration(upstream, ['one/m', 'two/m']));
    const applied = await callCommand(directory, ['apply', file]);
    assert.equal(applied.exitCode, 0, applied.output);
    assert.match(applied.output, /^applied: 1 provider, 2 models, 1 organization; the catalog is now version \d+\n$/);
    await waitFor(
      'the new model',
      () => ask(installation, key, 'two/m'),
      (status) => status === 200,
    );
    assert.match((await callCommand(directory, ['apply', file])).output, /the catalog is still version/);

    const created = await callCommand(directory, ['key', 'create', '--organization', 'acme', '--name', 'second']);
    assert.match(created.output, /^tg-[\w-]{43}\n$/);
    const second = created.output.trim();
    assert.equal(await ask(installation, second, 'one/m'), 200);
    assert.equal(
      (await callCommand(directory, ['key', 'revoke', '--organization', 'acme', '--name', 'second'])).exitCode,
      0,
    );
    await waitFor(
      'the revocation',
      () => ask(installation, second, 'one/m'),
      (status) => status === 401,
    );
    assert.match(
      (
        await callCommand(directory, [
          'credit',
          'add',
          '--organization',
          'acme',
          '--amount',
          '2.50',
          '--reference',
          'r1',
        ])
      ).output,
      /^2\.5 USD posted; balance of "acme": 7\.49\d* USD\n$/,
    );

    const status = await callCommand(directory, ['status']);
    assert.equal(status.exitCode, 0);
    assert.match(
      status.output,
      /^running as process \d+ .*\nserves http:\S+, admin http:\S+\nready\njob .*\n(?:[a-z-]+ .*\n)+$/,
    );
    assert.equal(await installation.end('SIGTERM'), 0);
    const again = await start(context, directory, withFile);
    assert.doesNotMatch(again.printed(), /tg-/);
    assert.equal(await ask(again, key, 'one/m'), 200);
    assert.equal(await again.end('SIGTERM'), 0);
  });
});
