// `tollgate start`: starts an installation on this machine, from a bare checkout to a working key.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, type Environment, localUrl, readConfig, SETTING_NAMES } from '../config.ts';
import { forgetAddresses, recordAddresses } from '../installation/addresses.ts';
import { makeDataDirectory } from '../installation/installation-directory.ts';
import { type InstallationLock, type LockResult, takeInstallationLock } from '../installation/installation-lock.ts';
import { claimNextPort, claimPort, type PortClaim } from '../installation/ports.ts';
import { refuseWeakSecrets } from '../installation/production-secrets.ts';
import { readSignInFile } from '../installation/read-sign-in-file.ts';
import { reportsAddresses } from '../installation/reports-address.ts';
import { loadSecrets, type Secrets } from '../installation/secrets.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { createLog, type Log, logToStderr } from '../platform/log.ts';
import { reportsAddressText } from '../reports-settings.ts';
import { missingStores } from '../storage/embedded-stores.ts';
import { readStoredNames } from '../storage/postgres/apply/stored-names.ts';
import { embeddedPostgresUrl } from '../storage/postgres/embedded/embedded-postgres.ts';
import { refuseCopiedDirectory } from '../storage/postgres/embedded/home.ts';
import { openInstallationSecrets } from '../storage/postgres/installation-secrets.ts';
import { migrateDatabase } from '../storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../storage/postgres/pool.ts';
import { ProcessJournal } from '../supervisor/process-journal.ts';
import { type PreparedParts, Supervisor, type SupervisorPlan } from '../supervisor/supervisor.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';
import { asStartFault } from './command/database.ts';
import {
  applyOrExplain,
  readConfigurationFile,
  renderGeneratedKeys,
  renderWarnings,
  withoutNamedIn,
} from './configuration-file/configuration-file.ts';
import { consoleLink } from './console.ts';
import { type Applied, findTriable } from './start/applied.ts';
import { renderBanner } from './start/banner.ts';
import { type DemoPlace, serveDemo, serveKept } from './start/demo.ts';
import { findDemo } from './start/find-demo.ts';

export const startCommand: Command = {
  usage: ['tollgate start [--config FILE]', 'tollgate start --demo-traffic'],
  summary:
    'Starts this installation: databases, jobs and gateways. Without a file it uses the configuration that was ' +
    'applied last, or serves the demo if there is none. --demo-traffic adds an hour of made-up requests to the ' +
    'demo.',
  run: start,
};

const MAIN_MODULE = fileURLToPath(new URL('../main.ts', import.meta.url));
const POSTGRES_MODULE = fileURLToPath(new URL('../supervisor/postgres-owner.ts', import.meta.url));

interface Installation {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly environment: Environment;
  readonly log: Log;
  readonly port: number;
  /** null: uses the configuration that was applied before, or the demo. */
  readonly configurationFile: string | null;
  /** Adds an hour of made-up requests to the demo. */
  readonly demoTraffic: boolean;
}

async function start(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    config: { type: 'string' },
    'demo-traffic': { type: 'boolean', default: false },
  });
  expectPositionals(positionals, []);
  const config = readConfig(context.environment);
  refuseMissingStores(config);
  // Gateways read this file. If they found a mistake in it, they would be restarted again and again, so it is checked
  // here.
  readSignInFile(config.signInFile, context.environment);
  const configurationFile = values.config === undefined ? config.configurationFile : resolve(values.config);
  const demoTraffic = values['demo-traffic'];
  if (demoTraffic) refuseDemoTraffic(config, configurationFile);
  if (configurationFile !== null && config.databaseUrl !== null) refuseWeakSecrets(context.environment, config);
  // Mistakes in the operator's file are reported before anything starts. The demo's file is ours, and its variables are
  // known only later.
  if (configurationFile !== null) {
    const isNew = config.databaseUrl === null && !existsSync(config.dataDirectory);
    readConfigurationFile(configurationFile, context.environment, isNew ? undefined : 'later');
  }

  const mayBeDemo = configurationFile === null;
  const log = createLog({
    level: mayBeDemo ? demoLogLevel(config) : config.logLevel,
    process: 'supervisor',
    destination: logToStderr(),
  });
  makeDataDirectory(config.dataDirectory);
  if (config.databaseUrl === null) refuseCopy(config.dataDirectory);
  const lock = expectLock(takeInstallationLock(config.dataDirectory), config.dataDirectory);
  let claim: PortClaim | null = null;
  try {
    forgetAddresses(config.dataDirectory);
    const secrets = loadSecrets(config, { create: true });
    if (secrets === null) throw new StartFault('MASTER_KEY: must be given when DATABASE_URL is');
    if (!mayBeDemo && config.databaseUrl !== null)
      refuseWeakSecrets(context.environment, { ...config, masterKey: secrets.masterKey });
    // The gateways of a killed supervisor keep the port for a moment.
    await new ProcessJournal(config.dataDirectory).waitForPredecessors(log);
    claim = await claimServingPort(config, mayBeDemo);
    const installation = {
      config,
      secrets,
      environment: context.environment,
      log,
      configurationFile,
      demoTraffic,
      port: claim.port,
    };
    await new Supervisor(planOf(installation, context.print), { log, clock: systemClock }).run();
    return 0;
  } finally {
    claim?.release();
    forgetAddresses(config.dataDirectory);
    lock.release();
  }
}

