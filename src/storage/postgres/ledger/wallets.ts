// Leases of credit: how a process takes them from a wallet and returns them. The rules are SQL functions of migration
// 0003.

import type { LeaseAnswer } from '../../../domain/quotas/lease.ts';
import type { PostgresClient } from '../pool.ts';

/** The channel keeps its old name, because processes of other versions listen to it too. */
export const LEASE_REVOCATION_CHANNEL = 'tollgate_lease_revocation';
/** A wallet got money or a limit was raised (migration 0045): its id. */
export const LEASE_ROOM_CHANNEL = 'tollgate_lease_room';

/** Registers a process and returns its epoch, the number under which it holds leases and writes its spool. */
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

export type WalletLeaseAnswer = Pick<LeaseAnswer, 'granted' | 'available' | 'leasedElsewhere' | 'frozen'>;

/** Leases `amount`, or the rest if that is at least `minimum`, or nothing. */
export async function takeLease(
  postgres: PostgresClient,
  request: { epoch: number; walletId: string; amount: bigint; minimum: bigint },
): Promise<WalletLeaseAnswer> {
  const { rows } = await postgres.query<{
    granted: string;
    available: string;
    leased_elsewhere: string;
    frozen: boolean;
  }>(
    { name: 'take_lease', text: 'SELECT granted, available, leased_elsewhere, frozen FROM take_lease($1, $2, $3, $4)' },
    [request.epoch, request.walletId, request.amount.toString(), request.minimum.toString()],
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
 * The caller must give the money up first, and must not repeat the call if its answer is lost: what was not returned
 * comes back when the epoch is closed.
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

/**
 * Asks every listening process to return the available part of its lease of a wallet or limit. `quota` is its id,
 * followed by a space and the epoch of the asking process if there is one (readRevocation in gateway/lease-store.ts).
 */
export async function revokeLeases(postgres: PostgresClient, quota: string): Promise<void> {
  await postgres.query('SELECT pg_notify($1, $2)', [LEASE_REVOCATION_CHANNEL, quota]);
}
