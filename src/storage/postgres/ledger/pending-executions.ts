// Counts pending executions, whose charge is not known yet, and decides which of them are late.

import type { PostgresClient } from '../pool.ts';

export interface PendingExecutions {
  readonly count: number;
  /** Age of the oldest pending execution in seconds; 0: there is none. */
  readonly oldestSeconds: number;
  readonly late: readonly LateEpoch[];
}

export interface LateEpoch {
  readonly epoch: number;
  readonly machine: string;
  readonly count: number;
  readonly oldestSeconds: number;
  /**
   * The process is known to be dead and its spool was shipped, so reconciliation should have resolved its executions.
   */
  readonly closed: boolean;
}

/**
 * An open execution ends at the latest after its provider's total timeout (an hour by default), and is posted soon
 * after.
 */
const LATE_OPEN_SECONDS = 3_600;
const GRACE_SECONDS = 900;
/** Reconciliation runs every minute, so executions of closed epochs should not stay pending for longer than this. */
const LATE_CLOSED_SECONDS = 300;

const PENDING = `
  WITH pending AS (
    SELECT g.epoch, g.admitted_at, e.returned_at, coalesce(e.machine, '') AS machine,
           CASE WHEN e.returned_at IS NULL
                THEN g.admitted_at + make_interval(secs =>
                       greatest($1, (SELECT max((timeouts ->> 'totalMs')::double precision) / 1000
                                       FROM providers)) + $2)
                ELSE e.returned_at + make_interval(secs => $3) END AS late_at
      FROM generations g LEFT JOIN process_epochs e ON e.epoch = g.epoch
     WHERE g.billing_status = 'pending'
  )
  SELECT epoch, machine, returned_at IS NOT NULL AS closed, count(*)::integer AS count,
         count(*) FILTER (WHERE late_at < now())::integer AS late,
         extract(epoch FROM now() - min(admitted_at))::double precision AS oldest_seconds
    FROM pending GROUP BY epoch, machine, closed ORDER BY epoch`;

interface PendingRow {
  readonly epoch: string;
  readonly machine: string;
  readonly closed: boolean;
  readonly count: number;
  readonly late: number;
  readonly oldest_seconds: number;
}

export async function readPendingExecutions(postgres: PostgresClient): Promise<PendingExecutions> {
  const { rows } = await postgres.query<PendingRow>(PENDING, [LATE_OPEN_SECONDS, GRACE_SECONDS, LATE_CLOSED_SECONDS]);
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    oldestSeconds: Math.max(0, ...rows.map((row) => row.oldest_seconds)),
    late: rows
      .filter((row) => row.late > 0)
      .map((row) => ({
        epoch: Number(row.epoch),
        machine: row.machine,
        count: row.late,
        oldestSeconds: Math.round(row.oldest_seconds),
        closed: row.closed,
      })),
  };
}
