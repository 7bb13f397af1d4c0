// A single jobs process without logs, until it is killed or told to end. Arguments: data directory, Postgres URL.

import { join } from 'node:path';
import { runJobs } from '../../jobs/run-jobs.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { JOBS_SETTINGS } from './jobs-settings.ts';
import { silentLog } from './postgres.ts';

const [dataDirectory = '', databaseUrl = ''] = process.argv.slice(2);
const config = {
  ...JOBS_SETTINGS,
  dataDirectory,
  databaseUrl,
  clickhouseUrl: null,
  reportsListen: { socketPath: join(dataDirectory, 'reports.sock') },
};
const jobs = await runJobs({ config, log: silentLog, clock: systemClock, metrics: new MetricsRegistry() });
process.send?.('ready');
process.once('SIGTERM', () => void jobs.drain(5_000).then(() => process.exit(0)));
