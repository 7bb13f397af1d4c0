// A real Postgres for tests: one embedded server per test process, and a new migrated database per test; everything is
// removed at the end.

import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLog } from '../../src/platform/log.ts';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { removeInstallation } from './remove-installation.ts';

export interface TestPostgres {
  /** An address of the server, whose database is only for creating others. */
  readonly url: string;
  /** Makes a database with the current schema and returns its address. */
  createDatabase(): Promise<string>;
  stop(): Promise<void>;
}

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../deploy/postgres', import.meta.url));
export const silentLog = createLog({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent', process: 'test' });

/**
 * Starts a server in a new temporary directory, or uses the one that the test runner started for all
 * (TEST_POSTGRES_URL).
 */
export async function startTestPostgres(): Promise<TestPostgres> {
  const shared = process.env['TEST_POSTGRES_URL'];
  if (shared !== undefined) return serveDatabases(shared, null);
  const directory = mkdtempSync(path.join(tmpdir(), 'tollgate-test-'));
  const server = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
  return serveDatabases(server.url, async () => {
    await server.stop();
    removeInstallation(directory);
  });
}

/** A database with the current schema and a connection pool, for all tests of a file. */
export interface TestDatabase {
  readonly url: string;
  readonly postgres: Postgres;
  close(): Promise<void>;
}

export async function openTestDatabase(): Promise<TestDatabase> {
  const server = await startTestPostgres();
  const url = await server.createDatabase();
  const postgres = createPostgres({ url, log: silentLog });
  return {
    url,
    postgres,
    async close() {
      await postgres.close();
      await server.stop();
    },
  };
}

/**
 * The last part of CREATE DATABASE: copying a small database as files costs a third of what copying through the log
 * costs.
 */
export function copyOf(template: string): string {
  return ` TEMPLATE ${template} STRATEGY FILE_COPY`;
}

/** The address of another database on the same server. */
export function withDatabase(url: string, database: string): string {
  return url.replace(/(@[^/]*\/)[^?]*/, `$1${database}`);
}

async function serveDatabases(url: string, stopServer: (() => Promise<void>) | null): Promise<TestPostgres> {
  const owner = createPostgres({ url, log: silentLog, max: 1 });
  const prefix = `test_${randomBytes(6).toString('hex')}`;
  const made: string[] = [];
  const create = async (from: string | null): Promise<string> => {
    const name = `${prefix}_${made.length}`;
    made.push(name);
    await owner.query(`CREATE DATABASE ${name}${from === null ? '' : copyOf(from)}`);
    return name;
  };
  // The schema is applied once; each test's database is a copy of that one.
  const template = process.env['TEST_POSTGRES_TEMPLATE'] ?? (await create(null));
  if (made.length > 0) {
    const migrator = createPostgres({ url: withDatabase(url, template), log: silentLog, max: 1 });
    await migratePostgres(migrator, MIGRATIONS_DIRECTORY);
    await migrator.close();
  }
  return {
    url,
    createDatabase: async () => withDatabase(url, await create(template)),
    async stop() {
      // A server of our own is removed with all its databases.
      for (const name of stopServer === null ? made : [])
        await owner.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await owner.close();
      await stopServer?.();
    },
  };
}
