// Migrates a ClickHouse to the schema of this version: numbered SQL files, checksummed and recorded like those of
// Postgres.
//
// ClickHouse has no transactions and no locks. Statements are therefore written so that they can run twice (IF NOT
// EXISTS), a file counts as applied once its last statement has run, and the caller ensures that only one process
// migrates at a time.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AppliedMigration, readNeeds, refuseLeftBehind } from '../schema-fit.ts';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/;

/**
 * Applies the missing migrations and returns their names. The table of migrations also has the id of this ClickHouse
 * (identify-clickhouse.ts). Inserts into it are synced, so that a power cut cannot lose an id that Postgres knows.
 */
export async function migrateClickHouse(client: ClickHouseClient, directory: string): Promise<string[]> {
  await client.command({
    query: `
      CREATE TABLE IF NOT EXISTS applied_migrations (number UInt32, name String, checksum String,
        applied_at DateTime64(3, 'UTC') DEFAULT now64(3), needs Nullable(UInt32))
      ENGINE = ReplacingMergeTree ORDER BY number
      SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
  });
  if (!(await hasNeeds(client)))
    await client.command({ query: 'ALTER TABLE applied_migrations ADD COLUMN IF NOT EXISTS needs Nullable(UInt32)' });
  const rows = await selectRows<AppliedMigration & { readonly checksum: string }>(
    client,
    'SELECT number, name, checksum, needs FROM applied_migrations FINAL ORDER BY number',
  );
  const migrations = readMigrations(directory);
  refuseLeftBehind('ClickHouse', rows, migrations.at(-1));
  const checksums = new Map(rows.map((row) => [row.name, row.checksum]));
  const applied: string[] = [];
  for (const migration of migrations) {
    const checksum = checksums.get(migration.name);
    if (checksum !== undefined && checksum !== migration.checksum) {
      throw new Error(
        `ClickHouse migration ${migration.name} was changed after it was applied; write a new one instead`,
      );
    }
    if (checksum !== undefined) continue;
    for (const statement of migration.statements) await client.command({ query: statement });
    await client.insert({ table: 'applied_migrations', values: [pickRecorded(migration)], format: 'JSONEachRow' });
    applied.push(migration.name);
  }
  return applied;
}

/** Checked first, because on a cluster the database user may be allowed to insert and not to alter tables. */
async function hasNeeds(client: ClickHouseClient): Promise<boolean> {
  const rows = await selectRows(
    client,
    `SELECT name FROM system.columns
      WHERE database = currentDatabase() AND table = 'applied_migrations' AND name = 'needs'`,
  );
  return rows.length > 0;
}

interface Migration extends AppliedMigration {
  readonly checksum: string;
  readonly statements: readonly string[];
}

function pickRecorded({ statements: _statements, ...recorded }: Migration): Omit<Migration, 'statements'> {
  return recorded;
}

function readMigrations(directory: string): Migration[] {
  const names = readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .sort();
  return names.map((file, index) => {
    const number = Number(FILE_NAME.exec(file)?.[1] ?? Number.NaN);
    if (number !== index + 1)
      throw new Error(`${join(directory, file)} is not named NNNN-what-it-does.sql with the next number, ${index + 1}`);
    const sql = readFileSync(join(directory, file), 'utf8');
    return {
      number,
      name: file.slice(0, -'.sql'.length),
      checksum: createHash('sha256').update(sql).digest('hex'),
      needs: readNeeds(sql),
      statements: splitStatements(sql),
    };
  });
}

/** ClickHouse takes one statement at a time. A statement ends with a semicolon at the end of a line. */
export function splitStatements(sql: string): string[] {
  const withoutComments = sql.replace(/^\s*--.*$/gm, '');
  return withoutComments
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
