// A gateway and jobs in the test's own process: runs the code of `tollgate apply`, `tollgate gateway` and `tollgate
// jobs` with real sockets and real databases, but without a supervisor and its processes. For tests that kill nothing:
// its start costs half to nine tenths of that of an installation (gateway.ts).

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runJobs } from '../../jobs/run-jobs.ts';
import { readConfig } from '../../src/config.ts';
import { runGateway } from '../../src/gateway/run-gateway.ts';
import { completeConfig } from '../../src/installation/complete-config.ts';
import { makeSocketDirectories } from '../../src/installation/reports-address.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { startAdminServer } from '../../src/supervisor/admin-server.ts';
import { expectDocumentedAnswers } from './documented-answers.ts';
import { endAll } from './end-all.ts';
import { findFreePort } from './free-port.ts';
import { NOWHERE, runCommand, settingsOf, type Tollgate } from './gateway.ts';
import { startTestPostgres } from './postgres.ts';
import { removeInstallation } from './remove-installation.ts';

const DRAIN_LIMIT_MS = 10_000;

export type Front = Pick<Tollgate, 'url' | 'adminUrl' | 'postgresUrl' | 'dataDir' | 'run' | 'output' | 'stop'>;

export interface FrontOptions {
  readonly configurationYaml: string;
  readonly env?: Readonly<Record<string, string>>;
  /** For tests that request reports: uses the embedded ClickHouse, of which a process has one at a time. */
  readonly reports?: true;
}

export async function startFront({ configurationYaml, env: settings = {}, reports }: FrontOptions): Promise<Front> {
  const server = await startTestPostgres();
  const postgresUrl = await server.createDatabase();
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir);
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const env = settingsOf({
    dataDir,
    port,
    adminPort,
    databaseUrl: postgresUrl,
    env: { ...(reports === true ? {} : { CLICKHOUSE_URL: NOWHERE }), ...settings },
  });
  let logged = '';
  const log = createLog({ level: 'warn', process: 'front', destination: { write: (line) => (logged += line) } });
  const ends: (() => Promise<unknown>)[] = [() => server.stop()];
  const run = (args: readonly string[]) => runCommand(args, env);
  const front: Front = {
    url: `http://127.0.0.1:${port}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    postgresUrl,
    dataDir,
    run,
    output: () => logged,
    async stop() {
      await endAll(ends);
      removeInstallation(dataDir);
      rmSync(directory, { recursive: true });
    },
  };
  try {
    await start();
  } catch (fault) {
    await front.stop().catch(() => undefined);
    throw fault;
  }
  expectDocumentedAnswers(front.url, settings);
  return front;

  async function start(): Promise<void> {
    const file = join(directory, 'tollgate.yaml');
    writeFileSync(file, configurationYaml);
    const applied = await run(['apply', file]);
    if (applied.exitCode !== 0) throw new Error(applied.output);
    const config = completeConfig(readConfig(env));
    makeSocketDirectories(config.dataDirectory, config);
    const parts = { config, log, clock: systemClock };
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
