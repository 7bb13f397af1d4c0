// `tollgate status`: shows whether this installation runs and is ready, and how its jobs went.

import { get } from 'node:http';
import { hostname } from 'node:os';
import { type Environment, readConfig } from '../config.ts';
import type { JobRun } from '../domain/jobs/job-run.ts';
import { isSilent } from '../domain/processes/live-figures.ts';
import { readAddresses } from '../installation/addresses.ts';
import { findInstallationHolder } from '../installation/installation-lock.ts';
import { systemClock } from '../platform/clock.ts';
import { listLastRuns } from '../storage/postgres/job-runs.ts';
import { readProcesses } from '../storage/postgres/processes/beats.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { describeProcess } from './process.ts';

export const statusCommand: Command = {
  usage: ['tollgate status'],
  summary:
    'Says whether this installation (DATA_DIR) runs and is ready, and how its jobs went; for processes without a ' +
    'supervisor (DATABASE_URL), which of them run on this machine. Exit code 0: ready, 1: not.',
  run,
};

const ASK_LIMIT_MS = 3_000;
const RESULT_LENGTH_MAX = 60;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  expectPositionals(parseArguments(args, {}).positionals, []);
  const { dataDirectory, databaseUrl } = readConfig(environment);
  const holder = findInstallationHolder(dataDirectory);
  if (holder === null) {
    print(databaseUrl === null ? `not running (${dataDirectory})` : `no supervisor is running (${dataDirectory})`);
    return databaseUrl === null ? 1 : showLoneProcesses(environment, print);
  }
  const addresses = readAddresses(dataDirectory);
  const readiness = addresses === null ? null : await ask(`${addresses.adminUrl}/readyz`);
  print(`running as process ${holder.pid} (${dataDirectory})`);
  if (addresses === null || readiness === null) {
    print('not ready: starting, or its admin address does not answer');
    return 1;
  }
  print(`serves ${addresses.url}, admin ${addresses.adminUrl}\n${readiness.text.trim()}`);
  await printJobs(environment, print);
  return readiness.ok ? 0 : 1;
}

/**
 * Shows gateways and jobs that a service manager runs one by one. They have no supervisor to ask, so their reports in
 * Postgres (beats) are read.
 */
async function showLoneProcesses(environment: Environment, print: (text: string) => void): Promise<number> {
  const machine = hostname();
  const nowMs = systemClock.nowMs();
  const all = await withDatabase(environment, (postgres) => readProcesses(postgres, nowMs));
  const here = all.filter((process) => process.machine === machine);
  const running = here.filter((process) => !isSilent(process, nowMs)).map(({ kind }) => kind);
  const missing = ['gateway', 'jobs'].filter((kind) => !running.includes(kind));
  for (const state of here) print(describeProcess(state, nowMs));
  print(
    missing.length === 0
      ? `running on ${machine}: a gateway and jobs reported in the last seconds`
      : `not running on ${machine}: no ${missing.join(' and no ')} process reported in the last seconds`,
  );
  await printJobs(environment, print);
  return missing.length === 0 ? 0 : 1;
}

async function printJobs(environment: Environment, print: (text: string) => void): Promise<void> {
  const { JOBS, nextDueTime } = await import('../../jobs/scheduling/schedule.ts');
  const runs = await withDatabase(environment, (postgres) =>
    listLastRuns(
      postgres,
      JOBS.map(({ name }) => name),
    ),
  ).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  if (runs instanceof Error) return print(`jobs: ${runs.message}`);
  const last = new Map(runs.map((run) => [run.name, run]));
  const rows = JOBS.map((job) => [job.name, ...describeRun(last.get(job.name)), momentOf(nextDueTime(job)?.getTime())]);
  const table = [['job', 'last run (UTC)', 'result', 'took', 'next (UTC)'], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of table)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

/** The start, the result and the duration of a run. */
function describeRun(run: JobRun | undefined): [string, string, string] {
  if (run === undefined) return ['-', 'not yet', '-'];
  const { startedAtMs, finishedAtMs, error, details } = run;
  const drift = Number(details?.['drift'] ?? 0);
  const result =
    finishedAtMs === null
      ? 'no end'
      : error !== null
        ? `failed: ${error.slice(0, RESULT_LENGTH_MAX)}`
        : drift > 0
          ? `DIFFERENT (${drift})`
          : 'ok';
  return [momentOf(startedAtMs), result, finishedAtMs === null ? '-' : `${Math.round(finishedAtMs - startedAtMs)} ms`];
}

function momentOf(timeMs: number | undefined): string {
  return timeMs === undefined ? '-' : new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ');
}

async function ask(url: string): Promise<{ ok: boolean; text: string } | null> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: ASK_LIMIT_MS, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ ok: response.statusCode === 200, text }));
      response.on('error', () => resolve(null));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}
