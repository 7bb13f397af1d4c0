// Migrations: applied once, in order, under a lock; a changed one is refused.

import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { MIGRATIONS_DIRECTORY, silentLog, startTestPostgres, type TestPostgres, withDatabase } from '../support/postgres.ts';

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
  const processes = Array.from({ length: 4 }, () => createPostgres({ url: withDatabase(server.url, name), log: silentLog, max: 1 }));
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
