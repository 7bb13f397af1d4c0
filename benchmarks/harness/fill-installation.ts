// Puts facts into the embedded ClickHouse of an installation that is not running: node
// benchmarks/harness/fill-installation.ts DATA_DIR FACTS. A process of its own, since the engine is loaded for good.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/platform/clock.ts';
import { createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { migrateClickHouse } from '../../src/storage/clickhouse/migrate.ts';
import { fillFacts } from './fill-facts.ts';

const MERGES_SETTLE_MS = 30_000;
const LOOK_MS = 500;

const [dataDirectory = '', facts = ''] = process.argv.slice(2);
const client = await createClickHouse({ directory: join(dataDirectory, 'clickhouse') }, systemClock);
try {
  await migrateClickHouse(client, join(import.meta.dirname, '../../deploy/clickhouse'));
  await fillFacts(client, Number(facts));
  // Parts that are merged now need no merge during the measurement.
  const untilMs = performance.now() + MERGES_SETTLE_MS;
  while (performance.now() < untilMs && (await selectRows(client, 'SELECT 1 FROM system.merges')).length > 0)
    await sleep(LOOK_MS);
} finally {
  await client.close();
}
