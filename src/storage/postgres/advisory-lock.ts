// Work that one process in the cluster may do at a time, for what has no lock of its own.

import type { Postgres } from './pool.ts';

/** Less than what Postgres waits for a transaction that stands still; a process whose loop is busy may miss some. */
const SIGN_OF_LIFE_MS = 1_000;
const IDLE_LIMIT = '20s';

/** Waits for whoever is at it; the lock goes with the connection, and with a process that stands still. */
export async function holdingAdvisoryLock<T>(postgres: Postgres, lock: number, work: () => Promise<T>): Promise<T> {
  return postgres.transaction(async (client) => {
    await client.query(`SET LOCAL lock_timeout = '10min'`);
    await client.query(`SET LOCAL statement_timeout = '10min'`);
    await client.query(`SET LOCAL idle_in_transaction_session_timeout = '${IDLE_LIMIT}'`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
    const alive = setInterval(() => void client.query('SELECT 1').catch(() => undefined), SIGN_OF_LIFE_MS);
    try {
      return await work();
    } finally {
      clearInterval(alive);
    }
  });
}
