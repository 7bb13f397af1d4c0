// Migrates a database to the schema of this version: numbered SQL files, each applied once, in order, in its own
// transaction. jobs runs the migrations while gateways serve.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../platform/log.ts';
import { StoreBusy } from '../../platform/store-busy.ts';
import { type AppliedMigration, readNeeds, refuseLeftBehind, refuseMissing } from '../schema-fit.ts';
import { createPostgres, type Postgres, type PostgresClient } from './pool.ts';

export interface Migration extends AppliedMigration {
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

/** Building an index of a large table takes long. */
const STATEMENT_TIMEOUT_MS = 600_000;
/**
 * How long a migration waits for the lock of a table. Later statements of gateways queue behind it, so this must be
 * shorter than their time limit. After a timeout the migration is tried again.
 */
const LOCK_TIMEOUT_MS = 1_000;

/** Brings the database to the schema of this version. */
export async function migrateDatabase({ url, log }: { readonly url: string; readonly log: Log }): Promise<void> {
  const postgres = createPostgres({ url, log, max: 1, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  try {
    const applied = await migratePostgres(postgres, DIRECTORY);
    if (applied.length > 0) log.info({ applied }, 'Postgres migrations applied');
  } finally {
    await postgres.close();
  }
}

/**
 * Applies the missing migrations; returns their names. Processes that start together wait for one another at the lock.
 */
export async function migratePostgres(postgres: Postgres, directory: string): Promise<string[]> {
  const migrations = readMigrations(directory);
  if (await isMigrated(postgres, migrations)) return [];
  await underLock(postgres, (client) =>
    client.query(`
      CREATE TABLE IF NOT EXISTS applied_migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      );
      ALTER TABLE applied_migrations ADD COLUMN IF NOT EXISTS needs integer`),
  );
  refuseLeftBehind('Postgres', await readApplied(postgres), migrations.at(-1));
  const applied: string[] = [];
  for (const migration of migrations) {
    if (await underLock(postgres, (client) => applyMigration(client, migration))) applied.push(migration.name);
  }
  return applied;
}

/** Throws SchemaMismatch if this version cannot run on the schema. For processes that do not migrate it themselves. */
export async function refuseUnfitSchema(postgres: PostgresClient): Promise<void> {
  const migrations = readMigrations(DIRECTORY);
  const applied = await readApplied(postgres);
  refuseLeftBehind('Postgres', applied, migrations.at(-1));
  refuseMissing(applied, migrations.at(-1));
}

interface Applied extends AppliedMigration {
  readonly checksum: string;
}

/** The applied migrations in order. Before migration 0046 the table had no column `needs`. */
async function readApplied(client: PostgresClient): Promise<Applied[]> {
  const { rows } = await client.query<{ is_there: boolean }>(
    `SELECT to_regclass('applied_migrations') IS NOT NULL AS is_there`,
  );
  if (rows[0]?.is_there !== true) return [];
  const applied = await client.query<Applied>(
    `SELECT number, name, checksum, (to_jsonb(applied_migrations) ->> 'needs')::integer AS needs
       FROM applied_migrations ORDER BY number`,
  );
  return applied.rows;
}

/** Whether all migrations are applied and unchanged. */
async function isMigrated(client: PostgresClient, migrations: readonly Migration[]): Promise<boolean> {
  const applied = await readApplied(client);
  refuseLeftBehind('Postgres', applied, migrations.at(-1));
  const checksums = new Map(applied.map(({ number, checksum }) => [number, checksum]));
  return migrations.every(({ number, checksum }) => checksums.get(number) === checksum);
}

async function applyMigration(client: PostgresClient, migration: Migration): Promise<boolean> {
  const { number, name, checksum, needs, sql } = migration;
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'SELECT name, checksum FROM applied_migrations WHERE number = $1',
    [number],
  );
  const found = rows[0];
  if (found !== undefined) {
    if (found.checksum === checksum) return false;
    throw new Error(
      `migration ${name} was changed after this database applied it as ${found.name}; write a new migration instead`,
    );
  }
  await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await client.query(sql);
  await client.query('INSERT INTO applied_migrations (number, name, checksum, needs) VALUES ($1, $2, $3, $4)', [
    number,
    name,
    checksum,
    needs,
  ]);
  return true;
}

/**
 * Runs `work` in a transaction that holds the migration lock. It polls for the lock, because a statement that waited in
 * Postgres would hit its time limit. If a table is busy, the work is tried again.
 */
async function underLock<T>(postgres: Postgres, work: (client: PostgresClient) => Promise<T>): Promise<T> {
  let waitedMs = 0;
  while (waitedMs < LOCK_WAIT_MS) {
    const outcome = await postgres
      .transaction(async (client): Promise<{ result: T } | null> => {
        const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
          ADVISORY_LOCK,
        ]);
        return rows[0]?.locked === true ? { result: await work(client) } : null;
      })
      .catch((error: unknown) => {
        if (!(error instanceof StoreBusy)) throw error;
        waitedMs += LOCK_TIMEOUT_MS;
        return null;
      });
    if (outcome !== null) return outcome.result;
    waitedMs += LOCK_POLL_MS;
    await sleep(LOCK_POLL_MS);
  }
  throw new Error('this database has been too busy to be migrated for ten minutes, or another process migrates it');
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
        needs: readNeeds(sql),
        sql,
      };
    });
  for (const [index, migration] of migrations.entries()) {
    if (migration.number !== index + 1)
      throw new Error(`${path.join(directory, migration.name)}.sql: the next migration must have number ${index + 1}`);
  }
  return migrations;
}
