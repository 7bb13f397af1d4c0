// Composition root of a gateway process: builds pools, caches and clients once, passes them on, listens, drains.

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { CompleteConfig } from '../config.ts';
import { ChangeMeter } from '../control-plane/change-meter.ts';
import { ReportForwarder } from '../control-plane/reports/forward-report.ts';
import { virtualModelOf } from '../domain/routing/virtual-model.ts';
import { COUNTS } from '../generation/admission/admit.ts';
import { Cooldowns } from '../generation/admission/cooldowns.ts';
import { OrganizationQueues } from '../generation/admission/organization-queues.ts';
import { QuotaLeases } from '../generation/admission/quota-leases.ts';
import { SavedResponses } from '../generation/catalog/saved-responses.ts';
import { GenerationMetrics } from '../generation/execution/generation-metrics.ts';
import { RecordJournal } from '../generation/execution/record-journal.ts';
import { RefusedRequests } from '../generation/execution/refused-requests.ts';
import { ExternalDetectors } from '../generation/guardrails/external-detectors.ts';
import { GuardrailMetrics } from '../generation/guardrails/guardrail-metrics.ts';
import { screenPreview } from '../generation/guardrails/screen-preview.ts';
import { Authenticator } from '../generation/identity/authenticate.ts';
import { HeldOwnKeys } from '../generation/own-keys/held-own-keys.ts';
import type { DataPlane } from '../generation/plane.ts';
import { OpenRelays } from '../generation/reply/open-relays.ts';
import type { RelayContext } from '../generation/reply/relay-params.ts';
import { RequestScanner } from '../generation/request/scan/request-scanner.ts';
import type { RoutePreviewer } from '../generation/routing/preview-route.ts';
import { CrossOrigin } from '../http/cross-origin.ts';
import { Server, type ServerOptions } from '../http/server.ts';
import { BufferPool } from '../platform/buffer-pool.ts';
import type { Clock } from '../platform/clock.ts';
import { createExecutionIdSource } from '../platform/execution-id.ts';
import type { Log } from '../platform/log.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';
import { WorkerPool } from '../platform/worker-pool.ts';
import { createRoutes } from '../routes/routes.ts';
import { loadGuardrailTable } from '../storage/postgres/guardrails/guardrail-table.ts';
import { type InstallationSecrets, openInstallationSecrets } from '../storage/postgres/installation-secrets.ts';
import { findGeneration, listGenerationsByClientRequestId } from '../storage/postgres/ledger/generations.ts';
import { listOpenSpools, notifyAboutSpools } from '../storage/postgres/ledger/open-spools.ts';
import { registerEpoch } from '../storage/postgres/ledger/wallets.ts';
import type { Listener } from '../storage/postgres/listen.ts';
import { refuseUnfitSchema } from '../storage/postgres/migrate.ts';
import { createPostgres, type Postgres } from '../storage/postgres/pool.ts';
import { Heartbeat } from '../storage/postgres/processes/heartbeat.ts';
import { readSpoolEnds } from '../storage/spool/spool-directory.ts';
import { SpoolWriter } from '../storage/spool/spool-writer.ts';
import { ObservedProviders } from '../upstream/observed-providers.ts';
import { OwnKeyVerifier } from '../upstream/own-key-verifier.ts';
import { ProviderCalls } from '../upstream/providers.ts';
import { CoarseClock } from './coarse-clock.ts';
import { createConsole } from './control-plane/create-console.ts';
import { createMedia, type HeldMedia } from './control-plane/create-media.ts';
import { createRoutePreview } from './control-plane/create-route-preview.ts';
import { createStores } from './control-plane/create-stores.ts';
import { followChanges } from './follow-changes.ts';
import { createEgressGuard } from './generation/create-egress-guard.ts';
import { createRouter } from './generation/create-router.ts';
import { findPrincipalIn } from './generation/find-principal.ts';
import { savedResponsesIn } from './generation/find-saved-response.ts';
import { HeldCatalog } from './generation/held-catalog.ts';
import { HeldGuardrails } from './generation/held-guardrails.ts';
import { createLeaseStore, createLeaseTime } from './generation/lease-store.ts';
import { OwnKeyChecks } from './generation/own-key-checks.ts';
import { ownKeysIn } from './generation/own-keys-in-use.ts';
import { PostingFence } from './generation/posting-fence.ts';
import { SharedProviderHealth } from './generation/shared-provider-health.ts';
import { listen, openFront } from './listen.ts';
import { registerLeaseMetrics } from './observing/lease-metrics.ts';
import { type AskedStore, RefusalLog } from './observing/refusal-log.ts';
import { RefusedKeys } from './observing/refused-keys.ts';
import { registerGauges, registerRefusals, registerServerGauges } from './observing/register-gauges.ts';
import { watchEventLoop } from './observing/watch-event-loop.ts';
import { prepareFirstRequest } from './prepare-first-request.ts';

