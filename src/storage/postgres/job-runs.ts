// Runs of scheduled jobs: the row is both the claim, which only one process in the cluster gets, and the record of what came of it.

import type { PostgresClient } from './pool.ts';

/** The run's id for whoever inserts first; null for everybody else. */
export async function claimJobRun(postgres: PostgresClient, run: { name: string; dueAtMs: number; machine: string }): Promise<string | null> {
  const { rows } = await postgres.query<{ id: string }>(
    `INSERT INTO job_runs (name, due_at, machine) VALUES ($1, to_timestamp($2::double precision / 1000), $3)
     ON CONFLICT (name, due_at) DO NOTHING RETURNING id::text`,
    [run.name, run.dueAtMs, run.machine],
  );
  return rows[0]?.id ?? null;
}

/** A run that never gets here died with its process; its row says so by having no end. */
export async function finishJobRun(postgres: PostgresClient, run: { id: string; error: string | null; details: object | null }): Promise<void> {
  await postgres.query('UPDATE job_runs SET finished_at = now(), error = $2, details = $3 WHERE id = $1', [run.id, run.error, run.details]);
}

export async function forgetJobRuns(postgres: PostgresClient, olderThanDays: number): Promise<number> {
  const { rowCount } = await postgres.query(`DELETE FROM job_runs WHERE due_at < now() - make_interval(days => $1)`, [olderThanDays]);
  return rowCount;
}
