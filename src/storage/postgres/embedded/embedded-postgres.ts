// The embedded Postgres: a real server from its npm package, started and stopped by one process.

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../../platform/log.ts';
import { ensureCluster } from './cluster.ts';
import { openPostgresHome, type PostgresHome, postgresUrl, removeSharedSocketDirectory } from './home.ts';
import {
  clearStalePostmaster,
  type Postmaster,
  readLogTail,
  sendSignal,
  spawnPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import { installPostgresRuntime } from './runtime.ts';

export { embeddedPostgresUrl } from './home.ts';

export interface EmbeddedPostgres {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server has ended, with how it ended. `startEmbeddedPostgres` starts it again. */
  readonly exited: Promise<string>;
  stop(): Promise<void>;
}

/**
 * Backends of a killed server keep its shared memory until they notice. A start fails at once while they do, and is
 * retried.
 */
const START_ATTEMPTS_MAX = 8;
const START_RETRY_MS = 250;
const READY_POLL_MS = 20;
/** Recovery after a crash replays at most max_wal_size, which takes minutes only on a very slow disk. */
const READY_WAIT_MS = 300_000;

const SQLSTATE_STARTING_UP = '57P03';
const SQLSTATE_NO_SUCH_DATABASE = '3D000';
const SQLSTATE_DUPLICATE_DATABASE = '42P04';
const NOT_LISTENING = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', SQLSTATE_STARTING_UP]);

export interface EmbeddedPostgresOptions {
  readonly dataDir: string;
  readonly log: Log;
  /** Appended to the server's own arguments, which they override. */
  readonly furtherArguments?: readonly string[];
}

/** Starts the data directory's Postgres, creating everything that it needs on the first run. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, furtherArguments = [] } = options;
  const home = openPostgresHome(dataDir);
  const runtime = installPostgresRuntime(home.directory);
  await ensureCluster(home, runtime);
  await clearStalePostmaster(home, log);

  const postmaster = await startUntilReady(home, () => spawnPostmaster(home, runtime, furtherArguments));
  const endWithUs = (): void => {
    if (!postmaster.hasExited()) sendSignal(postmaster.pid, 'SIGINT');
  };
  process.on('exit', endWithUs);
  return {
    url: postgresUrl(home),
    pid: postmaster.pid,
    exited: postmaster.exited,
    async stop() {
      await stopPostmaster(postmaster.pid, () => !postmaster.hasExited(), log);
      removeSharedSocketDirectory(home);
      process.off('exit', endWithUs);
    },
  };
}

async function startUntilReady(home: PostgresHome, spawn: () => Postmaster): Promise<Postmaster> {
  for (let attempt = 1; ; attempt += 1) {
    const postmaster = spawn();
    const failure = await waitUntilReady(home, postmaster);
    if (failure === null) return postmaster;
    if (attempt === START_ATTEMPTS_MAX || !failure.includes('shared memory')) {
      throw new Error(`the embedded Postgres did not start:\n${failure}`);
    }
    await sleep(START_RETRY_MS);
  }
}

/** null once the database answers, otherwise why it does not. */
async function waitUntilReady(home: PostgresHome, postmaster: Postmaster): Promise<string | null> {
  let ended: string | null = null;
  void postmaster.exited.then((how) => {
    ended = how;
  });
  for (let waitedMs = 0; waitedMs < READY_WAIT_MS; waitedMs += READY_POLL_MS) {
    if (ended !== null) return `it ${ended as string}\n${readLogTail(home)}`;
    const problem = await tryToConnect(home);
    if (problem === null) return null;
    if (!NOT_LISTENING.has(problem.code ?? '')) {
      sendSignal(postmaster.pid, 'SIGINT');
      return `it answered "${problem.message}"\n${readLogTail(home)}`;
    }
    await sleep(READY_POLL_MS);
  }
  return `it was not ready after ${READY_WAIT_MS / 1000} seconds\n${readLogTail(home)}`;
}

type ConnectProblem = Error & { code?: string };

/** Connects to the database; the first start has to create it. */
async function tryToConnect(home: PostgresHome): Promise<ConnectProblem | null> {
  const problem = await connectOnce(postgresUrl(home), null);
  if (problem?.code !== SQLSTATE_NO_SUCH_DATABASE) return problem;
  const creation = await connectOnce(postgresUrl(home, 'postgres'), 'CREATE DATABASE tollgate');
  return creation?.code === SQLSTATE_DUPLICATE_DATABASE ? null : creation;
}

async function connectOnce(url: string, statement: string | null): Promise<ConnectProblem | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {}); // reported by the call that is waiting
  try {
    await client.connect();
    if (statement !== null) await client.query(statement);
    return null;
  } catch (error) {
    return error as ConnectProblem;
  } finally {
    await client.end().catch(() => {});
  }
}
