// ClickHouse inside this process (chdb), behind the same client as a server. A data directory can be open in one
// process only, which is the jobs process.

import { mkdirSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { type ChdbConnection, createChdbConnection } from 'chdb/connection';
import type { Clock } from '../../platform/clock.ts';
import { lowerPriorityOfOtherThreads } from '../../platform/thread-priority.ts';
import { type ClientConnection, embeddedConnection } from './embedded-connection.ts';

/**
 * A killed predecessor keeps the kernel's lock on the directory until all its memory is released, which takes a moment.
 */
const LOCK_WAIT_MS = 10_000;
const LOCK_RETRY_MS = 100;

/**
 * By default the engine takes a whole machine. Here it shares one with gateways, so a query is limited, and spills to
 * disk rather than fail.
 */
const SESSION_SETTINGS: Readonly<Record<string, number>> = {
  max_threads: 2,
  max_insert_threads: 1,
  // The text of a statement contains its values (literals.ts), such as lists of ids and buckets.
  max_query_size: 16_000_000,
  max_memory_usage: 1_500_000_000,
  max_bytes_before_external_group_by: 700_000_000,
  max_bytes_before_external_sort: 700_000_000,
};

/**
 * A report keeps two threads busy for seconds, and gateways and the postings of this process must come first. Measured:
 * at this niceness reports do not raise the relay's latency (R3 in benchmarks/README.md, which also has the effect on
 * one core), and beside a saturated gateway twice as many postings get through.
 */
const NICENESS = 10;

export async function openEmbeddedClickHouse(options: { directory: string; clock: Clock }): Promise<ClickHouseClient> {
  const path = resolve(options.directory);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const engine = (await openLocked(path, options.clock)) as unknown as ClientConnection;
  killAtExitWhileOpen(engine);
  const close = async (): Promise<void> => {
    await engine.close();
    openConnections.delete(engine);
  };
  const client = createClient({ connection: { ...embeddedConnection(engine), close } });
  for (const [name, value] of Object.entries(SESSION_SETTINGS))
    await client.command({ query: `SET ${name} = ${value}` });
  // The statements above have started the threads that will run all others.
  lowerPriorityOfOtherThreads(NICENESS);
  return client;
}

/** The open connections of this process. They share one engine. */
const openConnections = new Set<ClientConnection>();

/**
 * An exit runs the engine's destructors while other threads still use what the destructors destroy. Measured with
 * statements under way: one exit in fifty crashed, and one in two hundred never ended, so that no successor started. An
 * exit with an open connection is therefore turned into a kill, which the data survive.
 */
function killAtExitWhileOpen(connection: ClientConnection): void {
  openConnections.add(connection);
  if (process.listeners('exit').includes(killIfOpen)) return;
  process.on('exit', killIfOpen);
  // Node would print an unhandled fault only after the exit event, which kills the process.
  process.on('uncaughtExceptionMonitor', (fault) => {
    if (process.listenerCount('uncaughtException') === 0) writeSync(2, `${inspect(fault)}\n`);
  });
}

function killIfOpen(): void {
  if (openConnections.size > 0) process.kill(process.pid, 'SIGKILL');
}

/**
 * The engine locks its directory itself and reports a taken lock only on stderr, so every failure to open is retried
 * for a while.
 */
async function openLocked(path: string, clock: Clock): Promise<ChdbConnection> {
  const deadlineMs = clock.monotonicMs() + LOCK_WAIT_MS;
  for (;;) {
    try {
      return createChdbConnection({ path });
    } catch (error) {
      if (clock.monotonicMs() >= deadlineMs) {
        throw new Error(`the ClickHouse data directory ${path} cannot be opened; another process may be using it`, {
          cause: error,
        });
      }
      await sleep(LOCK_RETRY_MS);
    }
  }
}
