// The supervisor with real processes that do nothing: order of start and end, restarts, rolling, and that nothing is
// ever left behind.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AT_LENGTH_ONLY } from '../support/at-length.ts';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { isRunning, listDescendants, type ProcessEntry } from '../support/process-table.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/waiting.ts';

const MODULE = fileURLToPath(new URL('../support/fake-installation.ts', import.meta.url));

interface FakeInstallation {
  readonly directory: string;
  readonly adminUrl: string;
  readonly child: ChildProcess;
  readonly ended: Promise<readonly [number | null, NodeJS.Signals | null]>;
  readonly printed: () => string;
  readonly events: () => string[];
  readonly processes: () => ProcessEntry[];
}

async function startFake(
  context: TestContext,
  options: { gateways?: number; env?: Record<string, string>; directory?: string } = {},
): Promise<FakeInstallation> {
  const directory = options.directory ?? temporaryDirectory(context);
  const adminPort = await findFreePort();
  const eventsFile = join(directory, 'events');
  writeFileSync(eventsFile, '');
  const child = spawn(process.execPath, [MODULE, directory, String(options.gateways ?? 2), String(adminPort)], {
    env: { ...process.env, FAKE_EVENTS: eventsFile, FAKE_BROKEN: join(directory, 'broken'), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const ended = new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve) =>
    child.once('exit', (code, signal) => resolve([code, signal])),
  );
  context.after(() => {
    for (const entry of listDescendants(child.pid ?? 0)) process.kill(entry.pid, 'SIGKILL');
    child.kill('SIGKILL');
  });
  return {
    directory,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    child,
    ended,
    printed: () => printed,
    events: () =>
      readFileSync(eventsFile, 'utf8')
        .trim()
        .split('\n')
        .filter((line) => line !== ''),
    processes: () => listDescendants(child.pid ?? 0),
  };
}

async function untilAnnounced(fake: FakeInstallation): Promise<void> {
  await waitFor('the announcement', fake.printed, (printed) => printed.includes('announced'));
}

async function assertNothingLeft(entries: readonly ProcessEntry[]): Promise<void> {
  await waitFor(
    'every process to be gone',
    () => entries.filter(isRunning).map((entry) => entry.command),
    (left) => left.length === 0,
    15_000,
  );
}

function pidOf(fake: FakeInstallation, role: string): number {
  const entry = fake.processes().find((candidate) => candidate.command.endsWith(`fake-process.ts ${role}`));
  assert.ok(entry, `no ${role} process runs`);
  return entry.pid;
}

describe('supervisor', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // A Ctrl-C, which is the other one, is below.
    const options = signal === 'SIGTERM' ? {} : AT_LENGTH_ONLY;
    test(`${signal}: gateways drain first, then jobs, then postgres, and nothing is left`, options, async (context) => {
      const fake = await startFake(context, { env: { FAKE_DRAIN_MS: '100' } });
      await untilAnnounced(fake);
      const entries = fake.processes();
      assert.equal(entries.length, 4);
      assert.match(fake.events()[0] ?? '', /^postgres \d+ ready$/);
      const commandOf = (role: string): string => entries.find(({ pid }) => pid === pidOf(fake, role))?.command ?? '';
      assert.match(commandOf('jobs'), / --heap-growing-percent=300 --single-threaded-gc /);
      assert.match(commandOf('gateway'), / --max-inlined-bytecode-size-cumulative=2000 --max-semi-space-size=8 /);
      fake.child.kill(signal);
      assert.deepEqual(await fake.ended, [0, null]);
      assert.deepEqual(entries.filter(isRunning), []);
      const ends = fake
        .events()
        .filter((event) => / drain(ed)?$/.test(event))
        .map((event) => event.replace(/ \d+/, ''));
      assert.deepEqual(ends, [
        'gateway drain',
        'gateway drain',
        'gateway drained',
        'gateway drained',
        'jobs drain',
        'jobs drained',
        'postgres drain',
        'postgres drained',
      ]);
    });
  }

  test('a Ctrl-C that reaches the whole process group drains in order too', AT_LENGTH_ONLY, async (context) => {
    const fake = await startFake(context, { env: { FAKE_DRAIN_MS: '100' } });
    await untilAnnounced(fake);
    const entries = fake.processes();
    for (const entry of entries) process.kill(entry.pid, 'SIGINT');
    fake.child.kill('SIGINT');
    fake.child.kill('SIGINT');
    assert.deepEqual(await fake.ended, [0, null]);
    assert.deepEqual(entries.filter(isRunning), []);
    assert.equal(fake.events().filter((event) => event.startsWith('gateway') && event.endsWith('drained')).length, 2);
  });

  test(
    'a start and a stop that take long say which processes they wait for, and how many requests',
    AT_LENGTH_ONLY,
    async (context) => {
      const directory = temporaryDirectory(context);
      const slow = join(directory, 'broken.slow.jobs');
      writeFileSync(slow, '');
      const fake = await startFake(context, {
        gateways: 1,
        directory,
        env: { FAKE_DRAIN_MS: '1500', FAKE_INFLIGHT: '3' },
      });
      await waitFor('a note of jobs', fake.printed, (printed) => printed.includes('Starting: waiting for jobs'));
      assert.match(fake.printed(), /^Starting: waiting for jobs \(Postgres and ClickHouse\)\.$/m);
      unlinkSync(slow);
      await untilAnnounced(fake);
      fake.child.kill('SIGTERM');
      await fake.ended;
      assert.match(
        fake.printed(),
        /^Stopping: waiting for gateway-1 to finish 3 open requests, for at most 5 s; a second Ctrl-C cuts what is open\.$/m,
      );
    },
  );

  test('a second Ctrl-C cuts a drain that takes too long', AT_LENGTH_ONLY, async (context) => {
    const fake = await startFake(context, { env: { FAKE_DRAIN_MS: '4000' } });
    await untilAnnounced(fake);
    const entries = fake.processes();
    fake.child.kill('SIGINT');
    await waitFor('the drain to begin', fake.events, (events) =>
      events.some((event) => event.startsWith('gateway') && event.endsWith('drain')),
    );
    await new Promise((resolve) => setTimeout(resolve, 700));
    fake.child.kill('SIGINT');
    await fake.ended;
    assert.deepEqual(entries.filter(isRunning), []);
    assert.equal(
      fake.events().some((event) => event.startsWith('gateway') && event.endsWith('drained')),
      false,
    );
  });

  test('what is killed is started again, and /readyz and /metrics say so', async (context) => {
    const fake = await startFake(context);
    await untilAnnounced(fake);
    assert.equal((await httpCall(`${fake.adminUrl}/readyz`)).status, 200);
    for (const role of ['gateway', 'jobs', 'postgres']) {
      const pid = pidOf(fake, role);
      process.kill(pid, 'SIGKILL');
      await waitFor(
        `a new ${role}`,
        () => fake.processes(),
        (entries) => entries.length === 4 && !entries.some((entry) => entry.pid === pid),
      );
    }
    await waitFor(
      'readiness',
      async () => (await httpCall(`${fake.adminUrl}/readyz`)).status,
      (status) => status === 200,
    );
    const metrics = (await httpCall(`${fake.adminUrl}/metrics`)).body.toString();
    assert.match(metrics, /^tollgate_process_restarts_total\{role="gateway"\} 1$/m);
    assert.match(metrics, /^tollgate_processes_ready\{role="gateway"\} 2$/m);
    assert.equal((await httpCall(`${fake.adminUrl}/healthz`)).status, 200);
    assert.equal((await httpCall(`${fake.adminUrl}/elsewhere`)).status, 404);
    fake.child.kill('SIGTERM');
    assert.deepEqual(await fake.ended, [0, null]);
  });

  test('/readyz names what a process lacks, and one that does not answer', async (context) => {
    const fake = await startFake(context);
    await untilAnnounced(fake);
    const ready = async () => (await httpCall(`${fake.adminUrl}/readyz`)).body.toString();
    // A process that is slow to answer is one that does not, for this moment.
    const becomes = (text: string) => waitFor('what /readyz says', ready, (said) => said === text);
    const lacking = join(fake.directory, 'broken.lacks.gateway');
    writeFileSync(lacking, '');
    await becomes('not ready: gateway-1: what it needs, gateway-2: what it needs\n');
    unlinkSync(lacking);
    await becomes('ready\n');
    const pid = pidOf(fake, 'jobs');
    process.kill(pid, 'SIGSTOP');
    await becomes('not ready: jobs: no answer\n');
    process.kill(pid, 'SIGCONT');
    await becomes('ready\n');
    fake.child.kill('SIGTERM');
    await fake.ended;
  });

  test('a gateway that stands still is replaced; one that answers late is not', AT_LENGTH_ONLY, async (context) => {
    const fake = await startFake(context, { gateways: 2, env: { FAKE_WATCH_STEP_MS: '500' } });
    await untilAnnounced(fake);
    const gateways = () =>
      fake
        .processes()
        .filter((entry) => entry.command.endsWith('gateway'))
        .map(({ pid }) => pid);
    const [still = 0, slow = 0] = gateways();
    process.kill(still, 'SIGSTOP');
    // Each time it goes on, what it was asked meanwhile is answered.
    const pausing = setInterval(() => {
      process.kill(slow, 'SIGSTOP');
      setTimeout(() => process.kill(slow, 'SIGCONT'), 700);
    }, 1_500);
    context.after(() => clearInterval(pausing));
    await waitFor(
      'another in its place',
      () => gateways().filter((pid) => pid !== still).length,
      (count) => count === 2,
    );
    clearInterval(pausing);
    process.kill(slow, 'SIGCONT');
    await waitFor(
      'readiness',
      async () => (await httpCall(`${fake.adminUrl}/readyz`)).status,
      (status) => status === 200,
    );
    assert.ok(gateways().includes(slow));
    assert.match(fake.printed(), /no sign of life/);
    fake.child.kill('SIGTERM');
    await fake.ended;
  });

  test('counters of processes that ended stay in /metrics', AT_LENGTH_ONLY, async (context) => {
    const fake = await startFake(context);
    await untilAnnounced(fake);
    const starts = async () =>
      /^fake_starts_total\{role="gateway"\} (\d+)$/m.exec(
        (await httpCall(`${fake.adminUrl}/metrics`)).body.toString(),
      )?.[1];
    assert.equal(await starts(), '2');
    process.kill(pidOf(fake, 'gateway'), 'SIGKILL');
    await waitFor('the third start', starts, (count) => count === '3');
    fake.child.kill('SIGTERM');
    await fake.ended;
  });

  test('SIGHUP replaces the gateways one by one, each after its successor is ready', async (context) => {
    const fake = await startFake(context);
    await untilAnnounced(fake);
    const before = fake.processes().filter((entry) => entry.command.endsWith('gateway'));
    fake.child.kill('SIGHUP');
    await assertNothingLeft(before);
    await waitFor(
      'two new gateways',
      () => fake.processes().filter((entry) => entry.command.endsWith('gateway')).length,
      (count) => count === 2,
    );
    const order = fake
      .events()
      .filter((event) => event.startsWith('gateway'))
      .slice(2)
      .map((event) => event.split(' ')[2]);
    assert.deepEqual(order, ['ready', 'drain', 'drained', 'ready', 'drain', 'drained']);
    fake.child.kill('SIGTERM');
    assert.deepEqual(await fake.ended, [0, null]);
  });

  test('killed outright, it leaves nothing; the next start takes over', async (context) => {
    const fake = await startFake(context, { env: { FAKE_DRAIN_MS: '300' } });
    await untilAnnounced(fake);
    const entries = fake.processes();
    fake.child.kill('SIGKILL');
    await fake.ended;
    const next = await startFake(context, { directory: fake.directory });
    await untilAnnounced(next);
    // Its own processes came up only after the earlier ones were gone.
    assert.deepEqual(entries.filter(isRunning), []);
    next.child.kill('SIGTERM');
    assert.deepEqual(await next.ended, [0, null]);
  });

  test('started by npm, it ends with its parent, however that ends', AT_LENGTH_ONLY, async (context) => {
    const directory = temporaryDirectory(context);
    const eventsFile = join(directory, 'events');
    writeFileSync(eventsFile, '');
    const env = { ...process.env, FAKE_EVENTS: eventsFile, FAKE_ENDS_WITH_PARENT: '1' };
    // The shell waits instead of turning into the command, as npm's does.
    const script = `"${process.execPath}" "${MODULE}" "${directory}" 1 ${await findFreePort()}; exit 0`;
    const shell = spawn('sh', ['-c', script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(shell.stdout, 'data');
    const entries = listDescendants(shell.pid ?? 0);
    assert.equal(entries.length, 4);
    shell.kill('SIGKILL');
    await assertNothingLeft(entries);
    const ends = readFileSync(eventsFile, 'utf8').match(/^\w+ \d+ drained$/gm) ?? [];
    assert.deepEqual(
      ends.map((event) => event.split(' ')[0]),
      ['gateway', 'jobs', 'postgres'],
    );
  });

  test('a second start of a running installation is refused by name', async (context) => {
    const fake = await startFake(context);
    await untilAnnounced(fake);
    const second = await startFake(context, { directory: fake.directory });
    assert.deepEqual(await second.ended, [3, null]);
    assert.match(second.printed(), new RegExp(`held by ${fake.child.pid}`));
    fake.child.kill('SIGTERM');
    assert.deepEqual(await fake.ended, [0, null]);
  });

  test('a process that cannot start makes the start fail, without a leftover', async (context) => {
    const directory = temporaryDirectory(context);
    writeFileSync(join(directory, 'broken.jobs'), '');
    const fake = await startFake(context, { directory });
    assert.deepEqual(await fake.ended, [1, null]);
    assert.match(fake.printed(), /jobs does not start; the log lines above say why/);
    assert.deepEqual(fake.processes(), []);
  });

  test('one that fails a few times and then starts is waited for', AT_LENGTH_ONLY, async (context) => {
    const directory = temporaryDirectory(context);
    const broken = join(directory, 'broken.gateway');
    writeFileSync(broken, '');
    const fake = await startFake(context, { directory, gateways: 1 });
    await waitFor(
      'two failures',
      fake.events,
      (events) => events.filter((event) => event.endsWith('broken')).length >= 2,
    );
    unlinkSync(broken);
    await untilAnnounced(fake);
    fake.child.kill('SIGTERM');
    assert.deepEqual(await fake.ended, [0, null]);
  });

  test('a stop while it starts ends what was started', AT_LENGTH_ONLY, async (context) => {
    const directory = temporaryDirectory(context);
    writeFileSync(join(directory, 'broken.gateway'), '');
    const fake = await startFake(context, { directory, gateways: 1 });
    await waitFor('the first failure', fake.events, (events) => events.some((event) => event.endsWith('broken')));
    fake.child.kill('SIGTERM');
    assert.deepEqual(await fake.ended, [0, null]);
    assert.deepEqual(fake.processes(), []);
  });
});
