// Runs transactions that can end with a result and without a change: for dry runs, and for refusals after a write.

import type { Postgres, PostgresClient } from './pool.ts';

/** Rolls the transaction back, and makes `result` the result of `transactionOrRollback`. */
export type RollBack<T> = (result: T) => never;

export async function transactionOrRollback<T>(
  postgres: Postgres,
  work: (client: PostgresClient, rollBack: RollBack<T>) => Promise<T>,
): Promise<T> {
  try {
    return await postgres.transaction((client) =>
      work(client, (result) => {
        throw new RolledBack(result);
      }),
    );
  } catch (end) {
    if (end instanceof RolledBack) return end.result as T;
    throw end;
  }
}

class RolledBack extends Error {
  readonly result: unknown;

  constructor(result: unknown) {
    super('the transaction is rolled back on purpose');
    this.result = result;
  }
}
