// Deletes old facts by whole months, each of which is a partition: dropping one costs nothing and leaves no part of a
// day behind.

import { type ClickHouseClient, selectRows } from './clickhouse.ts';

/** Drops the partitions that ended before an instant; returns their months, first to last. */
export async function dropFactMonthsBefore(client: ClickHouseClient, beforeMs: number): Promise<string[]> {
  const [table] = await selectRows<{ engine: string }>(
    client,
    `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'request_facts'`,
  );
  // The parts of a distributed table are on its shards (deploy/clickhouse/cluster).
  if (table?.engine === 'Distributed')
    throw new Error('the facts are on a cluster, which keeps their time itself: give request_facts_local a TTL');
  const rows = await selectRows<{ month: string }>(
    client,
    `SELECT DISTINCT partition_id AS month FROM system.parts WHERE database = currentDatabase()
      AND table = 'request_facts' AND active ORDER BY month`,
  );
  const past = rows.map(({ month }) => month).filter((month) => monthEndMs(month) <= beforeMs);
  for (const month of past)
    await client.command({ query: `ALTER TABLE request_facts DROP PARTITION ID ${quoteMonth(month)}` });
  return past;
}

function monthEndMs(month: string): number {
  const [, year, number] = /^([0-9]{4})(0[1-9]|1[0-2])$/.exec(month) ?? [];
  return year === undefined ? Number.POSITIVE_INFINITY : Date.UTC(Number(year), Number(number), 1);
}

/** A partition id cannot be a parameter of a statement. */
function quoteMonth(month: string): string {
  if (!/^[0-9]{6}$/.test(month)) throw new Error(`not a month of facts: ${month}`);
  return `'${month}'`;
}
