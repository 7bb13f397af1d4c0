// The id of a ClickHouse installation. It is stored in the database itself, so it does not depend on host names or on
// which replica answers.

import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';

/** The id is row 0 of applied_migrations, a table that all hosts of a cluster share; migrations begin with 1. */
const IDENTITY_NUMBER = 0;

/**
 * Returns the id, and creates it if there is none. Only one process at a time may call this, after the table was
 * created.
 */
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
