// Migrations: applied once, in order, under a lock; a changed one is refused. Versions that know other ones go on
// beside each other, unless one is left behind.

import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { migratePostgres, refuseUnfitSchema } from '../../src/storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import {
  MIGRATIONS_DIRECTORY,
  silentLog,
  startTestPostgres,
  type TestPostgres,
  withDatabase,
} from '../support/postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(async () => {
  await server.stop();
});

test('a second migration of the same database changes nothing', async () => {
  const postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
  try {
    assert.deepEqual(await migratePostgres(postgres, MIGRATIONS_DIRECTORY), []);
  } finally {
    await postgres.close();
  }
});

test('processes that start together apply each file once', async () => {
  const owner = createPostgres({ url: server.url, log: silentLog, max: 1 });
  const name = `migrate_${process.pid}`;
  await owner.query(`CREATE DATABASE ${name}`);
  const processes = Array.from({ length: 4 }, () =>
    createPostgres({ url: withDatabase(server.url, name), log: silentLog, max: 1 }),
  );
  try {
    const applied = await Promise.all(processes.map((postgres) => migratePostgres(postgres, MIGRATIONS_DIRECTORY)));
    const names = applied.flat().sort();
    assert.ok(names.length > 0);
    assert.deepEqual(names, [...new Set(names)]);
    assert.equal(names[0], '0001-organizations-and-keys');
  } finally {
    for (const postgres of processes) await postgres.close();
    await owner.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await owner.close();
  }
});

test('ceilings of before there were two layers are the platform’s', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'tollgate-migrations-'));
  const owner = createPostgres({ url: server.url, log: silentLog, max: 1 });
  const name = `layers_${process.pid}`;
  await owner.query(`CREATE DATABASE ${name}`);
  const postgres = createPostgres({ url: withDatabase(server.url, name), log: silentLog, max: 1 });
  try {
    const files = readdirSync(MIGRATIONS_DIRECTORY).sort();
    const layers = files.findIndex((file) => file.endsWith('two-layers-of-ceilings.sql'));
    for (const file of files.slice(0, layers))
      cpSync(path.join(MIGRATIONS_DIRECTORY, file), path.join(directory, file));
    await migratePostgres(postgres, directory);
    await postgres.query(
      `WITH tenant AS (INSERT INTO organizations (slug, display_name, billing, allowed_models)
        VALUES ('a', 'a', 'none', '{m/a,m/b}') RETURNING id),
            team AS (INSERT INTO teams (organization_id, slug, allowed_models) SELECT id, 't', '{}' FROM tenant),
            key AS (INSERT INTO api_keys (organization_id, name, key_hash, key_prefix)
              SELECT id, 'k', sha256('k'), 'tg-' FROM tenant)
       INSERT INTO usage_limits (organization_id, kind, amount) SELECT id, 'requests_per_minute', 5 FROM tenant`,
    );
    await migratePostgres(postgres, MIGRATIONS_DIRECTORY);
    assert.deepEqual((await postgres.query('SELECT kind, set_by FROM usage_limits')).rows, [
      { kind: 'requests_per_minute', set_by: 'platform' },
    ]);
    const lists = 'allowed_models, platform_allowed_models, organization_allowed_models';
    const { rows } = await postgres.query(
      `SELECT ${lists} FROM organizations UNION ALL SELECT ${lists} FROM teams UNION ALL SELECT ${lists}
        FROM api_keys ORDER BY 1 DESC NULLS LAST`,
    );
    assert.deepEqual(
      rows,
      [['m/a', 'm/b'], [], null].map((models) => ({
        allowed_models: models,
        platform_allowed_models: models,
        organization_allowed_models: null,
      })),
    );
  } finally {
    await postgres.close();
    await owner.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await owner.close();
    rmSync(directory, { recursive: true, force: true });
  }
});

test('a file that was changed after it was applied is refused by name', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'tollgate-migrations-'));
  const postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 1 });
  try {
    cpSync(MIGRATIONS_DIRECTORY, directory, { recursive: true });
    appendFileSync(path.join(directory, '0002-catalog.sql'), '-- changed\n');
    await assert.rejects(migratePostgres(postgres, directory), /migration 0002-catalog was changed after/);
  } finally {
    await postgres.close();
    rmSync(directory, { recursive: true, force: true });
  }
});

describe('a version beside another one', () => {
  let postgres: Postgres;
  beforeEach(async () => {
    postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 2 });
  });
  afterEach(() => postgres.close());

  const addNewer = (needs: number | null): Promise<unknown> =>
    postgres.query(
      `INSERT INTO applied_migrations (number, name, checksum, needs) VALUES (9998, '9998-of-tomorrow', 'x', $1),
        (9999, '9999-after-it', 'x', NULL)`,
      [needs],
    );

  test('goes on where what is newer only adds, or leaves older ones behind than this', async () => {
    await addNewer(null);
    assert.deepEqual(await migratePostgres(postgres, MIGRATIONS_DIRECTORY), []);
    await refuseUnfitSchema(postgres);
    await postgres.query('UPDATE applied_migrations SET needs = 45 WHERE number = 9998');
    await refuseUnfitSchema(postgres);
    await postgres.query('UPDATE applied_migrations SET needs = 9998 WHERE number = 9998');
    await assert.rejects(refuseUnfitSchema(postgres), /the schema 9999-after-it, .* leave this one behind/);
    await assert.rejects(migratePostgres(postgres, MIGRATIONS_DIRECTORY), /leave this one behind/);
  });

  test('is told to begin with jobs where the schema is older, or none, and jobs brings it up', async () => {
    const { rows } = await postgres.query<{ name: string }>(
      'DELETE FROM applied_migrations WHERE number = (SELECT max(number) FROM applied_migrations) RETURNING name',
    );
    const last = rows[0]?.name;
    await assert.rejects(refuseUnfitSchema(postgres), new RegExp(`needs ${last}: start jobs of this version first`));
    await postgres.query('DROP TABLE applied_migrations');
    await assert.rejects(refuseUnfitSchema(postgres), /Postgres has no schema, .* start jobs of this version first/);
  });

  test('a change of a table that somebody holds is tried again, and lets others pass meanwhile', async (context) => {
    const directory = temporaryDirectory(context);
    cpSync(MIGRATIONS_DIRECTORY, directory, { recursive: true });
    const number = readdirSync(directory).length + 1;
    const name = `${String(number).padStart(4, '0')}-of-tomorrow`;
    writeFileSync(path.join(directory, `${name}.sql`), 'ALTER TABLE wallets ADD COLUMN note text;');
    const held = Promise.withResolvers<void>();
    const holding = postgres.transaction(async (client) => {
      await client.query('LOCK TABLE wallets IN ACCESS SHARE MODE');
      for (let round = 0; round < 6; round++) await client.query('SELECT pg_sleep(0.25)');
      held.resolve();
    });
    const migrating = migratePostgres(postgres, directory);
    await held.promise;
    await holding;
    assert.deepEqual(await migrating, [name]);
    assert.deepEqual((await postgres.query('SELECT note FROM wallets')).rows, []);
  });
});
