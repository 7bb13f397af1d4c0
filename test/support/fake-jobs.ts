// The jobs process alone, quiet, until it is killed or told to end. Arguments: data directory, Postgres URL.

import { join } from 'node:path';
import { runJobs } from '../../jobs/run-jobs.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { NO_PROXIES } from '../../src/upstream/proxy-of.ts';
import { silentLog } from './postgres.ts';

const [dataDirectory = '', databaseUrl = ''] = process.argv.slice(2);
const config = {
  dataDirectory,
  databaseUrl,
  clickhouseUrl: null,
  masterKey: Buffer.alloc(32, 1),
  previousMasterKeys: [],
  webhookAllowHttp: false,
  webhookAllowPrivate: false,
  egressAllow: [],
  upstreamClient: 'own' as const,
  factsRetentionDays: null,
  delegationKey: Buffer.alloc(32, 2),
  reportsListen: { socketPath: join(dataDirectory, 'reports.sock') },
  brand: 'Service',
  proxies: NO_PROXIES,
};
const jobs = await runJobs({ config, log: silentLog, clock: systemClock, metrics: new MetricsRegistry() });
process.send?.('ready');
process.once('SIGTERM', () => void jobs.drain(5_000).then(() => process.exit(0)));
