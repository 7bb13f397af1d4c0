// Composition root of a gateway process: passes its resources on to the planes, listens, keeps time, drains.

import { ChangeMeter } from '../control-plane/change-meter.ts';
import { ReportForwarder } from '../control-plane/reports/forward-report.ts';
import { virtualModelOf } from '../domain/routing/virtual-model.ts';
import { COUNTS } from '../generation/admission/admit.ts';
import { OrganizationQueues } from '../generation/admission/organization-queues.ts';
import { GenerationMetrics } from '../generation/execution/generation-metrics.ts';
import { RecordJournal } from '../generation/execution/record-journal.ts';
import { RefusedRequests } from '../generation/execution/refused-requests.ts';
import { ExternalDetectors } from '../generation/guardrails/external-detectors.ts';
import { GuardrailMetrics } from '../generation/guardrails/guardrail-metrics.ts';
import { screenPreview } from '../generation/guardrails/screen-preview.ts';
import type { DataPlane } from '../generation/plane.ts';
import { OpenRelays } from '../generation/reply/open-relays.ts';
import type { RelayContext } from '../generation/reply/relay-params.ts';
import { RequestScanner } from '../generation/request/scan/request-scanner.ts';
import type { RoutePreviewer } from '../generation/routing/preview-route.ts';
import { CrossOrigin } from '../http/cross-origin.ts';
import { Server, type ServerOptions } from '../http/server.ts';
import { createExecutionIdSource } from '../platform/execution-id.ts';
import { createRoutes } from '../routes/routes.ts';
import { findGeneration, listGenerationsByClientRequestId } from '../storage/postgres/ledger/generations.ts';
import { Heartbeat } from '../storage/postgres/processes/heartbeat.ts';
import { CoarseClock } from './coarse-clock.ts';
import { createConsole } from './control-plane/create-console.ts';
import { createRoutePreview } from './control-plane/create-route-preview.ts';
import { createStores } from './control-plane/create-stores.ts';
import { followChanges } from './follow-changes.ts';
import { createRouter } from './generation/create-router.ts';
import { listen, openFront } from './listen.ts';
import { registerLeaseMetrics } from './observing/lease-metrics.ts';
import { registerGauges, registerRefusals, registerServerGauges } from './observing/register-gauges.ts';
import { watchEventLoop } from './observing/watch-event-loop.ts';
import { prepareFirstRequest } from './prepare-first-request.ts';
import {
  closeResources,
  type GatewayParts,
  listNotReady,
  openResources,
  POSTGRES_CONNECTIONS_MAX,
  type Resources,
} from './resources.ts';

const COARSE_INTERVAL_MS = 1_000;
const SLOW_INTERVAL_MS = 60_000;
const HEALTH_INTERVAL_MS = 3_000;

interface GatewayInService {
  drain(limitMs: number, keptMs?: number): Promise<void>;
  notReady(): readonly string[];
  impaired(): readonly string[];
}

/** Resolves once the process serves. The front is chosen before anything is opened. */
export async function runGateway(parts: GatewayParts): Promise<GatewayInService> {
  const { config, log, clock } = parts;
  const front = await openFront(config.httpFront, log);
  const resources = await openResources(parts);
  const { plane, previewer } = createPlane(parts, resources);
  const server = createServer(parts, resources, { plane, previewer, front });
  const loopDelay = watchEventLoop(parts.metrics);
  registerGauges(parts.metrics, resources.records, plane.relay);
  const updateLeaseMetrics = registerLeaseMetrics(parts.metrics, resources.leases);
  const changes = await followChanges({ ...resources, url: config.databaseUrl, log });
  const clocks = [
    new CoarseClock(COARSE_INTERVAL_MS, log, [
      () => plane.relay.open.checkTime(clock.monotonicMs()),
      () => server.tick(clock.monotonicMs()),
      () => resources.records.check(),
      () => resources.providers.trim(),
      () => plane.relay.cooldowns.forgetEnded(clock.monotonicMs()),
      () => resources.ownKeys.forgetIdle(clock.monotonicMs()),
      () => resources.leases.tick(),
      () => resources.catalog.lookForTokens(),
      updateLeaseMetrics,
    ]),
    new CoarseClock(HEALTH_INTERVAL_MS, log, [() => resources.health.share(), () => resources.media?.flush()]),
    new CoarseClock(SLOW_INTERVAL_MS, log, [() => resources.buffers.trim()]),
  ];
  const heartbeat = new Heartbeat({
    ...parts,
    ...resources,
    postgres: resources.controlPostgres,
    kind: 'gateway',
    loopDelay,
  });
  await prepareFirstRequest({ ...resources, connections: POSTGRES_CONNECTIONS_MAX, log });
  await listen(server, config.host, config.port, log);
  heartbeat.start();
  log.info({ epoch: resources.epoch, host: config.host, port: config.port }, 'gateway listens');
  return {
    async drain(limitMs, keptMs) {
      await server.drain(limitMs, keptMs);
      for (const coarseClock of clocks) coarseClock.stop();
      await heartbeat.stop();
      await closeResources(resources, changes, log);
    },
    notReady: () => listNotReady(resources),
    impaired: () => resources.refusingProviders.list(),
  };
}

function createPlane(
  { config, log, clock, metrics }: GatewayParts,
  resources: Resources,
): { readonly plane: DataPlane; readonly previewer: RoutePreviewer } {
  const { authenticator, postgres, records, leases, catalog, guardrails } = resources;
  const { buffers, workers, providers, savedResponses } = resources;
  const onRecordFault = (fault: unknown) => log.error({ err: fault }, 'records could not be written');
  const relay: RelayContext = {
    buffers,
    workers,
    clock,
    open: new OpenRelays(),
    cooldowns: resources.cooldowns,
    keyPauses: resources.ownKeys.pauses,
    onOwnKeyRefused: (key) => resources.ownKeyChecks.refused(key),
    onOwnKeySpent: (key, restsMs) => resources.ownKeyChecks.spent(key, restsMs),
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
    ownKeys: resources.ownKeys,
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
  resources: Resources,
  { plane, previewer, front }: ReturnType<typeof createPlane> & Pick<ServerOptions, 'front'>,
): Server {
  const { controlPostgres: postgres, catalog, authenticator, delegationKey } = resources;
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
        postingPassed: (limitMs) => resources.postingFence.passed(limitMs),
        clock,
        isDraining: () => server.draining,
      },
      findGenerations: (params) => listGenerationsByClientRequestId(postgres, params),
      ...createStores(resources, clock),
      media: resources.media,
      webhookTargets: { allowHttp: config.webhookAllowHttp, allowPrivate: config.webhookAllowPrivate },
      reports,
      console: createConsole({ config, log, clock, postgres, secrets: resources.secrets }),
      previewRoute: createRoutePreview({ postgres, previewer, catalog: () => catalog.serving }),
      publicUrl: config.publicUrl,
      dialectRefusals: config.dialectRefusals,
      notReady: () => listNotReady(resources),
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
      resources.refusalLog.refused(kind, () => listNotReady(resources));
    },
    onFault: (fault, { method, route }) => resources.refusalLog.requestFailed(fault, { method, path: route.path }),
  });
  registerServerGauges(metrics, { server, reports, buffers: resources.buffers });
  return server;
}