export interface GatewayParts {
  readonly config: CompleteConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

const POSTGRES_CONNECTIONS_MAX = 4;
/**
 * The control plane has its own connections, so that a flood of its requests delays neither look-ups of credentials nor
 * leases.
 */
const CONTROL_PLANE_CONNECTIONS_MAX = 2;
/** A gateway's statements are short, and a request waits for them. */
const POSTGRES_STATEMENT_TIMEOUT_MS = 5_000;
const SEGMENT_BYTES_MAX = 67_108_864;
/** How much a power cut can lose. The death of a process loses nothing, since what is written is the system's. */
const FSYNC_INTERVAL_MS = 50;
/** Room for the terminal records of about ten thousand executions. */
const SPOOL_RESERVE_FILE_BYTES = 16_777_216;
const WORKER_QUEUE_BYTES_MAX = 67_108_864;
const COARSE_INTERVAL_MS = 1_000;
const SLOW_INTERVAL_MS = 60_000;
const HEALTH_INTERVAL_MS = 3_000;

/** The resources of this process, in the order in which they were opened. */
interface Held {
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
  readonly refusedKeys: RefusedKeys;
  readonly refusalLog: RefusalLog;
  readonly postingFence: PostingFence;
  readonly savedResponses: SavedResponses;
  readonly ownKeys: HeldOwnKeys;
  readonly ownKeyVerifier: OwnKeyVerifier;
  readonly ownKeyChecks: OwnKeyChecks;
  readonly media: HeldMedia | null;
}

interface GatewayInService {
  drain(limitMs: number, keptMs?: number): Promise<void>;
  notReady(): readonly string[];
  impaired(): readonly string[];
}

/** Resolves once the process serves. Its front is found before anything is opened. */
export async function runGateway(parts: GatewayParts): Promise<GatewayInService> {
  const { config, log, clock } = parts;
  const front = await openFront(config.httpFront, log);
  const held = await open(parts);
  const { plane, previewer } = createPlane(parts, held);
  const server = createServer(parts, held, { plane, previewer, front });
  const loopDelay = watchEventLoop(parts.metrics);
  registerGauges(parts.metrics, held.records, plane.relay);
  const updateLeaseMetrics = registerLeaseMetrics(parts.metrics, held.leases);
  const changes = await followChanges({ ...held, url: config.databaseUrl, log });
  const clocks = [
    new CoarseClock(COARSE_INTERVAL_MS, log, [
      () => plane.relay.open.checkTime(clock.monotonicMs()),
      () => server.tick(clock.monotonicMs()),
      () => held.records.check(),
      () => held.providers.trim(),
      () => plane.relay.cooldowns.forgetEnded(clock.monotonicMs()),
      () => held.ownKeys.forgetIdle(clock.monotonicMs()),
      () => held.leases.tick(),
      () => held.catalog.lookForTokens(),
      updateLeaseMetrics,
    ]),
    new CoarseClock(HEALTH_INTERVAL_MS, log, [() => held.health.share(), () => held.media?.flush()]),
    new CoarseClock(SLOW_INTERVAL_MS, log, [() => held.buffers.trim()]),
  ];
  const heartbeat = new Heartbeat({ ...parts, ...held, postgres: held.controlPostgres, kind: 'gateway', loopDelay });
  await prepareFirstRequest({ ...held, connections: POSTGRES_CONNECTIONS_MAX, log });
  await listen(server, config.host, config.port, log);
  heartbeat.start();
  log.info({ epoch: held.epoch, host: config.host, port: config.port }, 'gateway listens');
  return {
    async drain(limitMs, keptMs) {
      await server.drain(limitMs, keptMs);
      for (const coarseClock of clocks) coarseClock.stop();
      await heartbeat.stop();
      await close(held, changes, log);
    },
    notReady: () => listNotReady(held),
    impaired: () => held.refusedKeys.list(),
  };
}

async function open({ config, log, clock, metrics }: GatewayParts): Promise<Held> {
  const connections = { url: config.databaseUrl, log, statementTimeoutMs: POSTGRES_STATEMENT_TIMEOUT_MS };
  const postgres = createPostgres({ ...connections, max: POSTGRES_CONNECTIONS_MAX, kept: 1 });
  await refuseUnfitSchema(postgres);
  const secrets = await openInstallationSecrets(postgres, config);
  const epoch = await registerEpoch(postgres, { machine: hostname(), pid: process.pid, kind: 'gateway' });
  const directory = join(config.dataDirectory, 'spool');
  const refusedKeys = new RefusedKeys({ metrics, log, clock });
  const refusalLog = new RefusalLog(log, clock);
  const failureOf = (store: AskedStore) => (fault: unknown) => refusalLog.storeFailed(store, fault);
  const controlPostgres = createPostgres({ ...connections, max: CONTROL_PLANE_CONNECTIONS_MAX });
  const catalog = await HeldCatalog.load(postgres, secrets.box, clock);
  const observed = new ObservedProviders(clock);
  const cooldowns = new Cooldowns(clock);
  const providers = createProviders({ config, log, clock, metrics }, observed, refusedKeys);
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
    refusedKeys,
    refusalLog,
    postingFence,
    savedResponses: new SavedResponses(savedResponsesIn(postgres, postingFence), failureOf('saved_responses')),
    ownKeys: new HeldOwnKeys(ownKeysIn(postgres, secrets.box, log), clock, failureOf('own_keys')),
    ownKeyVerifier,
    ownKeyChecks: new OwnKeyChecks({ postgres: controlPostgres, ...secrets, catalog, verifier: ownKeyVerifier, log }),
    media: await createMedia({ config, log, metrics, postgres: controlPostgres, ...secrets }),
  };
}

