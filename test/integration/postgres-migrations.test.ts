// Migrations: applied once, in order, under a lock; a changed one is refused.

import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import {
  MIGRATIONS_DIRECTORY,
  silentLog,
  startTestPostgres,
  type TestPostgres,
  withDatabase,
} from '../support/postgres.ts';

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
