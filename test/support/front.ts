// A gateway and jobs in the test's own process: what `tollgate apply`, `tollgate gateway` and `tollgate jobs` run, with
// real sockets and a real database, without a supervisor and its processes. For tests that ask for no report and kill
// nothing; it starts for half to nine tenths of what an installation costs (gateway.ts).

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runJobs } from '../../jobs/run-jobs.ts';
import { readConfig } from '../../src/config.ts';
import { runGateway } from '../../src/gateway/run-gateway.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { startAdminServer } from '../../src/supervisor/admin-server.ts';
import { completeConfig } from '../../src/supervisor/complete-config.ts';
import { makeSocketDirectories } from '../../src/supervisor/reports-address.ts';
import { expectDocumentedAnswers } from './documented-answers.ts';
import { findFreePort } from './free-port.ts';
import { NOWHERE, runCommand, settingsOf, type Tollgate } from './gateway.ts';
import { silentLog, startTestPostgres } from './postgres.ts';
import { removeInstallation } from './remove-installation.ts';

const DRAIN_LIMIT_MS = 10_000;

export type Front = Pick<Tollgate, 'url' | 'adminUrl' | 'postgresUrl' | 'dataDir' | 'run' | 'stop'>;

export interface FrontOptions {
  readonly configurationYaml: string;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startFront({ configurationYaml, env: settings = {} }: FrontOptions): Promise<Front> {
  const server = await startTestPostgres();
  const postgresUrl = await server.createDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const env = settingsOf({
    dataDir,
    port,
    adminPort,
    databaseUrl: postgresUrl,
    env: { CLICKHOUSE_URL: NOWHERE, ...settings },
  });
  const ends: (() => Promise<unknown>)[] = [() => server.stop()];
  const run = (args: readonly string[]) => runCommand(args, env);
  const front: Front = {
    url: `http://127.0.0.1:${port}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    postgresUrl,
    dataDir,
    run,
    async stop() {
      for (const end of ends.toReversed()) await end();
      removeInstallation(dataDir);
    },
  };
  try {
    await start();
  } catch (fault) {
    await front.stop().catch(() => undefined);
    throw fault;
  }
  expectDocumentedAnswers(front.url);
  return front;

  async function start(): Promise<void> {
    const file = join(dataDir, 'tollgate.yaml');
    writeFileSync(file, configurationYaml);
    const applied = await run(['apply', file]);
    if (applied.exitCode !== 0) throw new Error(applied.output);
    const config = completeConfig(readConfig(env));
    makeSocketDirectories(config.dataDirectory, config);
    const parts = { config, log: silentLog, clock: systemClock };
    const registries = [new MetricsRegistry(), new MetricsRegistry()] as const;
    // Gateways end first, because jobs ships what they wrote.
    const jobs = await runJobs({ ...parts, metrics: registries[0] });
    ends.push(() => jobs.drain(DRAIN_LIMIT_MS));
    const gateway = await runGateway({ ...parts, metrics: registries[1] });
    ends.push(() => gateway.drain(DRAIN_LIMIT_MS));
    const admin = await startAdminServer({
      host: '127.0.0.1',
      port: adminPort,
      orNext: false,
      metrics: async () => MetricsRegistry.render(MetricsRegistry.merge(registries.map((one) => one.snapshot()))),
      readiness: async () => ({ notReady: gateway.notReady(), impaired: gateway.impaired() }),
    });
    if (admin === null) throw new Error(`port ${adminPort} is taken`);
    ends.push(() => admin.close());
  }
}
