// `tollgate jobs`: ships the spools of this machine into Postgres and ClickHouse, and runs the scheduled jobs.

import type { Serving } from '../supervisor/process-lifecycle.ts';
import type { Command } from './command.ts';
import { type ProcessParts, serveProcess } from './serve-process.ts';

export const jobsCommand: Command = {
  usage: ['tollgate jobs'],
  summary: 'Runs the jobs process alone (systemd, Kubernetes), beside the gateways whose DATA_DIR it shares.',
  run: (args, context) => serveProcess({ name: 'jobs', outlastsGateways: true, start }, args, context),
};

/** Loaded here, not above: --help and the other commands have no use for what it brings. */
async function start(parts: ProcessParts): Promise<Serving> {
  const { runJobs } = await import('../../jobs/run-jobs.ts');
  return runJobs(parts);
}
