// Migrates a database to the schema of this version: numbered SQL files, each applied once, in order, in its own
// transaction.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SchemaTooNew } from '../schema-too-new.ts';
import type { Postgres, PostgresClient } from './pool.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly sql: string;
}

/** The number of the advisory lock; no other lock uses it. */
const ADVISORY_LOCK = 7_060_155_441;
const LOCK_POLL_MS = 100;
const LOCK_WAIT_MS = 600_000;
/** The migrations of this version. */
const DIRECTORY = path.join(import.meta.dirname, '../../../deploy/postgres');
const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/**
 * Applies the missing migrations; returns their names. Processes that start together wait for one another at the lock.
 */
export async function migratePostgres(postgres: Postgres, directory: string): Promise<string[]> {
  const migrations = readMigrations(directory);
  await underLock(postgres, (client) =>
    client.query(`
      CREATE TABLE IF NOT EXISTS applied_migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`),
  );
  await refuseNewer(postgres, migrations);
  const applied: string[] = [];
  for (const migration of migrations) {
    if (await underLock(postgres, (client) => applyMigration(client, migration))) applied.push(migration.name);
  }
  return applied;
}

/** Throws SchemaTooNew when a newer version has migrated the database: for commands that use it without migrating. */
export async function refuseNewerSchema(postgres: PostgresClient): Promise<void> {
  const { rows } = await postgres.query<{ is_there: boolean }>(
    `SELECT to_regclass('applied_migrations') IS NOT NULL AS is_there`,
  );
  if (rows[0]?.is_there === true) await refuseNewer(postgres, readMigrations(DIRECTORY));
}

async function refuseNewer(postgres: PostgresClient, migrations: readonly Migration[]): Promise<void> {
  const { rows } = await postgres.query<{ name: string }>(
    'SELECT name FROM applied_migrations WHERE number > $1 ORDER BY number DESC LIMIT 1',
    [migrations.at(-1)?.number ?? 0],
  );
  const newest = rows[0]?.name;
  if (newest !== undefined) throw new SchemaTooNew('Postgres', { newest, known: migrations.at(-1)?.name ?? 'none' });
}

async function applyMigration(client: PostgresClient, migration: Migration): Promise<boolean> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'SELECT name, checksum FROM applied_migrations WHERE number = $1',
    [migration.number],
  );
  const found = rows[0];
  if (found !== undefined) {
    if (found.checksum === migration.checksum) return false;
    throw new Error(
      `migration ${migration.name} was changed after this database applied it as ${found.name}; write a ` +
        `new migration instead`,
    );
  }
  await client.query(migration.sql);
  await client.query('INSERT INTO applied_migrations (number, name, checksum) VALUES ($1, $2, $3)', [
    migration.number,
    migration.name,
    migration.checksum,
  ]);
  return true;
}

/**
 * Runs `work` in a transaction that holds the migration lock. It polls for the lock, because a statement that waited in
 * Postgres would hit its time limit.
 */
async function underLock<T>(postgres: Postgres, work: (client: PostgresClient) => Promise<T>): Promise<T> {
  for (let waitedMs = 0; waitedMs < LOCK_WAIT_MS; waitedMs += LOCK_POLL_MS) {
    const outcome = await postgres.transaction(async (client): Promise<{ result: T } | null> => {
      const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
        ADVISORY_LOCK,
      ]);
      return rows[0]?.locked === true ? { result: await work(client) } : null;
    });
    if (outcome !== null) return outcome.result;
    await sleep(LOCK_POLL_MS);
  }
  throw new Error('another process has been migrating this database for ten minutes');
}

function readMigrations(directory: string): Migration[] {
  const migrations = readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file): Migration => {
      const match = FILE_NAME.exec(file);
      if (match === null) throw new Error(`${path.join(directory, file)} is not named NNNN-what-it-does.sql`);
      const sql = readFileSync(path.join(directory, file), 'utf8');
      return {
        number: Number(match[1]),
        name: file.slice(0, -4),
        checksum: createHash('sha256').update(sql).digest('hex'),
        sql,
      };
    });
  for (const [index, migration] of migrations.entries()) {
    if (migration.number !== index + 1)
      throw new Error(`${path.join(directory, migration.name)}.sql: the next migration must have number ${index + 1}`);
  }
  return migrations;
}
