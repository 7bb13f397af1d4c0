// The process that owns the embedded Postgres and ends it: told to by the supervisor, or left alone by a supervisor
// that was killed.

import { setTimeout as sleep } from 'node:timers/promises';
import { processEnvironment, readConfig } from '../config.ts';
import { createLog } from '../platform/log.ts';
import { MetricsRegistry } from '../platform/metrics.ts';
import { startEmbeddedPostgres } from '../storage/postgres/embedded/embedded-postgres.ts';
import { logToStderr } from './log-destination.ts';
import { ProcessLifecycle } from './process-lifecycle.ts';

/** Gateways and jobs, orphaned in the same moment, have 3 s to write down what they can: the database outlasts them. */
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
    // Told to end while it starts, it waits for the start: half a start would leave a server that nobody owns.
    const postgres = await starting;
    if (!process.connected) await sleep(ORPHAN_WAIT_MS);
    await postgres.stop();
  },
});
const { exited } = await starting;
lifecycle.ready();
const how = await exited;
// A fault of this process: the supervisor starts another one, and that one the server.
if (!draining) throw new Error(`the embedded Postgres ${how}`);
