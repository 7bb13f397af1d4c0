// A binary that a newer schema leaves behind starts nothing and changes nothing: it says which schema it met, which it
// knows, and what to do.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { migratePostgres } from '../../src/storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { CLICKHOUSE_MIGRATIONS, openTestClickHouse } from '../support/clickhouse.ts';
import { findFreePort } from '../support/free-port.ts';
import { MIGRATIONS_DIRECTORY, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import { silentLog } from '../support/silent-log.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const REFUSAL =
  /Postgres has the schema 9999-of-tomorrow, and this version of Tollgate knows none after \d{4}-[a-z-]+: .* Run that version or a newer one/;

describe('a database of a newer version', () => {
  let server: TestPostgres;
  let postgres: Postgres;
  let databaseUrl: string;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));

  before(async () => {
    server = await startTestPostgres();
    databaseUrl = await server.createDatabase();
    postgres = createPostgres({ url: databaseUrl, log: silentLog, max: 1 });
    await postgres.query(
      `INSERT INTO applied_migrations (number, name, checksum, needs) VALUES (9999, '9999-of-tomorrow', 'x', 9999)`,
    );
    writeFileSync(join(directory, 'tollgate.yaml'), testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }));
  });
  after(async () => {
    await postgres?.close();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function run(...args: string[]): Promise<{ exitCode: number | null; output: string }> {
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const [MASTER_KEY, DELEGATION_KEY, ADMIN_TOKEN] = [1, 2, 3].map(() => randomBytes(32).toString('base64'));
    const secrets = { MASTER_KEY, DELEGATION_KEY, ADMIN_TOKEN };
    const env = {
      ...process.env,
      ...secrets,
      DATABASE_URL: databaseUrl,
      DATA_DIR: join(directory, 'data'),
      PORT: `${port}`,
      ADMIN_PORT: `${adminPort}`,
    };
    const child = spawn(process.execPath, [COMMAND, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, output })));
  }

  test('is not migrated', async () => {
    await assert.rejects(migratePostgres(postgres, MIGRATIONS_DIRECTORY), REFUSAL);
  });

  test('start, gateway, jobs, apply and every other command end with the reason, and nothing is written', async () => {
    const file = join(directory, 'tollgate.yaml');
    for (const args of [['start', '--config', file], ['gateway'], ['jobs'], ['apply', file], ['org', 'list']]) {
      const { exitCode, output } = await run(...args);
      assert.equal(exitCode, 1, `${args.join(' ')}: ${output}`);
      assert.match(output, REFUSAL, args.join(' '));
    }
    const { rows } = await postgres.query(
      `SELECT (SELECT count(*) FROM process_epochs) + (SELECT count(*) FROM organizations) + (SELECT count(*)
        FROM providers) AS count`,
    );
    assert.deepEqual(rows, [{ count: '0' }]);
  });
});

test('a ClickHouse of a newer version is refused likewise', async () => {
  const engine = await openTestClickHouse();
  try {
    await engine.client.insert({
      table: 'applied_migrations',
      values: [{ number: 9999, name: '9999-of-tomorrow', checksum: 'x', needs: 9999 }],
      format: 'JSONEachRow',
    });
    await assert.rejects(
      migrateClickHouse(engine.client, CLICKHOUSE_MIGRATIONS),
      /ClickHouse has the schema 9999-of-tomorrow, and this version of Tollgate knows none after \d{4}-[a-z-]+:/,
    );
  } finally {
    await engine.close();
  }
});
