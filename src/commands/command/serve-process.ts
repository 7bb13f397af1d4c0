// Runs the one serving process of `tollgate gateway` or `tollgate jobs`: under a supervisor, with which it talks over
// its channel, or alone with an admin server of its own.

import { type CompleteConfig, localUrl, readConfig } from '../../config.ts';
import { completeConfig } from '../../installation/complete-config.ts';
import { refuseWeakSecrets } from '../../installation/production-secrets.ts';
import { makeSocketDirectories } from '../../installation/reports-address.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import { createLog, type Log, logToStderr } from '../../platform/log.ts';
import { MetricsRegistry } from '../../platform/metrics.ts';
import { takeProfile } from '../../platform/profile.ts';
import { registerBuildInfo } from '../../platform/version.ts';
import { startAdminServer } from '../../supervisor/admin-server.ts';
import { ProcessLifecycle, type Serving } from '../../supervisor/process-lifecycle.ts';
import { type CommandContext, expectPositionals, parseArguments } from './command.ts';

export interface ProcessParts {
  readonly config: CompleteConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Call it during the start with the parts that must be closed if the process ends before the start is complete. */
  readonly drainsWith: (starting: Serving) => void;
}

export interface ServingProcess {
  readonly name: 'gateway' | 'jobs';
  readonly outlastsGateways: boolean;
  readonly start: (parts: ProcessParts) => Promise<Serving>;
}

/** Never resolves, because the lifecycle ends the process. */
export async function serveProcess(
  { name, outlastsGateways, start }: ServingProcess,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const { values, positionals } = parseArguments(args, { supervised: { type: 'boolean', default: false } });
  expectPositionals(positionals, []);
  const { supervised } = values;
  const settings = readConfig(context.environment);
  // A supervisor has checked the secrets already, and may have made them.
  if (!supervised && settings.databaseUrl !== null) refuseWeakSecrets(context.environment, settings);
  const config = completeConfig(settings);
  makeSocketDirectories(config.dataDirectory, config);
  const log = createLog({ level: config.logLevel, process: name, destination: logToStderr() });
  const metrics = new MetricsRegistry();
  // A supervisor reports the build itself.
  if (!supervised) registerBuildInfo(metrics);
  const lifecycle = new ProcessLifecycle({
    log,
    metrics,
    supervised,
    outlastsGateways,
    drainLimitMs: config.drainSeconds * 1000,
  });
  const admin = supervised
    ? null
    : await startAdminServer({
        host: config.adminHost,
        port: config.adminPort,
        orNext: !config.given.has('ADMIN_PORT'),
        metrics: async () => metrics.render(),
        profiles: {
          adminToken: config.adminToken,
          processes: () => [name],
          take: (_process, kind, seconds) => takeProfile(kind, seconds),
        },
        readiness: async () => (lifecycle.serves ? lifecycle.readiness() : { notReady: [name], impaired: [] }),
      });
  if (admin === null && !supervised)
    throw new StartFault(
      `ADMIN_PORT: port ${config.adminPort} on ${config.adminHost} is in use by another program; give another ` +
        `ADMIN_PORT or stop that program`,
    );
  const drainsWith = (starting: Serving): void => lifecycle.drainsWith(starting);
  const serving = await start({ config, log, clock: systemClock, metrics, drainsWith }).catch((error: unknown) => {
    if (error instanceof StartFault) log.fatal(`cannot start: ${error.message}`);
    else log.fatal({ err: error }, 'cannot start');
    return null;
  });
  if (serving === null) return 1;
  lifecycle.drainsWith(serving);
  lifecycle.ready();
  if (admin !== null)
    context.print(
      `tollgate ${name} is ready; ${localUrl(config.adminHost, admin.port)} has /metrics, /healthz, /readyz`,
    );
  return new Promise(() => undefined);
}
