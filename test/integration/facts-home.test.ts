// One ClickHouse has the facts of all machines that share a Postgres: whoever would begin a second one is refused, and
// a restart, a renamed host and outgrowing the embedded one are not.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { factsCommand } from '../../src/commands/facts.ts';
import { identifyClickHouse } from '../../src/storage/clickhouse/identify-clickhouse.ts';
import {
  claimFactsHome,
  lockEmbedded,
  readFactsHome,
  releaseFactsHome,
} from '../../src/storage/postgres/ledger/facts-home.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { AT_LENGTH_ONLY } from '../support/at-length.ts';
import { openTestClickHouse } from '../support/clickhouse.ts';
import { startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { silentLog } from '../support/silent-log.ts';
import { waitFor } from '../support/waiting.ts';

const ELSEWHERE = { name: 'FactsElsewhere' };
const JOBS = fileURLToPath(new URL('../support/fake-jobs.ts', import.meta.url));

let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(() => server?.stop());

describe('where the facts are', () => {
  let postgres: Postgres;
  let url: string;
  const embedded = { id: randomUUID(), kind: 'embedded', machine: 'one' } as const;
  const cluster = { id: randomUUID(), kind: 'server', machine: 'one' } as const;

  before(async () => {
    url = await server.createDatabase();
    postgres = createPostgres({ url, log: silentLog, max: 2 });
  });
  after(() => postgres?.close());

  test('the first is registered, and known again whatever its machine is called', async () => {
    assert.equal(await claimFactsHome(postgres, embedded), 'registered');
    assert.equal(await claimFactsHome(postgres, embedded), 'known');
    assert.equal(await claimFactsHome(postgres, { ...embedded, machine: 'renamed' }), 'known');
  });

  test('an embedded one of another machine is refused with what to do', async () => {
    const other = { id: randomUUID(), kind: 'embedded', machine: 'two' } as const;
    await assert.rejects(
      claimFactsHome(postgres, other),
      /in the embedded ClickHouse of one, .* same CLICKHOUSE_URL\. .*"tollgate facts release --machine one"/,
    );
    assert.equal((await readFactsHome(postgres))?.id, embedded.id);
  });

  test('a lost one beside this Postgres is replaced, but not while a process has it open', async () => {
    const next = { ...embedded, id: randomUUID() };
    const lock = await lockEmbedded({ url, log: silentLog });
    await assert.rejects(claimFactsHome(postgres, next, true), ELSEWHERE);
    await lock.release();
    assert.equal(await claimFactsHome(postgres, next, true), 'lost');
    assert.equal(await claimFactsHome(postgres, next, true), 'known');
    await assert.rejects(claimFactsHome(postgres, embedded), ELSEWHERE);
    assert.equal(await claimFactsHome(postgres, embedded, true), 'lost');
  });

  test(
    'a server takes over from an embedded one only once that has stopped; then the embedded one is ' + 'refused',
    async () => {
      const lock = await lockEmbedded({ url, log: silentLog });
      await assert.rejects(claimFactsHome(postgres, cluster), ELSEWHERE);
      await lock.release();
      assert.equal(await claimFactsHome(postgres, cluster), 'moved');
      await assert.rejects(claimFactsHome(postgres, embedded), ELSEWHERE);
      assert.equal(await claimFactsHome(postgres, { ...cluster, machine: 'two' }), 'known');
      await assert.rejects(claimFactsHome(postgres, { ...cluster, id: randomUUID() }), ELSEWHERE);
    },
  );

  test('what is released is registered by whoever comes next', async () => {
    await releaseFactsHome(postgres);
    assert.equal(await claimFactsHome(postgres, { ...cluster, id: randomUUID(), machine: 'three' }), 'registered');
  });
});

test('the id lies in the ClickHouse', async () => {
  const engine = await openTestClickHouse();
  try {
    const id = await identifyClickHouse(engine.client);
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.equal(await identifyClickHouse(engine.client), id);
  } finally {
    await engine.close();
  }
});

describe('jobs processes with embedded ClickHouses on one Postgres', { timeout: 180_000, ...AT_LENGTH_ONLY }, () => {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const running = new Set<ChildProcess>();
  let url: string;

  before(async () => {
    url = await server.createDatabase();
  });
  after(async () => {
    for (const child of running) await stop(child);
    rmSync(root, { recursive: true, force: true });
  });

  /** `failed`: what it said when it could not start. */
  async function start(directory: string): Promise<{ readonly child: ChildProcess; readonly failed: string | null }> {
    const child = fork(JOBS, [join(root, directory), url], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    running.add(child);
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const failed = await new Promise<string | null>((resolve) => {
      child.once('message', () => resolve(null));
      child.once('close', () => {
        running.delete(child);
        resolve(said);
      });
    });
    return { child, failed };
  }

  async function stop(child: ChildProcess): Promise<void> {
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGTERM');
    await ended;
    running.delete(child);
  }

  test('a second data directory is refused; a restart, also after a kill, is not', async () => {
    const first = await start('one');
    assert.equal(first.failed, null);
    assert.match(
      (await start('two')).failed ?? '',
      /FactsElsewhere|the facts of this installation are in|has an embedded ClickHouse open/,
    );
    first.child.kill('SIGKILL');
    await waitFor(
      'the killed one to be gone',
      () => running.has(first.child),
      (isThere) => !isThere,
    );
    const again = await start('one');
    assert.equal(again.failed, null);
    await stop(again.child);
    assert.match((await start('two')).failed ?? '', /the facts of this installation are in the embedded ClickHouse of/);
  });

  test('a directory that was lost: one command, and the next start makes the facts anew', async () => {
    rmSync(join(root, 'one', 'clickhouse'), { recursive: true });
    const { failed } = await start('one');
    assert.match(failed ?? '', new RegExp(`run "tollgate facts release --machine ${hostname()}"`));
    await assert.rejects(factsLine('release --machine another'), /was registered by/);
    assert.match(await factsLine(`release --machine ${hostname()}`), /^released/);
    assert.match(await factsLine('show'), /^no jobs process/);
    const again = await start('one');
    assert.equal(again.failed, null);
    await assert.rejects(factsLine(`release --machine ${hostname()}`), /runs and has the facts open: stop it first/);
    assert.match(await factsLine('show'), new RegExp(`^embedded  [0-9a-f-]{36}  registered by ${hostname()} `));
    const postgres = createPostgres({ url, log: silentLog, max: 1 });
    const { rowCount } = await postgres.query("SELECT FROM job_runs WHERE name = 'rebuild-facts'");
    await postgres.close();
    assert.equal(rowCount, 2, 'once at the very first, and once now');
    await stop(again.child);
  });

  async function factsLine(line: string): Promise<string> {
    const printed: string[] = [];
    const environment = { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') };
    await factsCommand.run(line.split(' '), { environment, print: (text) => void printed.push(text) });
    return printed.join('\n');
  }

  test('a copy of the data directory is refused while the other runs', async () => {
    cpSync(join(root, 'one'), join(root, 'copy'), { recursive: true });
    const original = await start('one');
    assert.equal(original.failed, null);
    assert.match(
      (await start('copy')).failed ?? '',
      /another process has an embedded ClickHouse open for this database/,
    );
    await stop(original.child);
    const moved = await start('copy');
    assert.equal(moved.failed, null);
    await stop(moved.child);
  });
});
