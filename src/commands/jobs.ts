// `tollgate jobs`: ships the spools of this machine into Postgres and ClickHouse, and runs the scheduled jobs.

import type { Serving } from '../supervisor/process-lifecycle.ts';
import type { Command } from './command.ts';
import { type ProcessParts, serveProcess } from './serve-process.ts';

export const jobsCommand: Command = {
  usage: ['tollgate jobs'],
  summary: 'Runs the jobs process alone (systemd, Kubernetes), beside the gateways whose DATA_DIR it shares.',
  run: (args, context) => serveProcess({ name: 'jobs', outlastsGateways: true, start }, args, context),
};

/** Imported here and not at the top, so that --help and other commands do not load it. */
async function start(parts: ProcessParts): Promise<Serving> {
  const { runJobs } = await import('../../jobs/run-jobs.ts');
  return runJobs(parts);
}