function demoLogLevel({ given, logLevel }: Config): Config['logLevel'] {
  return given.has('LOG_LEVEL') ? logLevel : 'warn';
}

/** Made-up requests are allowed only in the demo's own databases, so that they never mix with real ones. */
function refuseDemoTraffic(config: Config, configurationFile: string | null): void {
  const found =
    configurationFile !== null
      ? `a configuration file is given (${configurationFile})`
      : config.databaseUrl !== null
        ? 'DATABASE_URL is given'
        : config.clickhouseUrl !== null
          ? 'CLICKHOUSE_URL is given'
          : null;
  if (found !== null) throw new UsageFault(`--demo-traffic is for the demo with its own databases, and ${found}`);
}

function refuseMissingStores(config: Config): void {
  const lines = missingStores(config);
  if (lines.length > 0) throw new StartFault(lines.join('\n'));
}

function refuseCopy(dataDirectory: string): void {
  try {
    refuseCopiedDirectory(dataDirectory);
  } catch (error) {
    throw new StartFault((error as Error).message, { cause: error });
  }
}

function expectLock(result: LockResult, dataDirectory: string): InstallationLock {
  if (result.ok) return result.lock;
  throw new StartFault(
    `this installation is already running as process ${result.holder.pid} on ${dataDirectory}; stop ` +
      `that one, or give another DATA_DIR for a second installation`,
  );
}

/** If this may be the demo and PORT is not given, a port that is in use is replaced by the next free one. */
async function claimServingPort(config: Config, mayBeDemo: boolean): Promise<PortClaim> {
  const { host, port } = config;
  const mayMove = mayBeDemo && !config.given.has('PORT');
  const claim = await (mayMove ? claimNextPort(host, port) : claimPort(host, port)).catch((error: Error) => {
    throw new StartFault(`HOST, PORT: cannot listen on ${host} port ${port}: ${error.message}`, { cause: error });
  });
  if (claim === null) throw portInUse(config);
  return claim;
}

function portInUse({ host, port }: Config): StartFault {
  return new StartFault(
    `PORT: port ${port} on ${host} is in use by another program; give another PORT or stop that program`,
  );
}

function planOf(installation: Installation, print: (text: string) => void): SupervisorPlan {
  const { config, port } = installation;
  const isEmbedded = config.databaseUrl === null;
  let databaseUrl = config.databaseUrl;
  let applied: Applied | null = null;
  const presentSecrets = secretsNow(installation);
  return {
    dataDirectory: config.dataDirectory,
    gatewayProcesses: config.gatewayProcesses,
    drainLimitMs: config.drainSeconds * 1000,
    endsWithParent: installation.environment.npm_lifecycle_event !== undefined,
    adminHost: config.adminHost,
    adminPort: config.adminPort,
    adminPortIsFixed: config.given.has('ADMIN_PORT'),
    adminToken: installation.secrets.adminToken,
    postgres: isEmbedded ? { module: POSTGRES_MODULE, args: [] } : null,
    jobs: { module: MAIN_MODULE, args: ['jobs', '--supervised'] },
    gateway: { module: MAIN_MODULE, args: ['gateway', '--supervised'] },
    environment: () => childEnvironment({ ...installation, secrets: presentSecrets() }, databaseUrl, applied),
    print,
    async prepare(parts) {
      databaseUrl ??= embeddedPostgresUrl(config.dataDirectory);
      applied = await prepareDatabase(installation, { ...parts, databaseUrl, print });
    },
    announce({ adminPort }) {
      const addresses = { url: localUrl(config.host, port), adminUrl: localUrl(config.adminHost, adminPort) };
      recordAddresses(config.dataDirectory, addresses);
      const moved = port === config.port ? null : config.port;
      print(
        renderBanner({
          ...addresses,
          moved,
          key: applied?.key ?? null,
          model: applied?.model ?? null,
          consoleLink: linkTo(config, addresses.url, applied),
        }),
      );
    },
  };
}

/** Secrets that were read from a file or a command are given to new processes for this long, then read again. */
const SECRETS_AGE_MS_MAX = 5_000;

