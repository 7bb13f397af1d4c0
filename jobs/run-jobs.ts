// Composition root of the jobs process: connects, ships the spools of this machine, runs the schedule and shuts down in
// order.

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../src/config.ts';
import type { Clock } from '../src/platform/clock.ts';
import { type EgressAllowance, EgressGuard } from '../src/platform/egress/egress-guard.ts';
import { LoopDelay } from '../src/platform/event-loop/loop-delay.ts';
import type { Log } from '../src/platform/log.ts';
import type { MetricsRegistry } from '../src/platform/metrics.ts';
import type { ReportsAddress } from '../src/reports-settings.ts';
import { SERVER_READ_SETTINGS } from '../src/storage/clickhouse/clickhouse.ts';
import { openObjects } from '../src/storage/media/open-objects.ts';
import { isEmbeddedPostgres } from '../src/storage/postgres/embedded/home.ts';
import { findOwnerNames } from '../src/storage/postgres/identity/owner-names.ts';
import { openInstallationSecrets } from '../src/storage/postgres/installation-secrets.ts';
import { findEndedExecution } from '../src/storage/postgres/ledger/generation-facts.ts';
import { POSTING_WANTED_CHANNEL } from '../src/storage/postgres/ledger/open-spools.ts';
import { createListener, type Listener } from '../src/storage/postgres/listen.ts';
import { migrateDatabase } from '../src/storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../src/storage/postgres/pool.ts';
import { Heartbeat } from '../src/storage/postgres/processes/heartbeat.ts';
import { makeDirectoryDurably } from '../src/storage/spool/durable-file.ts';
import type { ProxySettings } from '../src/upstream/proxy-of.ts';
import { ClickHouseLink } from './clickhouse-link.ts';
import { createObservers } from './observing/create-observers.ts';
import { nameOwners } from './reports/name-owners.ts';
import { ReportServer } from './reports/report-server.ts';
import { withinTime } from './reports/within-time.ts';
import type { JobContext, MediaOfJobs } from './scheduling/job.ts';
import { createJobGauges } from './scheduling/job-gauges.ts';
import { RequestedJobs } from './scheduling/run-requested-jobs.ts';
import { JOBS, startSchedule } from './scheduling/schedule.ts';
import { createWatchedGauges } from './scheduling/watch-jobs.ts';
import { closeUnspooledEpochs } from './shipping/close-unspooled-epochs.ts';
import { createShipper, type Shipper } from './shipping/ship-spool.ts';
import type { ShippingLimits } from './shipping/shipping-limits.ts';
import { TokenRenewer } from './tokens/renew-tokens.ts';
import { WebhookDeliverer } from './webhooks/deliver-webhooks.ts';

export interface JobsParts {
  readonly config: {
    readonly dataDirectory: string;
    readonly databaseUrl: string;
    /** null: the embedded ClickHouse of `dataDirectory`. */
    readonly clickhouseUrl: string | null;
    readonly masterKey: Buffer;
    readonly previousMasterKeys: readonly Buffer[];
    readonly webhookAllowHttp: boolean;
    readonly webhookAllowPrivate: boolean;
    readonly egressAllow: readonly EgressAllowance[];
    readonly factsRetentionDays: number | null;
    readonly media: Config['media'];
    /** null: the installation's own key is used. */
    readonly delegationKey: Buffer | null;
    readonly reportsListen: ReportsAddress;
    readonly brand: string;
    readonly observing: Config['observing'];
    readonly proxies: ProxySettings;
  };
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Default: `DEFAULT_LIMITS`. */
  readonly shippingLimits?: Partial<ShippingLimits>;
  /** Called during the start with what a shutdown before the end of the start must close. */
  readonly drainsWith?: (starting: RunningJobs) => void;
}

interface RunningJobs {
  drain(limitMs: number): Promise<void>;
}

const MIGRATIONS_DIRECTORY = join(import.meta.dirname, '../deploy/clickhouse');
const STOP_LIMIT_MS = 5_000;
const REPORTS_STOP_LIMIT_MS = 2_000;
const OBSERVERS_STOP_LIMIT_MS = 2_000;
/**
 * One connection for posting, one for the cursors of facts, one for the names in reports, the others for scheduled
 * jobs, webhooks and tokens.
 */
const CONNECTIONS_MAX = 7;
/**
 * The embedded engine gets few statements at once, because it shares its threads with the inserts of facts. It gets no
 * settings, because a setting of one statement stays in force there.
 */
const REPORT_STATEMENTS = {
  embedded: { atOnce: 2, settings: {} },
  server: { atOnce: 8, settings: SERVER_READ_SETTINGS },
} as const;
const WATCH_INTERVAL_MS = 15_000;
const UNSPOOLED_INTERVAL_MS = 30_000;

