// Runs of jobs. A row is both the claim of a run, which only one process of the cluster gets, and the record of its
// result. A run that an operator requested is a row without a machine until a jobs process takes it.

import type { Actor } from '../../domain/identity/actor.ts';
import type { JobName } from '../../domain/jobs/job-names.ts';
import type { JobRun } from '../../domain/jobs/job-run.ts';
import { recordAudit } from './identity/audit.ts';
import type { Postgres, PostgresClient } from './pool.ts';

/** Returns the run's id to the process that inserts first, null to all others. */
export async function claimJobRun(
  postgres: PostgresClient,
  run: { name: string; dueAtMs: number; machine: string },
): Promise<string | null> {
  const { rows } = await postgres.query<{ id: string }>(
    `INSERT INTO job_runs (name, due_at, machine) VALUES ($1, to_timestamp($2::double precision / 1000), $3)
     ON CONFLICT (name, due_at) DO NOTHING RETURNING id::text`,
    [run.name, run.dueAtMs, run.machine],
  );
  return rows[0]?.id ?? null;
}

const REQUEST = `INSERT INTO job_runs (name, due_at, machine) VALUES ($1, clock_timestamp(), '') RETURNING id::text`;

/** Requests that any jobs process runs a job now; returns the run's id. */
export async function requestJobRun(postgres: PostgresClient, name: JobName): Promise<string> {
  const { rows } = await postgres.query<{ id: string }>(REQUEST, [name]);
  return rows[0]?.id ?? '';
}

/** The same on behalf of a person, with an audit entry. */
export async function requestAuditedRun(postgres: Postgres, actor: Actor, name: JobName): Promise<string> {
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<{ id: string }>(REQUEST, [name]);
    await recordAudit(client, actor, {
      organizationId: null,
      action: 'job.run',
      target: { kind: 'job', id: name },
      after: { runId: rows[0]?.id },
    });
    return rows[0]?.id ?? '';
  });
}

/** Claims the oldest requested run that nobody has; null when there is none. */
export async function claimRequestedRun(
  postgres: PostgresClient,
  machine: string,
): Promise<{ id: string; name: string } | null> {
  const { rows } = await postgres.query<{ id: string; name: string }>(
    {
      name: 'claim_requested_run',
      text: `UPDATE job_runs SET machine = $1, started_at = clock_timestamp()
              WHERE id = (SELECT id FROM job_runs WHERE machine = '' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
          RETURNING id::text, name`,
    },
    [machine],
  );
  return rows[0] ?? null;
}

/**
 * Withdraws a requested run, so that it does not run when nobody waits for it any more. False: a process has taken it
 * already.
 */
export async function withdrawJobRun(postgres: PostgresClient, id: string): Promise<boolean> {
  const { rowCount } = await postgres.query(`DELETE FROM job_runs WHERE id = $1 AND machine = ''`, [id]);
  return rowCount > 0;
}

/** Records the end of a run. The row of a run whose process died never gets an end. */
export async function finishJobRun(
  postgres: PostgresClient,
  run: { id: string; error: string | null; details: object | null },
): Promise<void> {
  await postgres.query('UPDATE job_runs SET finished_at = clock_timestamp(), error = $2, details = $3 WHERE id = $1', [
    run.id,
    run.error,
    run.details,
  ]);
}

interface RunRow {
  readonly name: string;
  readonly machine: string;
  readonly started_ms: number;
  readonly finished_ms: number | null;
  readonly error: string | null;
  readonly details: Readonly<Record<string, unknown>> | null;
}

const COLUMNS = `r.name, r.machine, (extract(epoch FROM r.started_at) * 1000)::double precision AS started_ms,
  (extract(epoch FROM r.finished_at) * 1000)::double precision AS finished_ms, r.error, r.details`;

export async function readJobRun(postgres: PostgresClient, id: string): Promise<JobRun | null> {
  const { rows } = await postgres.query<RunRow>(`SELECT ${COLUMNS} FROM job_runs r WHERE r.id = $1`, [id]);
  return rows[0] === undefined ? null : toRun(rows[0]);
}

/** The latest run of each job on any machine; `succeeded`: the latest that succeeded. */
export async function listLastRuns(
  postgres: PostgresClient,
  names: readonly string[],
  which: 'any' | 'succeeded' = 'any',
): Promise<JobRun[]> {
  const { rows } = await postgres.query<RunRow>(
    `SELECT ${COLUMNS} FROM unnest($1::text[]) AS job (name) CROSS JOIN LATERAL (
       SELECT * FROM job_runs
        WHERE name = job.name AND machine <> '' AND ($2 = 'any' OR (finished_at IS NOT NULL AND error IS NULL))
        ORDER BY due_at DESC LIMIT 1
     ) r`,
    [names, which],
  );
  return rows.map(toRun);
}

export async function forgetJobRuns(postgres: PostgresClient, olderThanDays: number): Promise<number> {
  const { rowCount } = await postgres.query(`DELETE FROM job_runs WHERE due_at < now() - make_interval(days => $1)`, [
    olderThanDays,
  ]);
  return rowCount;
}

function toRun(row: RunRow): JobRun {
  const { name, machine, error, details } = row;
  return { name, machine, startedAtMs: row.started_ms, finishedAtMs: row.finished_ms, error, details };
}
