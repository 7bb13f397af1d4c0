// Reads the request facts of a stopped installation: the embedded engine belongs to one process, so jobs must have
// ended.

import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';

/** Runs one query on the facts of this data directory. */
export async function queryFacts<Row>(dataDir: string, query: string): Promise<Row[]> {
  const client = await createClickHouse({ directory: join(dataDir, 'clickhouse') }, systemClock);
  try {
    return await selectRows<Row>(client, query);
  } finally {
    await client.close();
  }
}