/** Resolves once shipping has started. ClickHouse may still be away then. */
export async function runJobs(parts: JobsParts): Promise<RunningJobs> {
  const { config, log, clock, metrics, shippingLimits = {}, drainsWith } = parts;
  const spoolDirectory = join(config.dataDirectory, 'spool');
  makeDirectoryDurably(spoolDirectory);
  await migrateDatabase({ url: config.databaseUrl, log });
  const postgres = createPostgres({ url: config.databaseUrl, log, max: CONNECTIONS_MAX });
  const { box, delegationKey } = await openInstallationSecrets(postgres, config);
  const link = createLink(config, { postgres, log, clock });
  // The embedded engine must be closed before the process exits. A connection to a server need not be.
  if (config.clickhouseUrl === null) drainsWith?.({ drain: () => link.close() });
  const observers = createObservers(config, { log, metrics });
  const shipping = { spoolDirectory, postgres, facts: link, limits: shippingLimits, log, clock, metrics, observers };
  const shipper = createShipper(shipping);
  shipper.start();
  const listener = postWhenWanted(config.databaseUrl, shipper, log);
  const reports = createReports(config, { postgres, link, delegationKey, log, clock, metrics });
  await reports.start();
  await link.tried;
  const context: JobContext = {
    postgres,
    clickhouse: () => link.client(),
    facts: link,
    sealedDays: () => link.sealedDays(),
    log,
    clock,
    gauges: createJobGauges(metrics),
    box,
    factsRetentionDays: config.factsRetentionDays,
    media: await openMedia(config, postgres, log),
  };
  const schedule = startSchedule(context, hostname());
  const requested = new RequestedJobs(context, hostname(), JOBS);
  const webhooks = createWebhooks(config, { postgres, box, log, clock, metrics });
  webhooks.start();
  const tokens = new TokenRenewer({ postgres, box, proxies: config.proxies, log, clock, metrics });
  tokens.start();
  const watching = watchJobs(context, metrics);
  const closing = closeUnspooledNowAndThen(context, spoolDirectory);
  const loopDelay = new LoopDelay('jobs');
  const heartbeat = new Heartbeat({ postgres, kind: 'jobs', epoch: null, metrics, loopDelay, clock, log });
  heartbeat.start();
  return {
    async drain(limitMs) {
      clearInterval(watching);
      clearInterval(closing);
      link.sealedDays()?.stopSealing();
      await reports.close(REPORTS_STOP_LIMIT_MS);
      await schedule.stop();
      await requested.stop();
      await webhooks.stop();
      await tokens.stop();
      await shipper.stop(Math.min(limitMs, STOP_LIMIT_MS));
      await Promise.all(observers.map((observer) => observer.stop(OBSERVERS_STOP_LIMIT_MS)));
      await heartbeat.stop();
      await link.close();
      await listener.close();
      await postgres.close();
    },
  };
}

function createLink(
  config: JobsParts['config'],
  parts: Pick<ConstructorParameters<typeof ClickHouseLink>[0], 'postgres' | 'log' | 'clock'>,
): ClickHouseLink {
  return new ClickHouseLink({
    ...parts,
    location: locationOf(config),
    migrationsDirectory: MIGRATIONS_DIRECTORY,
    databaseUrl: config.databaseUrl,
    sharesDataDirectory: isEmbeddedPostgres(config.databaseUrl, config.dataDirectory),
  });
}

function postWhenWanted(url: string, shipper: Shipper, log: Log): Listener {
  const post = (): void => shipper.postNow();
  return createListener({ url, log, channels: { [POSTING_WANTED_CHANNEL]: post }, onReconnect: post });
}

function createReports(
  config: JobsParts['config'],
  parts: Pick<JobsParts, 'log' | 'clock' | 'metrics'> & {
    readonly postgres: Postgres;
    readonly link: ClickHouseLink;
    readonly delegationKey: Buffer;
  },
): ReportServer {
  const { postgres, link, delegationKey, log, clock, metrics } = parts;
  return new ReportServer({
    address: config.reportsListen,
    delegationKey: config.delegationKey ?? delegationKey,
    issuer: config.brand,
    ownerNames: nameOwners((organizationId, ids) => findOwnerNames(postgres, organizationId, ids), log),
    endedExecution: (wanted) =>
      withinTime(findEndedExecution(postgres, wanted), null, { log, without: 'details of a request' }),
    clickhouse: () => link.reader(),
    sealedDays: () => link.sealedDays(),
    ...REPORT_STATEMENTS[config.clickhouseUrl === null ? 'embedded' : 'server'],
    log,
    clock,
    metrics,
  });
}

function locationOf({ clickhouseUrl, dataDirectory }: JobsParts['config']) {
  return clickhouseUrl === null ? { directory: join(dataDirectory, 'clickhouse') } : { url: clickhouseUrl };
}

async function openMedia(
  { media, dataDirectory }: JobsParts['config'],
  postgres: Postgres,
  log: Log,
): Promise<MediaOfJobs | null> {
  if (media === null) return null;
  const objects = await openObjects({ postgres, storage: media.storage, dataDirectory, log });
  return { objects, retentionDays: media.retentionDays };
}

function createWebhooks(
  { webhookAllowHttp, webhookAllowPrivate, egressAllow }: JobsParts['config'],
  parts: Omit<ConstructorParameters<typeof WebhookDeliverer>[0], 'targets'>,
): WebhookDeliverer {
  const guard = new EgressGuard({ anyPort: true, allowPrivate: webhookAllowPrivate, allowed: egressAllow });
  return new WebhookDeliverer({ ...parts, targets: { allowHttp: webhookAllowHttp, guard } });
}

function watchJobs({ postgres, gauges, log }: JobContext, metrics: MetricsRegistry): NodeJS.Timeout {
  const watched = createWatchedGauges(metrics, gauges);
  const names = JOBS.map(({ name }) => name);
  const refresh = (): void => {
    watched
      .refresh(postgres, names)
      .catch((error: unknown) => log.warn({ err: error }, 'the gauges of jobs could not be refreshed'));
  };
  refresh();
  return setInterval(refresh, WATCH_INTERVAL_MS).unref();
}

function closeUnspooledNowAndThen({ postgres, log }: JobContext, spoolDirectory: string): NodeJS.Timeout {
  const parts = { postgres, spoolDirectory, machine: hostname(), log };
  const close = (): void => {
    closeUnspooledEpochs(parts).catch((error: unknown) =>
      log.warn({ err: error }, 'the search for epochs without a spool failed'),
    );
  };
  close();
  return setInterval(close, UNSPOOLED_INTERVAL_MS).unref();
}
