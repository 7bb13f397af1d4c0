// The id of a ClickHouse, which lies in it: whatever its hosts are called and whichever replica answers, it is the same
// one.

import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';

/** A row of applied_migrations, which a cluster keeps in common; migrations begin with 1. */
const IDENTITY_NUMBER = 0;

/** Makes the id where there is none. To be called by one process at a time, once the table is there. */
export async function identifyClickHouse(client: ClickHouseClient): Promise<string> {
  const [row] = await selectRows<{ checksum: string }>(
    client,
    `SELECT checksum FROM applied_migrations FINAL WHERE number = ${IDENTITY_NUMBER}`,
  );
  if (row !== undefined) return row.checksum;
  const id = randomUUID();
  await client.insert({
    table: 'applied_migrations',
    values: [{ number: IDENTITY_NUMBER, name: 'identity', checksum: id }],
    format: 'JSONEachRow',
  });
  return id;
}
