// Leases of credit: what a process borrows from a wallet and hands back (DESIGN 4). The rules are SQL functions of
// migration 0003.

import type { PostgresClient } from '../pool.ts';

const LEASE_RECALL_CHANNEL = 'tollgate_lease_recall';

/** Gives a new process its epoch: the name under which it holds leases and writes its spool. */
export async function registerEpoch(
  postgres: PostgresClient,
  process: { machine: string; pid: number; kind: string },
): Promise<number> {
  const { rows } = await postgres.query<{ epoch: string }>(
    'INSERT INTO process_epochs (machine, kind, pid) VALUES ($1, $2, $3) RETURNING epoch',
    [process.machine, process.kind, process.pid],
  );
  return Number(rows[0]?.epoch);
}

export interface LeaseAnswer {
  readonly granted: bigint;
  /** What the wallet has free after this. */
  readonly available: bigint;
  /** What other processes hold of it. */
  readonly leasedElsewhere: bigint;
  readonly frozen: boolean;
}

/** Borrows `amount`, or what is free if that is at least `minimum`, or nothing. */
export async function takeLease(
  postgres: PostgresClient,
  wish: { epoch: number; walletId: string; amount: bigint; minimum: bigint },
): Promise<LeaseAnswer> {
  const { rows } = await postgres.query<{
    granted: string;
    available: string;
    leased_elsewhere: string;
    frozen: boolean;
  }>(
    { name: 'take_lease', text: 'SELECT granted, available, leased_elsewhere, frozen FROM take_lease($1, $2, $3, $4)' },
    [wish.epoch, wish.walletId, wish.amount.toString(), wish.minimum.toString()],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('take_lease returned no row');
  return {
    granted: BigInt(row.granted),
    available: BigInt(row.available),
    leasedElsewhere: BigInt(row.leased_elsewhere),
    frozen: row.frozen,
  };
}

/**
 * Not to be repeated when its answer is lost: forget the money first. What did not get back returns when the epoch is
 * closed.
 */
export async function returnLease(
  postgres: PostgresClient,
  lease: { epoch: number; walletId: string; amount: bigint },
): Promise<void> {
  await postgres.query({ name: 'return_lease', text: 'SELECT return_lease($1, $2, $3)' }, [
    lease.epoch,
    lease.walletId,
    lease.amount.toString(),
  ]);
}

/** Asks every process to hand back what it has free of a wallet; answered by those that listen, when they can. */
export async function recallLeases(postgres: PostgresClient, walletId: string): Promise<void> {
  await postgres.query('SELECT pg_notify($1, $2)', [LEASE_RECALL_CHANNEL, walletId]);
}