function createProviders(
  { config, log, clock, metrics }: GatewayParts,
  observed: ObservedProviders,
  refusedKeys: RefusedKeys,
): ProviderCalls {
  return new ProviderCalls(metrics, clock, {
    onKeyRefused: (provider, status) => refusedKeys.add(provider, status),
    client: config.upstreamClient,
    proxies: config.proxies,
    observed,
    egress: createEgressGuard(config, log),
  });
}

function createPlane(
  { config, log, clock, metrics }: GatewayParts,
  held: Held,
): { readonly plane: DataPlane; readonly previewer: RoutePreviewer } {
  const { authenticator, postgres, records, leases, catalog, guardrails } = held;
  const { buffers, workers, providers, savedResponses } = held;
  const onRecordFault = (fault: unknown) => log.error({ err: fault }, 'records could not be written');
  const relay: RelayContext = {
    buffers,
    workers,
    clock,
    open: new OpenRelays(),
    cooldowns: held.cooldowns,
    keyPauses: held.ownKeys.pauses,
    onOwnKeyRefused: (key) => held.ownKeyChecks.refused(key),
    onOwnKeySpent: (key, restsMs) => held.ownKeyChecks.spent(key, restsMs),
    providers,
    reportFailedCall: (call) => log.warn(call, 'a call to a provider failed'),
  };
  const scanner = new RequestScanner();
  const screening = {
    relay,
    externalDetectors: new ExternalDetectors({ clock, log, metrics, allowPrivate: config.webhookAllowPrivate }),
    policiesInForce: () => guardrails.inForce,
  };
  const { router, previewer } = createRouter(
    { brand: config.brand, postgres, savedResponses, log, registry: metrics },
    { relay, scanner, screen: (request) => screenPreview(screening, request) },
  );
  const journal = new RecordJournal(records, onRecordFault);
  const canRecord = (): boolean => records.healthy;
  const screened = new GuardrailMetrics(metrics);
  const plane: DataPlane = {
    authenticator,
    catalog: () => catalog.serving,
    intake: { buffers, scanner, bodyLimitBytes: config.bodyLimitBytes },
    admission: { leases, workers, counts: new OrganizationQueues(COUNTS), clock },
    savedResponses,
    ownKeys: held.ownKeys,
    refusedRequests: new RefusedRequests({ journal, clock, canRecord, metrics, guardrails: screened }),
    metering: { journal, clock, metrics: new GenerationMetrics(metrics), guardrails: screened, savedResponses },
    ...screening,
    router,
    clock,
    canRecord,
    executionIdHeader: `X-${config.brand}-Execution-Id`,
    routedModelHeader: `X-${config.brand}-Routed-Model`,
    guardrailHeaders: { action: `X-${config.brand}-Guardrail`, count: `X-${config.brand}-Guardrail-Count` },
    tagHeader: `x-${config.brand.toLowerCase()}-tag`,
    keepsTraceparent: config.observing.traces !== null,
  };
  return { plane, previewer };
}

