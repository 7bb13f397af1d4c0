// The one Postgres of a test run: each installation and each test has a database of its own in it, a copy of one that
// is migrated already.

import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { MIGRATIONS_DIRECTORY, withDatabase } from './postgres.ts';
import { removeInstallation } from './remove-installation.ts';
import { silentLog } from './silent-log.ts';

const TEMPLATE = 'migrated';
/**
 * It outlives no crash of the machine; who kills a Postgres has one of his own. No database lives long enough to need
 * a vacuum.
 */
const SETTINGS = ['fsync=off', 'full_page_writes=off', 'wal_compression=off', 'autovacuum=off'];

/** Test files find it in TEST_POSTGRES_URL and TEST_POSTGRES_TEMPLATE. */
export async function startSharedPostgres(directory: string): Promise<{ stop(): Promise<void> }> {
  const server = await startEmbeddedPostgres({
    dataDir: directory,
    log: silentLog,
    furtherArguments: SETTINGS.flatMap((setting) => ['-c', setting]),
  });
  const owner = createPostgres({ url: server.url, log: silentLog, max: 1 });
  // A run opens thousands of connections, and nobody guesses this password.
  await owner.query('SET scram_iterations = 1');
  await owner.query(`ALTER USER CURRENT_USER PASSWORD '${/:([^:@]*)@/.exec(server.url)?.[1]}'`);
  await owner.query(`CREATE DATABASE ${TEMPLATE}`);
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
    },
  };
}
