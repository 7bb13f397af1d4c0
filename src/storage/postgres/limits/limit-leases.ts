// Takes, returns and recovers leases under usage limits (budgets, open requests, rates). The rules are SQL functions of
// migrations 0010 and 0047. `revokeLeases` in wallets.ts revokes leases by the limit's id.

import type { LeaseAnswer, LeaseRequest, RecoveredCall } from '../../../domain/quotas/lease.ts';
import type { PostgresClient } from '../pool.ts';

export interface LimitLeaseRequest extends LeaseRequest {
  readonly epoch: number;
  readonly limitId: string;
  /** The number of this call in this process, for `recoverLimitLease`. */
  readonly call?: number;
  /** Epoch milliseconds that replace the database's clock, for tests that replay hours. */
  readonly atMs?: number;
}

interface TakenRow {
  readonly granted: string;
  readonly grant_id: string;
  readonly valid_for_ms: number | null;
  readonly present_moved: boolean;
  readonly available: string;
  readonly leased_elsewhere: string;
  readonly ceiling: string | null;
  readonly retry_after_ms: number | null;
  readonly gone: boolean;
}

const TAKE = {
  name: 'take_limit_lease',
  text: `SELECT granted, grant_id, valid_for_ms, present_moved, available, leased_elsewhere,
                ceiling, retry_after_ms, gone
           FROM take_limit_lease($1, $2, $3, $4, $5, $6, to_timestamp($7::double precision / 1000), $8)`,
};
const GIVE_BACK = { name: 'give_back_limit_lease', text: 'SELECT give_back_limit_lease($1, $2, $3, $4, $5)' };
const RECOVER = {
  name: 'recover_limit_lease',
  text: `SELECT is_done, granted, grant_id
           FROM recover_limit_lease($1, $2, $3, to_timestamp($4::double precision / 1000))`,
};

/**
 * Leases `amount`, or what is left if that is at least `minimum`, or nothing. A fenced epoch is refused with SQLSTATE
 * TG001.
 */
export async function takeLimitLease(postgres: PostgresClient, request: LimitLeaseRequest): Promise<LeaseAnswer> {
  const { epoch, limitId, amount, minimum, present, atMs = null, call = null } = request;
  const { rows } = await postgres.query<TakenRow>(TAKE, [
    epoch,
    limitId,
    amount.toString(),
    minimum.toString(),
    present?.grantId ?? null,
    (present?.available ?? 0n).toString(),
    atMs,
    call,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('take_limit_lease returned no row');
  return {
    granted: BigInt(row.granted),
    grantId: row.grant_id,
    validForMs: row.valid_for_ms,
    presentMoved: row.present_moved,
    available: BigInt(row.available),
    leasedElsewhere: BigInt(row.leased_elsewhere),
    frozen: false,
    ceiling: row.ceiling === null ? null : BigInt(row.ceiling),
    retryAfterMs: row.retry_after_ms,
    gone: row.gone,
  };
}

/**
 * Returns a part of a lease. The caller must stop using the amount first. If the answer is lost, the caller must not
 * repeat the call, but use `recoverLimitLease` or let the amount of a rate age out. `grantId` is the grant under which
 * the amount was taken. For a rate, an amount of an earlier grant is not available under the present one.
 */
export async function returnLimitLease(
  postgres: PostgresClient,
  lease: {
    readonly epoch: number;
    readonly limitId: string;
    readonly grantId: string;
    readonly amount: bigint;
    readonly call?: number;
  },
): Promise<void> {
  const { epoch, limitId, grantId, amount, call = null } = lease;
  await postgres.query(GIVE_BACK, [epoch, limitId, grantId, amount.toString(), call]);
}

/**
 * The result of this process's last call about this budget or limit of open requests, whose answer was lost. A call
 * that was not done by now will never be done, even if it is still on its way to Postgres.
 */
export async function recoverLimitLease(
  postgres: PostgresClient,
  lost: { readonly epoch: number; readonly limitId: string; readonly call: number; readonly atMs?: number },
): Promise<RecoveredCall> {
  const { epoch, limitId, call, atMs = null } = lost;
  const { rows } = await postgres.query<{ is_done: boolean; granted: string; grant_id: string }>(RECOVER, [
    epoch,
    limitId,
    call,
    atMs,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('recover_limit_lease returned no row');
  return row.is_done ? { isDone: true, granted: BigInt(row.granted), grantId: row.grant_id } : { isDone: false };
}

/**
 * Deletes pools of past periods and removed limits once none of them is leased, and windows of removed rates. Returns
 * the number of pools deleted.
 */
export async function forgetLimitPools(postgres: PostgresClient, endedBefore: Date): Promise<number> {
  const { rows } = await postgres.query<{ forgotten: number }>(FORGET, [endedBefore]);
  return rows[0]?.forgotten ?? 0;
}

const FORGET = `
  WITH past AS MATERIALIZED (
    SELECT id FROM limit_pools pool
     WHERE leased = 0
       AND (period_end < $1 OR NOT EXISTS (SELECT FROM usage_limits WHERE usage_limits.id = pool.limit_id))
       FOR UPDATE SKIP LOCKED
  ), emptied AS (
    DELETE FROM limit_leases USING past WHERE limit_leases.pool_id = past.id
  ), pools AS (
    DELETE FROM limit_pools USING past WHERE limit_pools.id = past.id RETURNING limit_pools.id
  ), windows AS (
    DELETE FROM rate_windows WHERE NOT EXISTS (SELECT FROM usage_limits WHERE usage_limits.id = rate_windows.limit_id)
  ), holdings AS (
    DELETE FROM rate_holdings USING process_epochs epochs
     WHERE epochs.epoch = rate_holdings.epoch
       AND (epochs.returned_at IS NOT NULL
            OR NOT EXISTS (SELECT FROM usage_limits WHERE usage_limits.id = rate_holdings.limit_id))
  )
  SELECT count(*)::integer AS forgotten FROM pools`;
