// The resources of a gateway process: opened once, each after what it needs, and closed in an order that loses nothing.

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { CompleteConfig } from '../config.ts';
import type { Catalog } from '../domain/models/catalog.ts';
import { QuotaLeases } from '../generation/admission/leases/quota-leases.ts';
import { SavedResponses } from '../generation/catalog/saved-responses.ts';
import { Authenticator } from '../generation/identity/authenticate.ts';
import { HeldOwnKeys } from '../generation/own-keys/held-own-keys.ts';
import { Cooldowns } from '../generation/pauses/cooldowns.ts';
import { BufferPool } from '../platform/buffer-pool.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';
import { WorkerPool } from '../platform/worker-pool.ts';
import { loadCatalog } from '../storage/postgres/catalog/catalog-store.ts';
import { loadGuardrailTable } from '../storage/postgres/guardrails/guardrail-table.ts';
import { type InstallationSecrets, openInstallationSecrets } from '../storage/postgres/installation-secrets.ts';
import { listOpenSpools, notifyAboutSpools } from '../storage/postgres/ledger/open-spools.ts';
import { registerEpoch } from '../storage/postgres/ledger/wallets.ts';
import type { Listener } from '../storage/postgres/listen.ts';
import { refuseUnfitSchema } from '../storage/postgres/migrate.ts';
import { bindOwnKeys } from '../storage/postgres/own-keys/bind-own-keys.ts';
import { createPostgres, type Postgres } from '../storage/postgres/pool.ts';
import type { SecretBox } from '../storage/postgres/secret-box.ts';
import { readSpoolEnds } from '../storage/spool/spool-directory.ts';
import { SpoolWriter } from '../storage/spool/spool-writer.ts';
import { ObservedProviders } from '../upstream/observed-providers.ts';
import { OwnKeyVerifier } from '../upstream/own-key-verifier.ts';
import { ProviderCalls } from '../upstream/providers.ts';
import { createMedia, type HeldMedia } from './control-plane/create-media.ts';
import { createEgressGuard } from './generation/create-egress-guard.ts';
import { findPrincipalIn } from './generation/find-principal.ts';
import { savedResponsesIn } from './generation/find-saved-response.ts';
import { HeldCatalog } from './generation/held-catalog.ts';
import { HeldGuardrails } from './generation/held-guardrails.ts';
import { createLeaseStore, createLeaseTime } from './generation/lease-store.ts';
import { OwnKeyChecks } from './generation/own-key-checks.ts';
import { ownKeysIn } from './generation/own-keys-in-use.ts';
import { PostingFence } from './generation/posting-fence.ts';
import { SharedProviderHealth } from './generation/shared-provider-health.ts';
import { type AskedStore, RefusalLog } from './observing/refusal-log.ts';
import { RefusingProviders } from './observing/refusing-providers.ts';

