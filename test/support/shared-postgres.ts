// The one Postgres of a test run: each installation and each test has a database of its own in it, a copy of one that
// is migrated already.

import { chownSync, mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { MIGRATIONS_DIRECTORY, withDatabase } from './postgres.ts';
import { removeInstallation } from './remove-installation.ts';
import { silentLog } from './silent-log.ts';

const TEMPLATE = 'migrated';
/**
 * Settings for speed. The server need not survive a crash of the machine, and a test that kills a Postgres has one of
 * its own. No database lives long enough to need a vacuum. A connection is cheaper the less memory it shares.
 */
const SETTINGS = ['fsync=off', 'full_page_writes=off', 'wal_compression=off', 'autovacuum=off', 'shared_buffers=32MB'];

/**
 * A directory in memory. Copying a database mostly means making its three hundred files, which in memory costs a tenth
 * of what it costs on a disk. A run has a few dozen databases at a time, of ten megabytes each.
 */
const MEMORY_DIRECTORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2_000_000_000;

/** Test files find the server by TEST_POSTGRES_URL and TEST_POSTGRES_TEMPLATE. */
export async function startSharedPostgres(directory: string): Promise<{ stop(): Promise<void> }> {
  const server = await startEmbeddedPostgres({
    dataDir: directory,
    log: silentLog,
    furtherArguments: SETTINGS.flatMap((setting) => ['-c', setting]),
  });
  const owner = createPostgres({ url: server.url, log: silentLog, max: 1 });
  // A run opens thousands of connections, and the password need not resist guessing.
  await owner.query('SET scram_iterations = 1');
  await owner.query(`ALTER USER CURRENT_USER PASSWORD '${/:([^:@]*)@/.exec(server.url)?.[1]}'`);
  const { rows } = await owner.query<{ data_directory: string }>('SHOW data_directory');
  const memory = makeMemoryDirectory(statSync(rows[0]?.data_directory ?? '').uid);
  if (memory !== null) await owner.query(`CREATE TABLESPACE memory LOCATION '${memory}'`);
  // A copy of the template is in the template's directory.
  await owner.query(`CREATE DATABASE ${TEMPLATE}${memory === null ? '' : ' TABLESPACE memory'}`);
  await owner.close();
  const migrator = createPostgres({ url: withDatabase(server.url, TEMPLATE), log: silentLog, max: 1 });
  await migratePostgres(migrator, MIGRATIONS_DIRECTORY);
  await migrator.close();
  process.env['TEST_POSTGRES_URL'] = server.url;
  process.env['TEST_POSTGRES_TEMPLATE'] = TEMPLATE;
  return {
    async stop() {
      await server.stop();
      removeInstallation(directory);
      if (memory !== null) rmSync(memory, { recursive: true });
    },
  };
}

/** Makes an empty directory that the server owns; null: this machine has no such place, or not enough room in it. */
function makeMemoryDirectory(serverUid: number): string | null {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DIRECTORY);
    if (bavail * bsize < MEMORY_BYTES_MIN) return null;
    const directory = mkdtempSync(`${MEMORY_DIRECTORY}/tollgate-test-run-`);
    if (process.getuid?.() !== serverUid) chownSync(directory, serverUid, -1);
    return directory;
  } catch {
    return null;
  }
}
