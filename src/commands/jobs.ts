// `tollgate jobs`: ships the spools of this machine into Postgres and ClickHouse, and runs the scheduled jobs.

import { readConfig } from '../config.ts';
import { StartFault } from '../installation/start-fault.ts';
import { missingStores } from '../storage/embedded-stores.ts';
import type { Serving } from '../supervisor/process-lifecycle.ts';
import type { Command, CommandContext } from './command/command.ts';
import { type ProcessParts, serveProcess } from './command/serve-process.ts';

export const jobsCommand: Command = {
  usage: ['tollgate jobs'],
  summary: 'Runs the jobs process alone (systemd, Kubernetes), beside the gateways whose DATA_DIR it shares.',
  run,
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  // An installation beside this process may have an embedded Postgres, so only ClickHouse is required here.
  const { clickhouseUrl } = readConfig(context.environment);
  const missing = missingStores({ databaseUrl: '', clickhouseUrl });
  if (missing.length > 0) throw new StartFault(missing.join('\n'));
  return serveProcess({ name: 'jobs', outlastsGateways: true, start }, args, context);
}

/** Imported here and not at the top, so that --help and other commands do not load it. */
async function start(parts: ProcessParts): Promise<Serving> {
  const { runJobs } = await import('../../jobs/run-jobs.ts');
  return runJobs(parts);
}