function createServer(
  { config, log, clock, metrics }: GatewayParts,
  held: Held,
  { plane, previewer, front }: ReturnType<typeof createPlane> & Pick<ServerOptions, 'front'>,
): Server {
  const { controlPostgres: postgres, catalog, authenticator, delegationKey } = held;
  const reports = new ReportForwarder({ address: config.reportsUrl, delegationKey, clock, log });
  const { refusals, connectionsRefused } = registerRefusals(metrics);
  const server: Server = new Server({
    front,
    routes: createRoutes({
      plane,
      authenticator,
      changeMeter: new ChangeMeter(clock, config.changesPerMinute),
      catalog: () => catalog.present,
      virtualModel: virtualModelOf(config.brand),
      lookup: {
        findGeneration: (params) => findGeneration(postgres, params),
        postingPassed: (limitMs) => held.postingFence.passed(limitMs),
        clock,
        isDraining: () => server.draining,
      },
      findGenerations: (params) => listGenerationsByClientRequestId(postgres, params),
      ...createStores(held, clock),
      media: held.media,
      webhookTargets: { allowHttp: config.webhookAllowHttp, allowPrivate: config.webhookAllowPrivate },
      reports,
      console: createConsole({ config, log, clock, postgres, secrets: held.secrets }),
      previewRoute: createRoutePreview({ postgres, previewer, catalog: () => catalog.serving }),
      publicUrl: config.publicUrl,
      dialectRefusals: config.dialectRefusals,
      notReady: () => listNotReady(held),
    }),
    renderContext: { publicUrl: config.publicUrl },
    nextRequestId: createExecutionIdSource(clock),
    crossOrigin: config.corsOrigins === null ? null : new CrossOrigin(config.corsOrigins, config.brand),
    limits: {
      connectionsMax: config.connectionsMax,
      connectionsPerAddressMax: config.connectionsPerAddress,
      trustedAddresses: config.trustedAddresses,
      bodyTimeoutMs: config.bodyTimeoutSeconds * 1000,
      droppedBytesMax: 2 * config.bodyLimitBytes,
    },
    onConnectionRefused: (cap) => connectionsRefused.labels(cap).increment(),
    onRefusal: (kind) => {
      refusals.labels(kind).increment();
      held.refusalLog.refused(kind, () => listNotReady(held));
    },
    onFault: (fault, { method, route }) => held.refusalLog.requestFailed(fault, { method, path: route.path }),
  });
  registerServerGauges(metrics, { server, reports, buffers: held.buffers });
  return server;
}

/** Reasons why this process cannot admit requests. */
function listNotReady({ records }: Held): readonly string[] {
  return records.healthy ? [] : ['spool'];
}

/**
 * Returns available credit first, while the database can still be reached. What fails returns when this epoch is
 * closed.
 */
async function close(
  { ownKeyChecks, leases, guardrails, workers, records, providers, media, postgres, controlPostgres }: Held,
  changes: Listener,
  log: Log,
): Promise<void> {
  const closings = [
    () => Promise.resolve(ownKeyChecks.stop()),
    () => leases.returnAll(),
    () => changes.close(),
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
