// Runs work that only one process of the cluster may do at a time and that has no lock of its own.

import type { Postgres } from './pool.ts';

/** Well below the idle limit, since a busy process may miss some ticks. */
const SIGN_OF_LIFE_MS = 1_000;
const IDLE_LIMIT = '20s';

/** Waits for the current holder. The lock is released when its connection ends or its process stands still. */
export async function holdingAdvisoryLock<T>(postgres: Postgres, lock: number, work: () => Promise<T>): Promise<T> {
  let isBegun = false;
  return postgres.transaction(async (client) => {
    await client.query(`SET LOCAL lock_timeout = '10min'`);
    await client.query(`SET LOCAL statement_timeout = '10min'`);
    await client.query(`SET LOCAL idle_in_transaction_session_timeout = '${IDLE_LIMIT}'`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
    // What it does lies outside the transaction, so it is not done a second time where the connection has ended.
    if (isBegun) throw new Error('the connection that held the lock ended before the work did');
    isBegun = true;
    const alive = setInterval(() => void client.query('SELECT 1').catch(() => undefined), SIGN_OF_LIFE_MS);
    try {
      return await work();
    } finally {
      clearInterval(alive);
    }
  });
}