/** The secrets for new processes: gateways that are replaced one by one get the master key that is configured then. */
function secretsNow({ config, secrets, log }: Installation): () => Secrets {
  let present = { secrets, atMs: systemClock.monotonicMs() };
  return () => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - present.atMs > SECRETS_AGE_MS_MAX) present = { secrets: readAgain(), atMs: nowMs };
    return present.secrets;
  };
  function readAgain(): Secrets {
    try {
      return loadSecrets(config, { create: false }) ?? present.secrets;
    } catch (error) {
      log.error({ err: error }, 'the master key could not be read again: processes start with the previous one');
      return present.secrets;
    }
  }
}

/**
 * The environment of a child process. Every default and every secret made here is passed on as its setting, since a
 * process reads nothing but its environment.
 */
function childEnvironment(
  { config, secrets, environment, port, configurationFile }: Installation,
  databaseUrl: string | null,
  applied: Applied | null,
): Environment {
  const { reportsListen, reportsUrl } = reportsAddresses(config);
  const isDemo = applied?.isDemo ?? configurationFile === null;
  return {
    ...(configurationFile === null
      ? environment
      : withoutNamedIn(configurationFile, environment, { kept: SETTING_NAMES, readByAll: config.signInFile })),
    HOST: config.host,
    PORT: String(port),
    GATEWAY_PROCESSES: String(config.gatewayProcesses),
    WORKER_THREADS: String(config.workerThreads),
    DATA_DIR: config.dataDirectory,
    DATABASE_URL: databaseUrl ?? '',
    MASTER_KEY: secrets.masterKey.toString('base64'),
    MASTER_KEY_PREVIOUS: secrets.previousMasterKeys.map((key) => key.toString('base64')).join(','),
    MASTER_KEY_FILE: '',
    MASTER_KEY_COMMAND: '',
    ADMIN_TOKEN: secrets.adminToken ?? '',
    REPORTS_LISTEN: reportsAddressText(reportsListen, ''),
    REPORTS_URL: reportsAddressText(reportsUrl, 'http://'),
    LOG_LEVEL: isDemo ? demoLogLevel(config) : config.logLevel,
    // The default depends on whether the database is embedded, which a process cannot tell.
    MEDIA: config.media === null ? 'off' : config.media.storage === 'disk' ? 'disk' : 's3',
    // Clients of the demo see refusals in their own API's form.
    ...(isDemo && !config.given.has('DIALECT_REFUSALS') ? { DIALECT_REFUSALS: 'all' } : {}),
  };
}

/**
 * If PUBLIC_URL is given, browsers reach the console there. The demo is hours old at most, so the link shows the last
 * day.
 */
function linkTo(config: Config, url: string, applied: Applied | null): string | null {
  const code = applied?.linkCode ?? null;
  const address = config.given.has('PUBLIC_URL') ? config.publicUrl : url;
  return code === null ? null : consoleLink(address, code, '?range=1d');
}

interface Preparation extends PreparedParts {
  readonly databaseUrl: string;
  readonly print: (text: string) => void;
}

async function prepareDatabase(
  installation: Installation,
  { databaseUrl, startSimulatedProvider, print }: Preparation,
): Promise<Applied> {
  const { secrets, environment, log, configurationFile } = installation;
  const postgres = createPostgres({ url: databaseUrl, log, max: 2 });
  try {
    await migrateDatabase({ url: databaseUrl, log });
    const opened = await openInstallationSecrets(postgres, secrets);
    if (configurationFile === null)
      return await serveWithoutFile(postgres, { ...installation, opened, print, startSimulatedProvider });
    const stored = await readStoredNames(postgres);
    const configuration = readConfigurationFile(configurationFile, environment, stored);
    const { generatedKeys, warnings } = await applyOrExplain(postgres, configuration, opened);
    if (warnings.length > 0) print(renderWarnings(warnings));
    if (generatedKeys.length > 0) print(renderGeneratedKeys(generatedKeys));
    return { isDemo: false, key: generatedKeys[0] ?? null, model: findTriable(configuration), linkCode: null };
  } catch (error) {
    throw asStartFault(error);
  } finally {
    await postgres.close();
  }
}

async function serveWithoutFile(postgres: Postgres, place: Installation & DemoPlace): Promise<Applied> {
  const { config, opened } = place;
  const found = await findDemo(postgres, { dataDirectory: config.dataDirectory, opened });
  if (found.isDemo) return serveDemo(postgres, place);
  refuseAsWithFile(place);
  return serveKept(place, found);
}

/**
 * A start with a file refuses these problems before anything runs. A start without a file learns only from the database
 * that the installation is not the demo.
 */
function refuseAsWithFile({ config, secrets, environment, port }: Installation): void {
  if (config.databaseUrl !== null) refuseWeakSecrets(environment, { ...config, masterKey: secrets.masterKey });
  // Clients of the operator's own installation call the configured port. Only the demo may move, because its users read
  // the port in the banner.
  if (port !== config.port) throw portInUse(config);
}
