// Takes, returns and recovers leases of credit from wallets. The rules are SQL functions of migrations 0003, 0046 and
// 0047.

import type { LeaseAnswer, RecoveredCall } from '../../../domain/quotas/lease.ts';
import type { PostgresClient } from '../pool.ts';

/** The channel keeps its old name, because processes of other versions listen to it too. */
export const LEASE_REVOCATION_CHANNEL = 'tollgate_lease_revocation';
/** Notifies that a wallet got money or a limit was raised (migration 0045). The payload is its id. */
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

const TAKE = {
  name: 'take_lease',
  text: 'SELECT granted, available, leased_elsewhere, frozen FROM take_lease($1, $2, $3, $4, $5)',
};

export type WalletLeaseAnswer = Pick<LeaseAnswer, 'granted' | 'available' | 'leasedElsewhere' | 'frozen'>;

/**
 * Leases `amount`, or what is left if that is at least `minimum`, or nothing. `call`: the number of this call in this
 * process, with which `recoverLease` can tell its result if the answer is lost.
 */
export async function takeLease(
  postgres: PostgresClient,
  request: { epoch: number; walletId: string; amount: bigint; minimum: bigint; call?: number },
): Promise<WalletLeaseAnswer> {
  const { rows } = await postgres.query<{
    granted: string;
    available: string;
    leased_elsewhere: string;
    frozen: boolean;
  }>(TAKE, [
    request.epoch,
    request.walletId,
    request.amount.toString(),
    request.minimum.toString(),
    request.call ?? null,
  ]);
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
 * Returns a part of a lease. The caller must stop using the amount first. If the answer is lost, the caller must not
 * repeat the call but use `recoverLease`.
 */
export async function returnLease(
  postgres: PostgresClient,
  lease: { epoch: number; walletId: string; amount: bigint; call?: number },
): Promise<void> {
  await postgres.query({ name: 'return_lease', text: 'SELECT return_lease($1, $2, $3, $4)' }, [
    lease.epoch,
    lease.walletId,
    lease.amount.toString(),
    lease.call ?? null,
  ]);
}

/** The result of this process's last call about this wallet, whose answer was lost. */
export async function recoverLease(
  postgres: PostgresClient,
  { epoch, walletId, call }: { epoch: number; walletId: string; call: number },
): Promise<RecoveredCall> {
  const { rows } = await postgres.query<{ is_done: boolean; granted: string }>(
    { name: 'recover_lease', text: 'SELECT is_done, granted FROM recover_lease($1, $2, $3)' },
    [epoch, walletId, call],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('recover_lease returned no row');
  return row.is_done ? { isDone: true, granted: BigInt(row.granted), grantId: walletId } : { isDone: false };
}

/**
 * Asks every listening process to return the available parts of its leases of wallets or limits. A payload is an id,
 * followed by a space and the epoch of the asking process if there is one (readRevocation in lease-store.ts).
 */
export async function revokeLeases(postgres: PostgresClient, payloads: readonly string[]): Promise<void> {
  if (payloads.length === 0) return;
  const notify = 'SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload';
  await postgres.query(notify, [LEASE_REVOCATION_CHANNEL, payloads]);
}
