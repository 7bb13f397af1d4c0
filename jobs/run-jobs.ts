// Composition root of the jobs process: connects, ships the spools of this machine, runs the schedule, and ends in order.

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../src/platform/clock.ts';
import type { Log } from '../src/platform/log.ts';
import type { MetricsRegistry } from '../src/platform/metrics.ts';
import { createPostgres } from '../src/storage/postgres/pool.ts';
import { makeDirectoryDurably } from '../src/storage/spool/durable-file.ts';
import { ClickHouseLink } from './clickhouse-link.ts';
import { createJobGauges } from './job-gauges.ts';
import { startSchedule } from './schedule.ts';
import { createShipper } from './ship-spool.ts';

export interface JobsParts {
  readonly config: {
    readonly dataDirectory: string;
    readonly databaseUrl: string;
    /** null: the embedded ClickHouse of `dataDirectory`. */
    readonly clickhouseUrl: string | null;
  };
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

const MIGRATIONS_DIRECTORY = join(import.meta.dirname, '../deploy/clickhouse');
const STOP_LIMIT_MS = 5_000;
/** One for postings, one for the facts' cursors, the rest for scheduled jobs. */
const CONNECTIONS_MAX = 4;

/** Resolves once it ships; ClickHouse may then still be away. */
export async function runJobs({ config, log, clock, metrics }: JobsParts): Promise<{ drain(limitMs: number): Promise<void> }> {
  const spoolDirectory = join(config.dataDirectory, 'spool');
  makeDirectoryDurably(spoolDirectory);
  const postgres = createPostgres({ url: config.databaseUrl, log, max: CONNECTIONS_MAX });
  const location = config.clickhouseUrl === null ? { directory: join(config.dataDirectory, 'clickhouse') } : { url: config.clickhouseUrl };
  const link = new ClickHouseLink({ location, migrationsDirectory: MIGRATIONS_DIRECTORY, postgres, log, clock });
  const shipper = createShipper({ spoolDirectory, postgres, facts: link, log, clock, metrics });
  shipper.start();
  await link.tried;
  const gauges = createJobGauges(metrics);
  const schedule = startSchedule({ postgres, clickhouse: () => link.client(), log, clock, gauges }, hostname());
  return {
    async drain(limitMs) {
      await schedule.stop();
      await shipper.stop(Math.min(limitMs, STOP_LIMIT_MS));
      await link.close();
      await postgres.close();
    },
  };
}
