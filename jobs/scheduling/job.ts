// The input and the result of a scheduled job.

import type { ObjectStore } from '../../src/domain/media/object-store.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { ClickHouseClient } from '../../src/storage/clickhouse/clickhouse.ts';
import type { SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { SecretBox } from '../../src/storage/postgres/secret-box.ts';
import type { FactSink } from '../shipping/fact-shipping.ts';
import type { JobGauges } from './job-gauges.ts';

export interface JobContext {
  readonly postgres: Postgres;
  /** Throws while ClickHouse is away: the run is recorded as failed, and the next run tries again. */
  readonly clickhouse: () => ClickHouseClient;
  /** All facts are inserted through this (clickhouse-link.ts). */
  readonly facts: Pick<FactSink, 'insert'>;
  /** null: ClickHouse is a server, whose days are not sealed, or is away. */
  readonly sealedDays: () => SealedDays | null;
  readonly log: Log;
  readonly clock: Clock;
  readonly gauges: JobGauges;
  /** Seals and opens what is stored encrypted. */
  readonly box: SecretBox;
  /** null: facts are kept for ever. */
  readonly factsRetentionDays: number | null;
  /** null: this installation keeps no uploaded files. */
  readonly media: MediaOfJobs | null;
}

export interface MediaOfJobs {
  readonly objects: ObjectStore;
  /** null: files are kept for ever. */
  readonly retentionDays: number | null;
}

/** Stored with the run. `drift` counts the differences that were found; above zero is an alarm. */
export type JobResult = Readonly<Record<string, unknown>> & { readonly drift?: number };
