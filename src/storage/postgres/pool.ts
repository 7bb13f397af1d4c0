// Connections to Postgres: one pool per process with time limits on every statement, and transactions that are retried
// when Postgres asks for it.

import pg from 'pg';
import type { Log } from '../../platform/log.ts';
import { CommitUnanswered, StoreAway } from '../../platform/store-away.ts';
import { StoreBusy } from '../../platform/store-busy.ts';
import { ENDED_SQLSTATE, isUnreachable } from './unreachable.ts';

/** A statement. One with a name is prepared once on each connection, which pays for the few that run all the time. */
export type Statement = string | { readonly name: string; readonly text: string };

/** Runs statements: the pool, or one connection inside a transaction. */
export interface PostgresClient {
  query<Row extends object = Record<string, unknown>>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number }>;
}

export interface Postgres extends PostgresClient {
  /**
   * Runs `work` in one transaction. It may run more than once (serialization failure, deadlock, a connection that ended
   * before the commit), so it must have no effects outside the database.
   */
  transaction<T>(work: (client: PostgresClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 10;
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/** A part of the statement's time limit, so that a statement that waits for a lock fails as a lock timeout. */
const LOCK_TIMEOUT_PART = 0.6;
const LOCK_TIMEOUT_MS_MAX = 10_000;
/**
 * Ends the transaction of a process that stands still while others wait for its locked rows. No transaction of ours is
 * idle for this long.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 2_000;
const IDLE_CONNECTION_TIMEOUT_MS = 60_000;
const ANSWER_ON_ITS_WAY_MS = 1_000;
const TRANSACTION_ATTEMPTS_MAX = 5;
const RETRIED_SQLSTATES = new Set(['40001', '40P01']);
/** The SQLSTATE with which the server ends a connection whose transaction stood still. */
const IDLE_IN_TRANSACTION = '25P03';
/**
 * A lock was not released in time, a statement or a transaction took too long, or others were in its way each time:
 * Postgres cancelled it.
 */
const BUSY_SQLSTATES = new Set(['55P03', '57014', IDLE_IN_TRANSACTION, '25P04', ...RETRIED_SQLSTATES]);

export function createPostgres(options: {
  url: string;
  log: Log;
  max?: number;
  /** How many idle connections stay open. The first statement of a new connection takes far longer. */
  kept?: number;
  statementTimeoutMs?: number;
  idleTimeoutMs?: number;
}): Postgres {
  const { url, log, max = CONNECTIONS_MAX, kept = 0, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max,
    min: kept,
    application_name: 'tollgate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: options.idleTimeoutMs ?? IDLE_CONNECTION_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    lock_timeout: Math.min(LOCK_TIMEOUT_MS_MAX, statementTimeoutMs * LOCK_TIMEOUT_PART),
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    // Detects a server that vanished without closing the socket; statement_timeout is enforced by the server itself.
    query_timeout: statementTimeoutMs + ANSWER_ON_ITS_WAY_MS,
    keepAlive: true,
  });
  // The pool emits an event when an idle connection breaks; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'an idle Postgres connection broke'));
  // A connection in use reports errors through its query; this only keeps the event from being unhandled.
  pool.on('connect', (client) => client.on('error', () => {}));
  let closing: Promise<void> | null = null;
  return {
    query: (statement, values) => run(pool, statement, values),
    transaction: (work) => runTransaction(pool, work),
    close: () => (closing ??= pool.end()),
  };
}

async function run<Row extends object>(
  executor: pg.Pool | pg.PoolClient,
  statement: Statement,
  values: readonly unknown[] = [],
): Promise<{ rows: Row[]; rowCount: number; command: string }> {
  const query = typeof statement === 'string' ? { text: statement } : statement;
  try {
    const result = await executor.query<Row>({ ...query, values: values as unknown[] });
    return { rows: result.rows, rowCount: result.rowCount ?? 0, command: result.command };
  } catch (error) {
    throw classifyError(error);
  }
}

/** The only place that decides whether an error means that Postgres is busy or away. All other errors are bugs. */
function classifyError(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && BUSY_SQLSTATES.has(code)) return new StoreBusy(code, error);
  return isUnreachable(error) ? new StoreAway(error) : error;
}

async function runTransaction<T>(pool: pg.Pool, work: (client: PostgresClient) => Promise<T>): Promise<T> {
  let wasLost = false;
  for (let attempts = 1; ; attempts += 1) {
    const attempt = new TransactionAttempt();
    try {
      return await attempt.run(await connect(pool), work);
    } catch (error) {
      const { code } = error as { code?: string };
      const mustRetry = code !== undefined && RETRIED_SQLSTATES.has(code);
      // The server ends the connection of a process that stood still in a transaction. One such loss is retried.
      if (attempts === TRANSACTION_ATTEMPTS_MAX || !(mustRetry || (attempt.isLost && !wasLost))) throw error;
      wasLost ||= attempt.isLost;
    }
  }
}

async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw classifyError(error);
  }
}

