// Composition root of a gateway process: builds pools, caches and clients once, passes them as arguments, listens, drains.

import { hostname } from 'node:os';
import { join } from 'node:path';
import { Authenticator } from '../data-plane/identity/authenticate.ts';
import { WalletLeases } from '../data-plane/admission/wallet-leases.ts';
import { RequestScanner } from '../data-plane/dialects/request-scan/request-scanner.ts';
import { GenerationMetrics } from '../data-plane/metering/generation-metrics.ts';
import { RecordJournal } from '../data-plane/metering/record-journal.ts';
import { SlabPool } from '../data-plane/relay/slab-pool.ts';
import type { DataPlane } from '../data-plane/serve-generation.ts';
import type { CompleteConfig } from '../config.ts';
import { derivePepper, hashCredential } from '../domain/identity/key-hash.ts';
import { Server } from '../http/server.ts';
import type { Clock } from '../platform/clock.ts';
import { createExecutionIdSource } from '../platform/execution-id.ts';
import type { Log } from '../platform/log.ts';
import type { MetricsRegistry } from '../platform/metrics.ts';
import { WorkerPool } from '../platform/worker-pool.ts';
import { createRoutes } from '../routes.ts';
import { findPrincipalByKeyHash } from '../storage/postgres/credentials.ts';
import { findGeneration, listGenerationsByClientRequestId } from '../storage/postgres/generations.ts';
import { createPostgres } from '../storage/postgres/pool.ts';
import { registerEpoch } from '../storage/postgres/wallets.ts';
import { SpoolWriter } from '../storage/spool/spool-writer.ts';
import { CoarseClock } from './coarse-clock.ts';
import { followChanges } from './follow-changes.ts';
import { HeldCatalog } from './held-catalog.ts';
import { createLeaseStore } from './lease-store.ts';
import { ProviderOrigins } from './provider-origins.ts';
import { watchEventLoop } from './watch-event-loop.ts';

export interface GatewayParts {
  readonly config: CompleteConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

const SEGMENT_BYTES_MAX = 67_108_864;
const FSYNC_INTERVAL_MS = 20;
const COUNT_QUEUE_BYTES_MAX = 67_108_864;
const COARSE_INTERVAL_MS = 1_000;
const SLOW_INTERVAL_MS = 60_000;

/** Resolves once the process serves. */
export async function runGateway(parts: GatewayParts): Promise<{ drain(limitMs: number): Promise<void> }> {
  const { config, log, clock, metrics } = parts;
  const postgres = createPostgres({ url: config.databaseUrl, log, max: 4 });
  const epoch = await registerEpoch(postgres, { machine: hostname(), pid: process.pid, kind: 'gateway' });
  const records = SpoolWriter.open({ directory: join(config.dataDirectory, 'spool'), epoch, segmentBytesMax: SEGMENT_BYTES_MAX, fsyncIntervalMs: FSYNC_INTERVAL_MS, log, clock });
  const leases = new WalletLeases(createLeaseStore(postgres, epoch), () => clock.monotonicMs());
  const workers = new WorkerPool({ threads: config.workerThreads, queueBytesMax: COUNT_QUEUE_BYTES_MAX, log, metrics });
  const slabs = new SlabPool();
  const origins = new ProviderOrigins(metrics);
  const catalog = await HeldCatalog.load(postgres, config.masterKey);
  const pepper = derivePepper(config.masterKey);
  const authenticator = new Authenticator((credential) => findPrincipalByKeyHash(postgres, hashCredential(pepper, credential)), clock);

  const plane: DataPlane = {
    authenticator,
    catalog: () => catalog.serving,
    intake: { slabs, scanner: new RequestScanner(), bodyLimitBytes: config.bodyLimitBytes },
    leases,
    metering: {
      journal: new RecordJournal(records, (fault) => log.error({ err: fault }, 'records could not be written: admission stops')),
      leases,
      clock,
      metrics: new GenerationMetrics(metrics),
    },
    relay: {
      slabs,
      workers,
      clock,
      open: new Set(),
      originOf: (provider) => origins.originOf(provider),
      pathPrefixOf: (provider) => origins.pathPrefixOf(provider),
      onUpstreamFault: (provider, fault) => origins.countFault(provider, fault),
    },
    clock,
    nextExecutionId: createExecutionIdSource(clock),
    canRecord: () => records.healthy,
    executionIdHeader: `X-${config.brand}-Execution-Id`,
    tagHeader: `x-${config.brand.toLowerCase()}-tag`,
  };

  const refusals = metrics.counter('tollgate_refusals_total', 'Requests refused, by reason', ['code']);
  const server = new Server({
    routes: createRoutes({
      plane,
      authenticator,
      catalog: () => catalog.present,
      lookup: { findGeneration: (question) => findGeneration(postgres, question), clock },
      findGenerations: (question) => listGenerationsByClientRequestId(postgres, question),
      notReady: () => (records.healthy ? [] : ['spool']),
    }),
    renderContext: { requestId: null, publicUrl: config.publicUrl },
    onRefusal: (kind) => refusals.labels(kind).increment(),
    onFault: (fault, exchange) => log.error({ err: fault, method: exchange.method, path: exchange.route.path }, 'fault while serving a request'),
  });
  metrics.gauge('tollgate_inflight', 'Exchanges whose response is not complete', { read: () => server.openExchanges });
  watchEventLoop(metrics);

  const changes = await followChanges({ url: config.databaseUrl, log, catalog, authenticator, leases });
  const coarseClock = new CoarseClock(COARSE_INTERVAL_MS, log, [
    () => plane.relay.open.forEach((relay) => relay.checkTime(clock.monotonicMs())),
    () => origins.trim(),
    () => leases.giveBackIdle(),
  ]);
  const slowClock = new CoarseClock(SLOW_INTERVAL_MS, log, [() => slabs.trim()]);
  await server.listen(config.host, config.port);
  log.info({ epoch, host: config.host, port: config.port }, 'gateway listens');

  return {
    async drain(limitMs) {
      await server.drain(limitMs);
      coarseClock.stop();
      slowClock.stop();
      await endEverything(leases, log, [() => changes.close(), () => workers.close(), () => records.close(), () => origins.close(), () => postgres.close()]);
    },
  };
}

/** Free credit goes back first, while the database can still be asked; what fails comes back when this epoch is closed. */
async function endEverything(leases: WalletLeases, log: Log, closings: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of [() => leases.giveBackAll(), ...closings]) {
    try {
      await close();
    } catch (fault) {
      log.warn({ err: fault }, 'not everything could be closed cleanly');
    }
  }
}

