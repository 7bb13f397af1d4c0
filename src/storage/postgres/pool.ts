// Connections to Postgres: one pool per process with time limits on every statement, and transactions that are retried
// when Postgres asks for it.

import pg from 'pg';
import type { Log } from '../../platform/log.ts';
import { CommitUnanswered, StoreAway } from '../../platform/store-away.ts';
import { StoreBusy } from '../../platform/store-busy.ts';
import { ENDED_SQLSTATE, isUnreachable } from './unreachable.ts';

/** A statement as text; with a name, each connection prepares it once, which pays for the few that run all the time. */
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
 * Ends the transaction of a process that stands still with rows locked that others wait for. No transaction of ours
 * thinks that long.
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
  /** So many stay open however long nobody asks: the first statement of a new one takes far longer. */
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
    throw tellApart(error);
  }
}

/** Whoever asks Postgres learns here, and nowhere else, whether it is busy or away; all other faults are bugs. */
function tellApart(error: unknown): unknown {
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
      // A process that stood still while it had rows locked finds its connection ended: once, not each time.
      if (attempts === TRANSACTION_ATTEMPTS_MAX || !(mustRetry || (attempt.isLost && !wasLost))) throw error;
      wasLost ||= attempt.isLost;
    }
  }
}

async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw tellApart(error);
  }
}

class TransactionAttempt {
  /** The connection ended before it could have been committed: nothing was done. */
  isLost = false;
  /**
   * A fault that was not the server's answer, or the answer of one that cannot be used, such as a standby: the
   * connection is not trusted after it, not even to roll back.
   */
  private broken: Error | undefined;

  async run<T>(connection: pg.PoolClient, work: (client: PostgresClient) => Promise<T>): Promise<T> {
    const query: PostgresClient['query'] = (statement, values) =>
      this.noteFault(run(connection, statement, values), isConnectionLost);
    try {
      await query('BEGIN');
      const result = await work({ query });
      // Postgres ends the time limit of a statement before it commits, so only that of locks bounds this: to notify
      // takes one of the whole server. Who waited for it in vain has done nothing.
      const { command } = await this.commit(connection);
      // Where `work` went on after a failed statement, Postgres answers COMMIT with ROLLBACK, and no error.
      if (command !== 'COMMIT') throw new Error('a transaction was to be committed in which a statement had failed');
      return result;
    } catch (error) {
      // A server that does not answer would be waited for once more.
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

  /** `proves`: whether a fault says that the transaction was not committed, since its connection had ended. */
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

/** The driver's words for an answer that did not come in time, and for a connection that ended before a statement. */
const UNANSWERED = 'Query read timeout';
const NOT_QUERYABLE = 'is not queryable';

function isConnectionLost(fault: unknown): boolean {
  if (fault instanceof pg.DatabaseError)
    return fault.code === IDLE_IN_TRANSACTION || ENDED_SQLSTATE.test(fault.code ?? '');
  // A value that cannot be written is a bug of ours. All else that the driver says is about the connection.
  if (fault instanceof TypeError || fault instanceof RangeError) return false;
  return !(fault instanceof Error) || fault.message !== UNANSWERED;
}

/** The server ended the connection before it read the commit, if that was sent at all. */
function isUncommitted(fault: unknown): boolean {
  if (fault instanceof pg.DatabaseError) return fault.code === IDLE_IN_TRANSACTION;
  if (!(fault instanceof Error)) return false;
  return fault.message.endsWith(NOT_QUERYABLE) || (fault as NodeJS.ErrnoException).code === 'EPIPE';
}
