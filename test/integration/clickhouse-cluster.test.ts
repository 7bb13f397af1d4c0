// The cluster's schema (deploy/clickhouse/cluster) against the embedded one: the same columns and keys, statements that
// parse, migrations that are in it.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { splitStatements } from '../../src/storage/clickhouse/migrate.ts';
import { CLICKHOUSE_MIGRATIONS, openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';

const CLUSTER = join(CLICKHOUSE_MIGRATIONS, 'cluster');

function sqlFiles(directory: string): string[] {
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .sort();
}

const statements = sqlFiles(CLUSTER).flatMap((file) => splitStatements(readFileSync(join(CLUSTER, file), 'utf8')));

let clickhouse: TestClickHouse;
before(async () => {
  clickhouse = await openTestClickHouse();
});
after(() => clickhouse.close());

/** As one server without a Keeper has it. */
function onOneServer(statement: string): string {
  return statement
    .replace(" ON CLUSTER '{cluster}'", '')
    .replace(/ReplicatedReplacingMergeTree\('[^']*', '[^']*'(?:, )?/, 'ReplacingMergeTree(')
    .replaceAll(/replicated_deduplication_window(?:_seconds)? = \d+,\s*/g, '');
}

describe('the cluster schema', () => {
  test('has the columns, types, codecs, comments, defaults and keys of the embedded one, in its order', async () => {
    const [create = ''] = statements;
    assert.match(create, /^CREATE TABLE IF NOT EXISTS request_facts_local ON CLUSTER/);
    await clickhouse.client.command({ query: onOneServer(create) });
    const schemaOf = async (table: string): Promise<unknown> => ({
      columns: await selectRows(
        clickhouse.client,
        `SELECT position, name, type, default_kind, default_expression, comment, compression_codec FROM system.columns
          WHERE database = currentDatabase() AND table = {table:String}
         ORDER BY position`,
        { table },
      ),
      keys: await selectRows(
        clickhouse.client,
        `SELECT partition_key, sorting_key, primary_key, extract(engine_full, '^\\w+\\(\\w*\\)') AS engine,
          extract(engine_full, 'min_age_to_force_merge_seconds = \\d+') AS merging,
          extract(engine_full, 'vertical_merge_algorithm_min_rows_to_activate = \\d+') AS merging_by_column
         FROM system.tables WHERE database = currentDatabase() AND name = {table:String}`,
        { table },
      ),
      indexes: await selectRows(
        clickhouse.client,
        `SELECT name, type_full, expr FROM system.data_skipping_indices
          WHERE database = currentDatabase() AND table = {table:String}`,
        { table },
      ),
    });
    assert.deepEqual(await schemaOf('request_facts_local'), await schemaOf('request_facts'));
  });

  test('is made of statements that the server can read', async () => {
    assert.ok(statements.length >= 5);
    for (const statement of statements) {
      await clickhouse.client.command({
        query: `EXPLAIN AST ${statement.startsWith('INSERT') ? onOneServer(statement) : statement}`,
      });
    }
    const distributed = statements.find((statement) => statement.includes('Distributed(')) ?? '';
    assert.match(distributed, /^CREATE TABLE IF NOT EXISTS request_facts ON CLUSTER .* AS request_facts_local\s/);
    assert.match(distributed, /sipHash64\(organization_id\)\)$/);
  });

  test('has settings by names that exist', async () => {
    const profile = statements.find((statement) => statement.startsWith('CREATE SETTINGS PROFILE')) ?? '';
    const names = [...profile.matchAll(/^\s*(\w+) = /gm)].map(([, name]) => name);
    assert.ok(names.includes('distributed_foreground_insert') && names.includes('insert_quorum'));
    const known = await selectRows<{ name: string }>(
      clickhouse.client,
      'SELECT name FROM system.settings WHERE name IN {names:Array(String)}',
      { names },
    );
    assert.deepEqual(new Set(known.map(({ name }) => name)), new Set(names));
  });

  test('says that it has every migration', () => {
    const migrations = sqlFiles(CLICKHOUSE_MIGRATIONS).map((file) => {
      const checksum = createHash('sha256')
        .update(readFileSync(join(CLICKHOUSE_MIGRATIONS, file), 'utf8'))
        .digest('hex');
      return `(${Number(file.slice(0, 4))}, '${file.slice(0, -'.sql'.length)}', '${checksum}')`;
    });
    const insert = statements.find((statement) => statement.startsWith('INSERT INTO applied_migrations')) ?? '';
    assert.deepEqual(insert.match(/\([0-9]+, '.*?'\)/g), migrations);
  });
});