class TransactionAttempt {
  /** The connection ended before the transaction could have been committed, so nothing was done. */
  isLost = false;
  /**
   * A fault of the connection, or the answer of a server that cannot be used, such as a standby. After it the
   * connection is not used again, not even to roll back.
   */
  private broken: Error | undefined;

  async run<T>(connection: pg.PoolClient, work: (client: PostgresClient) => Promise<T>): Promise<T> {
    const query: PostgresClient['query'] = (statement, values) =>
      this.noteFault(run(connection, statement, values), isConnectionLost);
    try {
      await query('BEGIN');
      const result = await work({ query });
      // Postgres ends a statement's time limit before it commits, so only the lock timeout bounds a commit that waits:
      // a transaction with notifications takes a lock of the whole server. A commit that times out has done nothing.
      const { command } = await this.commit(connection);
      // If `work` went on after a failed statement, Postgres answers COMMIT with ROLLBACK and without an error.
      if (command !== 'COMMIT')
        throw new Error('a transaction cannot be committed, since one of its statements failed');
      return result;
    } catch (error) {
      // Without this condition, a rollback would wait once more for a server that does not answer.
      if (this.broken === undefined)
        await connection.query('ROLLBACK').catch((rollbackError: Error) => {
          this.broken = rollbackError;
        });
      throw error;
    } finally {
      connection.release(this.broken);
    }
  }

  private async commit(connection: pg.PoolClient): Promise<{ command: string }> {
    try {
      return await this.noteFault(run(connection, 'COMMIT'), isUncommitted);
    } catch (error) {
      throw error instanceof StoreAway && !this.isLost ? new CommitUnanswered(error.cause as Error) : error;
    }
  }

  /** Notes the fault of a statement. `proves`: whether the fault proves that the transaction was not committed. */
  private async noteFault<T>(running: Promise<T>, proves: (fault: unknown) => boolean): Promise<T> {
    try {
      return await running;
    } catch (error) {
      const fault = error instanceof StoreBusy || error instanceof StoreAway ? error.cause : error;
      if (error instanceof StoreAway || !(fault instanceof pg.DatabaseError)) this.broken = fault as Error;
      this.isLost ||= proves(fault);
      throw error;
    }
  }
}

/** The driver's messages for a late answer, and for a connection that ended before a statement. */
const UNANSWERED = 'Query read timeout';
const NOT_QUERYABLE = 'is not queryable';

function isConnectionLost(fault: unknown): boolean {
  if (fault instanceof pg.DatabaseError)
    return fault.code === IDLE_IN_TRANSACTION || ENDED_SQLSTATE.test(fault.code ?? '');
  // A value that cannot be written is a bug of ours. All other errors of the driver are about the connection.
  if (fault instanceof TypeError || fault instanceof RangeError) return false;
  return !(fault instanceof Error) || fault.message !== UNANSWERED;
}

/** Whether the fault proves that the server ended the connection before it read the commit. */
function isUncommitted(fault: unknown): boolean {
  if (fault instanceof pg.DatabaseError) return fault.code === IDLE_IN_TRANSACTION;
  if (!(fault instanceof Error)) return false;
  return fault.message.endsWith(NOT_QUERYABLE) || (fault as NodeJS.ErrnoException).code === 'EPIPE';
}
