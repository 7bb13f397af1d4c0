// What a scheduled job is given and what it gives back.

import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { JobGauges } from './job-gauges.ts';

export interface JobContext {
  readonly postgres: Postgres;
  /** Throws while ClickHouse is away: the run fails, is recorded as failed, and the next one tries again. */
  readonly clickhouse: () => ClickHouseClient;
  readonly log: Log;
  readonly clock: Clock;
  readonly gauges: JobGauges;
  /** null: facts are kept. */
  readonly factsRetentionDays: number | null;
}

/** Kept with the run's record. `drift`: what was found that should not be; above zero is an alarm. */
export type JobResult = Readonly<Record<string, unknown>> & { readonly drift?: number };
