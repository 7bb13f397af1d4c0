// `tollgate reconcile`: makes the jobs process run one job now, or all of them, and prints the results; or compares a
// provider's bill with the ledger (reconcile-invoice.ts).

import { setTimeout as sleep } from 'node:timers/promises';
import type { JobName } from '../domain/jobs/job-names.ts';
import type { JobRun } from '../domain/jobs/job-run.ts';
import { systemClock } from '../platform/clock.ts';
import { readJobRun, requestJobRun, withdrawJobRun } from '../storage/postgres/job-runs.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { INVOICE_USAGE, reconcileInvoice } from './reconcile/reconcile-invoice.ts';

export const reconcileCommand: Command = {
  usage: ['tollgate reconcile [JOB]', INVOICE_USAGE],
  summary:
    'Runs one job of reconciliation now, or all, and prints the results. Exit code 0: all is well, 1: a job ' +
    "failed or found a difference. invoice: compares a provider's exports of usage and costs with the records, " +
    'by day, model and key, and names likely causes (docs/invoices.md). Exit code 0: everything is within ' +
    '--tolerance, 1: something is not, 2: a file cannot be read.',
  run,
};

const POLL_MS = 200;
/**
 * The jobs process looks for requested runs every two seconds. If a run is not taken within this time, there is no jobs
 * process.
 */
const TAKEN_LIMIT_MS = 15_000;
const ENDED_LIMIT_MS = 300_000;

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const [first, ...others] = args;
  if (first === 'invoice') return reconcileInvoice(others, context);
  const { environment, print } = context;
  const { positionals } = parseArguments(args, {});
  const { JOBS } = await import('../../jobs/scheduling/schedule.ts');
  if (positionals.length > 0) expectPositionals(positionals, ['JOB']);
  const [wanted] = positionals;
  const chosen = JOBS.filter(({ name, cron }) => (wanted === undefined ? cron !== null : name === wanted));
  if (chosen.length === 0)
    throw new UsageFault(`there is no job "${wanted}"; there are ${JOBS.map(({ name }) => name).join(', ')}`);
  return withDatabase(environment, async (postgres) => {
    let isWell = true;
    for await (const [name, outcome] of runNow(postgres, chosen)) {
      print(`${name}: ${describe(outcome)}`);
      if (
        outcome === null ||
        outcome.error !== null ||
        outcome.finishedAtMs === null ||
        Number(outcome.details?.['drift'] ?? 0) > 0
      )
        isWell = false;
    }
    return isWell ? 0 : 1;
  });
}

/** Requests all runs at once, and yields each when it has ended. null: no jobs process took it. */
async function* runNow(
  postgres: Postgres,
  jobs: readonly { readonly name: JobName }[],
): AsyncGenerator<[name: string, outcome: JobRun | null]> {
  const requests: [string, string][] = [];
  for (const { name } of jobs) requests.push([name, await requestJobRun(postgres, name)]);
  for (const [name, id] of requests) yield [name, await waitForRun(postgres, id)];
}

async function waitForRun(postgres: Postgres, id: string): Promise<JobRun | null> {
  const sinceMs = systemClock.monotonicMs();
  for (;;) {
    const run = await readJobRun(postgres, id);
    const waitedMs = systemClock.monotonicMs() - sinceMs;
    if (run === null || run.finishedAtMs !== null || waitedMs > ENDED_LIMIT_MS) return run;
    if (run.machine === '' && waitedMs > TAKEN_LIMIT_MS && (await withdrawJobRun(postgres, id))) return null;
    await sleep(POLL_MS);
  }
}

function describe(run: JobRun | null): string {
  if (run === null) return 'no jobs process took it';
  if (run.finishedAtMs === null) return `still running on ${run.machine}`;
  if (run.error !== null) return `failed: ${run.error}`;
  const { durationMs, drift = 0, ...found } = run.details ?? {};
  const verdict = drift === 0 ? 'ok' : `DIFFERENT (${Number(drift)})`;
  return `${verdict}, ${Number(durationMs)} ms, ${JSON.stringify(found)}`;
}
