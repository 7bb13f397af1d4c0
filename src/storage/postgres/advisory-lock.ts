// Runs work outside the database that only one process of the cluster may do at a time.

import type { Postgres } from './pool.ts';

/** Well below the idle limit, since a busy process may miss some ticks. */
const SIGN_OF_LIFE_MS = 1_000;
const IDLE_LIMIT = '20s';

/**
 * Waits for the current holder as long as the pool waits for any lock, then throws `StoreBusy`. The lock is released
 * when its connection ends or its process stands still.
 */
export async function holdingAdvisoryLock<T>(postgres: Postgres, lock: number, work: () => Promise<T>): Promise<T> {
  let isBegun = false;
  return postgres.transaction(async (client) => {
    // `transaction` begins anew after its connection has ended. The work is outside the database and would run twice.
    if (isBegun) throw new Error('the connection that held the lock ended before the work did');
    await client.query(`SET LOCAL idle_in_transaction_session_timeout = '${IDLE_LIMIT}'`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
    isBegun = true;
    const alive = setInterval(() => void client.query('SELECT 1').catch(() => undefined), SIGN_OF_LIFE_MS);
    try {
      return await work();
    } finally {
      clearInterval(alive);
    }
  });
}