export interface GatewayParts {
  readonly config: CompleteConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

/** The connections of the data plane. */
export const POSTGRES_CONNECTIONS_MAX = 4;
/**
 * The control plane has its own connections, so that a flood of its requests delays neither look-ups of credentials nor
 * leases.
 */
const CONTROL_PLANE_CONNECTIONS_MAX = 2;
/** A gateway's statements are short, and a request waits for them. */
const POSTGRES_STATEMENT_TIMEOUT_MS = 5_000;
const SEGMENT_BYTES_MAX = 67_108_864;
/**
 * How much a power cut can lose. The death of a process loses nothing, because the operating system has what was
 * written.
 */
const FSYNC_INTERVAL_MS = 50;
/** Room for the terminal records of about ten thousand executions. */
const SPOOL_RESERVE_FILE_BYTES = 16_777_216;
const WORKER_QUEUE_BYTES_MAX = 67_108_864;

/** Everything that a gateway process opens. */
export interface Resources {
  readonly postgres: Postgres;
  readonly controlPostgres: Postgres;
  readonly secrets: InstallationSecrets;
  readonly delegationKey: Buffer;
  readonly epoch: number;
  readonly records: SpoolWriter;
  readonly leases: QuotaLeases;
  readonly catalog: HeldCatalog;
  readonly guardrails: HeldGuardrails;
  readonly authenticator: Authenticator;
  readonly workers: WorkerPool;
  readonly buffers: BufferPool;
  readonly providers: ProviderCalls;
  readonly cooldowns: Cooldowns;
  readonly health: SharedProviderHealth;
  readonly refusingProviders: RefusingProviders;
  readonly refusalLog: RefusalLog;
  readonly postingFence: PostingFence;
  readonly savedResponses: SavedResponses;
  readonly ownKeys: HeldOwnKeys;
  readonly ownKeyVerifier: OwnKeyVerifier;
  readonly ownKeyChecks: OwnKeyChecks;
  readonly media: HeldMedia | null;
}

export async function openResources({ config, log, clock, metrics }: GatewayParts): Promise<Resources> {
  const connections = { url: config.databaseUrl, log, statementTimeoutMs: POSTGRES_STATEMENT_TIMEOUT_MS };
  const postgres = createPostgres({ ...connections, max: POSTGRES_CONNECTIONS_MAX, kept: 1 });
  await refuseUnfitSchema(postgres);
  const secrets = await openInstallationSecrets(postgres, config);
  const epoch = await registerEpoch(postgres, { machine: hostname(), pid: process.pid, kind: 'gateway' });
  const directory = join(config.dataDirectory, 'spool');
  const refusingProviders = new RefusingProviders({ metrics, log, clock });
  const refusalLog = new RefusalLog(log, clock);
  const failureOf = (store: AskedStore) => (fault: unknown) => refusalLog.storeFailed(store, fault);
  const controlPostgres = createPostgres({ ...connections, max: CONTROL_PLANE_CONNECTIONS_MAX });
  const catalog = await HeldCatalog.load({ load: catalogIn(postgres, secrets.box), clock, log });
  const observed = new ObservedProviders(clock);
  const cooldowns = new Cooldowns(clock);
  const providers = createProviders({ config, log, clock, metrics }, observed, refusingProviders);
  const ownKeyVerifier = new OwnKeyVerifier(providers, clock);
  const postingFence = new PostingFence({
    epoch,
    readSpoolEnds: () => readSpoolEnds(directory),
    listOpenSpools: () => listOpenSpools(controlPostgres),
    notify: (channel, payload) => notifyAboutSpools(controlPostgres, channel, payload),
    clock,
  });
  return {
    postgres,
    controlPostgres,
    secrets,
    delegationKey: config.delegationKey ?? secrets.delegationKey,
    epoch,
    records: SpoolWriter.open({
      directory,
      epoch,
      segmentBytesMax: SEGMENT_BYTES_MAX,
      fsyncIntervalMs: FSYNC_INTERVAL_MS,
      freeBytesMin: config.spoolReserveBytes,
      reserveFileBytes: SPOOL_RESERVE_FILE_BYTES,
      log,
      clock,
    }),
    leases: new QuotaLeases(
      createLeaseStore(postgres, epoch, metrics, failureOf('leases')),
      createLeaseTime(clock),
      (fault) => log.error({ err: fault }, 'fault in a quota lease'),
      failureOf('leases'),
    ),
    catalog,
    guardrails: await HeldGuardrails.load({
      load: () => loadGuardrailTable(postgres, secrets.box),
      pepper: secrets.pepper,
      log,
    }),
    authenticator: new Authenticator(findPrincipalIn(postgres, secrets, config), clock, failureOf('identity')),
    workers: new WorkerPool({ threads: config.workerThreads, queueBytesMax: WORKER_QUEUE_BYTES_MAX, log, metrics }),
    buffers: new BufferPool({ lentBytesMax: config.bodyMemoryBytes }),
    providers,
    cooldowns,
    health: new SharedProviderHealth({ postgres: controlPostgres, epoch, clock, log, observed, cooldowns, catalog }),
    refusingProviders,
    refusalLog,
    postingFence,
    savedResponses: new SavedResponses(savedResponsesIn(postgres, postingFence), failureOf('saved_responses')),
    ownKeys: new HeldOwnKeys(ownKeysIn(postgres, secrets.box, log), clock, failureOf('own_keys')),
    ownKeyVerifier,
    ownKeyChecks: new OwnKeyChecks({ postgres: controlPostgres, ...secrets, catalog, verifier: ownKeyVerifier, log }),
    media: await createMedia({ config, log, metrics, postgres: controlPostgres, ...secrets }),
  };
}

/** `present`: the catalog that is served from so far; null before the first. */
function catalogIn(postgres: Postgres, box: SecretBox): (present: Catalog | null) => Promise<Catalog> {
  return async (present) => {
    // Own keys that are not bound yet were given for the providers of the present catalog, not of the next one.
    if (present !== null) await bindOwnKeys(postgres, present);
    return loadCatalog(postgres, box);
  };
}

function createProviders(
  { config, log, clock, metrics }: GatewayParts,
  observed: ObservedProviders,
  refusingProviders: RefusingProviders,
): ProviderCalls {
  return new ProviderCalls(metrics, clock, {
    onKeyRefused: (provider, status) => refusingProviders.add(provider, status),
    client: config.upstreamClient,
    proxies: config.proxies,
    observed,
    egress: createEgressGuard(config, log),
  });
}

/** Reasons why this process cannot admit requests. */
export function listNotReady({ records }: Resources): readonly string[] {
  return records.healthy ? [] : ['spool'];
}

/**
 * Returns available credit first, while the database can still be reached. Credit that cannot be returned now returns
 * when this epoch is closed.
 */
export async function closeResources(
  {
    ownKeyChecks,
    leases,
    catalog,
    guardrails,
    workers,
    records,
    providers,
    media,
    postgres,
    controlPostgres,
  }: Resources,
  changes: Listener,
  log: Log,
): Promise<void> {
  const closings = [
    () => Promise.resolve(ownKeyChecks.stop()),
    () => leases.returnAll(),
    () => changes.close(),
    () => Promise.resolve(catalog.close()),
    () => Promise.resolve(guardrails.close()),
    () => workers.close(),
    () => records.close(),
    () => providers.close(),
    () => media?.flush(),
    () => controlPostgres.close(),
    () => postgres.close(),
  ];
  for (const closing of closings) {
    try {
      await closing();
    } catch (fault) {
      log.warn({ err: fault }, 'not everything could be closed cleanly');
    }
  }
}
