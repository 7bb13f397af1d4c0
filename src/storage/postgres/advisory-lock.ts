// Work that one process in the cluster may do at a time, for what has no lock of its own.

import type { Postgres } from './pool.ts';

/** Waits for whoever is at it; the lock goes with the connection, whatever happens to this process. */
export async function holdingAdvisoryLock<T>(postgres: Postgres, lock: number, work: () => Promise<T>): Promise<T> {
  return postgres.transaction(async (client) => {
    await client.query(`SET LOCAL lock_timeout = '10min'`);
    await client.query(`SET LOCAL statement_timeout = '10min'`);
    await client.query(`SET LOCAL idle_in_transaction_session_timeout = '10min'`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
    return work();
  });
}
