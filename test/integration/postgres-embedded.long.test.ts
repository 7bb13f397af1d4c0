// The embedded server: first start, restart, crash, a supervisor that was killed, long paths, and two installations at
// once.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { copyCluster } from '../../src/storage/postgres/embedded/copy-cluster.ts';
import { embeddedPostgresUrl, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { adoptPostgresHome, makePrivateDirectory, openPostgresHome } from '../../src/storage/postgres/embedded/home.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { silentLog } from '../support/postgres.ts';
import { removeInstallation } from '../support/remove-installation.ts';

const roots: string[] = [];
const installations: string[] = [];
after(() => {
  for (const directory of installations) removeInstallation(directory);
  for (const directory of roots) rmSync(directory, { recursive: true, force: true });
});

function newDataDir(...below: string[]): string {
  const root = mkdtempSync(path.join(tmpdir(), 'tollgate-embedded-'));
  roots.push(root);
  const dataDir = path.join(root, ...below);
  installations.push(dataDir);
  return dataDir;
}

async function queryOnce(url: string, text: string): Promise<Record<string, unknown>[]> {
  const postgres = createPostgres({ url, log: silentLog, max: 1 });
  try {
    return (await postgres.query(text)).rows;
  } finally {
    await postgres.close();
  }
}

function homeOf(dataDir: string): string {
  return path.resolve(
    dataDir,
    (JSON.parse(readFileSync(path.join(dataDir, 'postgres.json'), 'utf8')) as { home: string }).home,
  );
}

const INSERT_BESIDE = `
  const client = new (require('pg').Client)({ connectionString: process.argv[1] });
  client.connect().then(() => client.query('INSERT INTO kept VALUES (2)')).then(() => client.end());
`;

test('a copy has what came into the database while that was copied which refers to it', async () => {
  const [from, to] = [newDataDir(), newDataDir()];
  const original = await startEmbeddedPostgres({ dataDir: from, log: silentLog });
  await queryOnce(original.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)');
  const home = openPostgresHome(from);
  const copied = adoptPostgresHome(to, home.password);
  await copyCluster(original.url, home.dataDirectory, copied.dataDirectory, () => {
    const made = spawnSync(process.execPath, ['-e', INSERT_BESIDE, original.url], { cwd: import.meta.dirname });
    assert.equal(made.status, 0, String(made.stderr));
  });
  await queryOnce(original.url, 'INSERT INTO kept VALUES (3)');
  await original.stop();
  makePrivateDirectory(copied.dataDirectory, copied.user);
  if (copied.user.dropsPrivileges)
    spawnSync('chown', ['-R', `${copied.user.uid}:${copied.user.gid}`, copied.dataDirectory]);
  const started = await startEmbeddedPostgres({ dataDir: to, log: silentLog });
  assert.deepEqual(await queryOnce(started.url, 'SELECT n FROM kept ORDER BY n'), [{ n: 1 }, { n: 2 }]);
  await started.stop();
});

// One data directory for all of them, because a new one is long to make.
describe('a data directory', () => {
  const dataDir = newDataDir("a path, with spaces, it's (50%) and ümlauts");

  test('data is found again by a second start, in a path with spaces, and after kill -9 of the server', async () => {
    const first = await startEmbeddedPostgres({ dataDir, log: silentLog });
    assert.equal(embeddedPostgresUrl(dataDir), first.url);
    await queryOnce(first.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)');
    await first.stop();

    const second = await startEmbeddedPostgres({ dataDir, log: silentLog });
    await queryOnce(second.url, 'INSERT INTO kept VALUES (2)');
    process.kill(second.pid, 'SIGKILL');
    assert.equal(await second.exited, 'was ended by SIGKILL');
    await second.stop();

    const third = await startEmbeddedPostgres({ dataDir, log: silentLog });
    assert.deepEqual(await queryOnce(third.url, 'SELECT n FROM kept ORDER BY n'), [{ n: 1 }, { n: 2 }]);
    assert.deepEqual(await queryOnce(third.url, 'SHOW data_checksums'), [{ data_checksums: 'on' }]);
    await third.stop();
    assert.equal(existsSync(path.join(homeOf(dataDir), 'data', 'postmaster.pid')), false);
  });

  test('a server whose supervisor was killed is stopped by the next start, which finds the data', async () => {
    const script = path.join(path.dirname(dataDir), 'hold.ts');
    const source = (file: string): string =>
      JSON.stringify(fileURLToPath(new URL(`../../src/${file}`, import.meta.url)));
    writeFileSync(
      script,
      `import { startEmbeddedPostgres } from ${source('storage/postgres/embedded/embedded-postgres.ts')};
     import { createLog } from ${source('platform/log.ts')};
     const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log: createLog({ level: 'silent', process: 'hold' }) });
     console.log(server.pid);
     setInterval(() => {}, 1000);`,
    );
    const supervisor = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const orphan = Number(
      await new Promise<string>((resolve) =>
        supervisor.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())),
      ),
    );
    const gone = new Promise((resolve) => supervisor.once('exit', resolve));
    supervisor.kill('SIGKILL');
    await gone;
    assert.doesNotThrow(() => process.kill(orphan, 0));

    const server = await startEmbeddedPostgres({ dataDir, log: silentLog });
    assert.notEqual(server.pid, orphan);
    assert.deepEqual(await queryOnce(server.url, 'SELECT 1 AS one'), [{ one: 1 }]);
    await server.stop();
  });

  test('a lock file that names some other living process does not prevent a start', async () => {
    writeFileSync(
      path.join(homeOf(dataDir), 'data', 'postmaster.pid'),
      `${process.pid}\n${homeOf(dataDir)}/data\n1\n5432\n\n\n\n\n`,
    );
    await (await startEmbeddedPostgres({ dataDir, log: silentLog })).stop();
  });

  test('an initdb that was cut half way is done again', async () => {
    const home = homeOf(dataDir);
    rmSync(path.join(home, 'data'), { recursive: true });
    mkdirSync(path.join(home, 'data.new-0badc0de', 'base'), { recursive: true });
    await (await startEmbeddedPostgres({ dataDir, log: silentLog })).stop();
    assert.equal(existsSync(path.join(home, 'data.new-0badc0de')), false);
  });
});

test('a data directory with a very long path, and two installations at once', async () => {
  const servers = await Promise.all(
    [newDataDir('l'.repeat(120), 'one'), newDataDir('l'.repeat(120), 'two')].map((dataDir) =>
      startEmbeddedPostgres({ dataDir, log: silentLog }),
    ),
  );
  const systems = await Promise.all(
    servers.map((server) => queryOnce(server.url, 'SELECT system_identifier::text AS id FROM pg_control_system()')),
  );
  assert.notDeepEqual(systems[0], systems[1]);
  for (const server of servers) await server.stop();
});
