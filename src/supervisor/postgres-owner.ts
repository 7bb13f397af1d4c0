// The process that owns the embedded Postgres. It ends the server when the supervisor says so or has been killed.

import { setTimeout as sleep } from 'node:timers/promises';
import { processEnvironment, readConfig } from '../config.ts';
import { createLog, logToStderr } from '../platform/log.ts';
import { MetricsRegistry } from '../platform/metrics.ts';
import { startEmbeddedPostgres } from '../storage/postgres/embedded/embedded-postgres.ts';
import { ProcessLifecycle } from './process-lifecycle.ts';

/**
 * Gateways and jobs that lose their supervisor at the same time have 3 s to write what they can, so the database stays
 * longer.
 */
const ORPHAN_WAIT_MS = 4_000;
const STOP_LIMIT_MS = 60_000;

const config = readConfig(processEnvironment);
const log = createLog({ level: config.logLevel, process: 'postgres', destination: logToStderr() });
const lifecycle = new ProcessLifecycle({
  log,
  metrics: new MetricsRegistry(),
  supervised: true,
  outlastsGateways: true,
  drainLimitMs: STOP_LIMIT_MS,
  orphanLimitMs: STOP_LIMIT_MS,
});

const starting = startEmbeddedPostgres({ dataDir: config.dataDirectory, log });
let draining = false;
lifecycle.drainsWith({
  async drain() {
    draining = true;
    // A drain during the start waits for the start, because half a start would leave a server without an owner.
    const postgres = await starting;
    if (!process.connected) await sleep(ORPHAN_WAIT_MS);
    await postgres.stop();
  },
});
const { exited } = await starting;
lifecycle.ready();
const how = await exited;
// The supervisor replaces this process, and the new one starts the server again.
if (!draining) throw new Error(`the embedded Postgres ${how}`);
