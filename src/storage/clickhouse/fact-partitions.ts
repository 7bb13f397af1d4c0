// Deletes old facts by whole months. Each month is a partition, and dropping a partition costs almost nothing and
// leaves no part of a day behind.

import { DAY_MS } from '../../platform/durations.ts';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';
import type { ChangedDays, DayNumber } from './sealed-days.ts';

/** The months of partitions that ended before an instant, first to last. */
export async function findFactMonthsBefore(client: ClickHouseClient, beforeMs: number): Promise<string[]> {
  const [table] = await selectRows<{ engine: string }>(
    client,
    `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'request_facts'`,
  );
  // The parts of a distributed table are on its shards (deploy/clickhouse/cluster).
  if (table?.engine === 'Distributed')
    throw new Error('the facts are on a cluster, where old ones must be dropped by a TTL of request_facts_local');
  const rows = await selectRows<{ month: string }>(
    client,
    `SELECT DISTINCT partition_id AS month FROM system.parts WHERE database = currentDatabase()
      AND table = 'request_facts' AND active ORDER BY month`,
  );
  return rows.map(({ month }) => month).filter((month) => monthEndMs(month) <= beforeMs);
}

export async function dropFactMonths(client: ClickHouseClient, months: readonly string[]): Promise<void> {
  for (const month of months)
    await client.command({ query: `ALTER TABLE request_facts DROP PARTITION ID ${quoteMonth(month)}` });
}

/** All days of the months, each changed from its start. */
export function daysOfMonths(months: readonly string[]): ChangedDays {
  return new Map(months.flatMap(daysOfMonth).map((day) => [day, day * DAY_MS]));
}

function daysOfMonth(month: string): DayNumber[] {
  const endDay = monthEndMs(month) / DAY_MS;
  const firstDay = Date.UTC(Number(month.slice(0, 4)), Number(month.slice(4)) - 1, 1) / DAY_MS;
  return Array.from({ length: endDay - firstDay }, (_, index) => firstDay + index);
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
