// A ClickHouse for tests: the embedded engine with the product's schema. A process has one engine, so the tests of a
// file share it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { type ClickHouseClient, createClickHouse } from '../../src/storage/clickhouse/clickhouse.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';

export const CLICKHOUSE_MIGRATIONS = join(import.meta.dirname, '../../deploy/clickhouse');

export interface TestClickHouse {
  readonly client: ClickHouseClient;
  readonly directory: string;
  /** Opens a further connection, which is closed with the others. */
  connect(): Promise<ClickHouseClient>;
  /** Forgets all facts, for the next test. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function openTestClickHouse(): Promise<TestClickHouse> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-clickhouse-'));
  const client = await createClickHouse({ directory }, systemClock);
  const connections = [client];
  await migrateClickHouse(client, CLICKHOUSE_MIGRATIONS);
  return {
    client,
    directory,
    connect: async () => {
      const further = await createClickHouse({ directory }, systemClock);
      connections.push(further);
      return further;
    },
    clear: async () => {
      await client.command({ query: 'TRUNCATE TABLE request_facts' });
    },
    close: async () => {
      for (const connection of connections.toReversed()) await connection.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
