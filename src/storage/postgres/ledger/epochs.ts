// Ends the epoch of a dead process: fences it, closes it after its spool was shipped, and resolves its open executions
// by a fixed rule.
//
//   running ──fenceEpoch──► fenced ──(spool shipped)──► closeDeadEpoch ──► resolvePending ──► closeDeadEpoch
//                           gets no lease               leases return      open executions    holds return
//                                                       except for holds   are cancelled
//
// A posting that was sent before its process died may wait in Postgres for a lock and be carried out after the closing.
// Such a posting settles executions that are still open. The rest of their holds returns with the next
// `resolveAllPending`.

import type { TerminalRecord } from '../../../records/execution-record.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { ANNOUNCE_RESOLVED } from '../webhooks/webhook-deliveries.ts';
import { AS_RECORD } from './generation-columns.ts';

/** The most executions that one transaction resolves. */
const RESOLVED_MAX = 1_000;

/** Fences an epoch, which then gets no further lease. Waits for a lease that is being taken. */
export async function fenceEpoch(client: PostgresClient, epoch: number): Promise<void> {
  await client.query('UPDATE process_epochs SET fenced_at = coalesce(fenced_at, now()) WHERE epoch = $1', [epoch]);
}

/** The epochs of a machine that still have leases or may have something to ship. */
export async function listOpenEpochs(
  postgres: PostgresClient,
  machine: string,
): Promise<{ epoch: number; kind: string; pid: number }[]> {
  const { rows } = await postgres.query<{ epoch: string; kind: string; pid: number }>(
    'SELECT epoch, kind, pid FROM process_epochs WHERE machine = $1 AND returned_at IS NULL ORDER BY epoch',
    [machine],
  );
  return rows.map((row) => ({ epoch: Number(row.epoch), kind: row.kind, pid: row.pid }));
}

/** Fences and closes an epoch that never had a lease or a posting; false when it had one, or is closed already. */
export async function closeUnusedEpoch(postgres: PostgresClient, epoch: number): Promise<boolean> {
  const { rowCount } = await postgres.query(
    `UPDATE process_epochs SET fenced_at = coalesce(fenced_at, now()), shipped_at = now(), returned_at = now()
      WHERE epoch = $1 AND returned_at IS NULL
        AND NOT EXISTS (SELECT FROM leases WHERE leases.epoch = $1)
        AND NOT EXISTS (SELECT FROM limit_leases WHERE limit_leases.epoch = $1)
        AND NOT EXISTS (SELECT FROM rate_holdings WHERE rate_holdings.epoch = $1)
        AND NOT EXISTS (SELECT FROM spool_cursors WHERE spool_cursors.epoch = $1)`,
    [epoch],
  );
  return rowCount === 1;
}

/**
 * Returns a dead epoch's leases of limits, and those of wallets except for the holds of pending executions. Must be
 * called in a transaction, after the whole spool of the epoch was posted; a second call changes nothing. The result is
 * the amount returned to wallets, in pico-dollars. A lease can be smaller than those holds after a power cut: it may
 * have lost the end of an execution whose unused part had been returned already.
 */
export async function closeDeadEpoch(client: PostgresClient, epoch: number): Promise<{ returned: bigint }> {
  await fenceEpoch(client, epoch);
  await client.query(
    `UPDATE process_epochs SET shipped_at = coalesce(shipped_at, now()), returned_at = coalesce(returned_at, now())
      WHERE epoch = $1`,
    [epoch],
  );
  await client.query('DELETE FROM rate_holdings WHERE epoch = $1', [epoch]);
  const returned = await returnWalletLeases(client, epoch);
  await returnLimitLeases(client, epoch);
  return { returned };
}

/** Returns the wallet leases except for the holds of pending executions. */
async function returnWalletLeases(client: PostgresClient, epoch: number): Promise<bigint> {
  // Wallets are locked late, since others wait for them. The lock is a statement of its own, so that the next statement
  // sees the leases as a late posting has left them.
  await client.query(
    'SELECT id FROM wallets WHERE id IN (SELECT wallet_id FROM leases WHERE epoch = $1) ORDER BY id FOR UPDATE',
    [epoch],
  );
  const { rows } = await client.query<{ returned: string }>(
    `WITH holds AS (
       SELECT wallet_id, sum(authorized_amount) AS held FROM generations
        WHERE epoch = $1 AND billing_status = 'pending' AND wallet_id IS NOT NULL GROUP BY wallet_id
     ), released AS MATERIALIZED (
       SELECT leases.wallet_id, greatest(leases.outstanding - coalesce(holds.held, 0), 0) AS amount
         FROM leases LEFT JOIN holds ON holds.wallet_id = leases.wallet_id
        WHERE leases.epoch = $1
     ), balances AS (
       UPDATE wallets SET leased = leased - amount FROM released WHERE wallets.id = released.wallet_id
     ), emptied AS (
       DELETE FROM leases USING released
        WHERE leases.epoch = $1 AND leases.wallet_id = released.wallet_id AND outstanding = amount
     ), rest AS (
       UPDATE leases SET outstanding = outstanding - amount FROM released
        WHERE leases.epoch = $1 AND leases.wallet_id = released.wallet_id AND outstanding > amount
     )
     SELECT coalesce(sum(amount), 0) AS returned FROM released`,
    [epoch],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('closing an epoch returned no row');
  return BigInt(row.returned);
}

/**
 * Returns all leases of limits: a dead process has no open request, and by the rule below an execution with an unknown
 * end has used nothing.
 */
async function returnLimitLeases(client: PostgresClient, epoch: number): Promise<void> {
  await client.query(
    `WITH locked AS MATERIALIZED (
       SELECT id FROM limit_pools WHERE id IN (SELECT pool_id FROM limit_leases WHERE epoch = $1) ORDER BY id FOR UPDATE
     ), released AS (
       DELETE FROM limit_leases USING locked WHERE limit_leases.epoch = $1 AND limit_leases.pool_id = locked.id
       RETURNING pool_id, outstanding
     )
     UPDATE limit_pools SET leased = leased - outstanding FROM released WHERE limit_pools.id = released.pool_id`,
    [epoch],
  );
}

/**
 * Resolves all open executions of closed epochs, and yields their records, from which facts are made. At the end, also
 * if the consumer fails, the wallet leases of these epochs return that no open execution holds any more.
 */
export async function* resolveAllPending(
  postgres: Postgres,
  nowMs: number,
): AsyncGenerator<readonly TerminalRecord[], void, undefined> {
  try {
    for (;;) {
      const records = await postgres.transaction((client) => resolvePending(client, { nowMs, max: RESOLVED_MAX }));
      if (records.length > 0) yield records;
      if (records.length < RESOLVED_MAX) break;
    }
  } finally {
    await closeOnceMore(postgres);
  }
}

/** Closes the closed epochs that still have leases once more. */
async function closeOnceMore(postgres: Postgres): Promise<void> {
  const { rows } = await postgres.query<{ epoch: string }>(
    `SELECT DISTINCT epoch FROM leases JOIN process_epochs USING (epoch)
      WHERE process_epochs.returned_at IS NOT NULL ORDER BY epoch`,
  );
  for (const { epoch } of rows) await postgres.transaction((client) => closeDeadEpoch(client, Number(epoch)));
}

/**
 * Applies the rule for executions that were open when their process died. Without a terminal record no client saw the
 * end, so the execution is `cancelled` (`not_billed` in an organization that is not billed), costs nothing and has the
 * outcome `process_killed`. The rule applies only to closed epochs, whose holds return when they are closed once more.
 * Must be called in a transaction. Returns the records from which facts are made.
 */
export async function resolvePending(
  client: PostgresClient,
  options: { nowMs: number; max: number },
): Promise<TerminalRecord[]> {
  const { rows } = await client.query<{ readonly record: TerminalRecord }>(RESOLVE, [options.nowMs, options.max]);
  return rows.map(({ record }) => record);
}

const RESOLVE = `
  WITH candidates AS MATERIALIZED (
    SELECT generations.id FROM generations JOIN process_epochs USING (epoch)
     WHERE generations.billing_status = 'pending' AND generations.ended_at IS NULL
       AND process_epochs.returned_at IS NOT NULL
     ORDER BY generations.id LIMIT $2 FOR UPDATE OF generations SKIP LOCKED
  ), resolved AS (
    UPDATE generations SET
      billing_status = CASE WHEN wallet_id IS NULL THEN 'not_billed' ELSE 'cancelled' END,
      charge = CASE WHEN wallet_id IS NULL THEN NULL ELSE 0 END,
      outcome = 'process_killed', error_code = 'process_killed', suspense = 0,
      ended_at = to_timestamp($1::double precision / 1000),
      latency_ms = greatest(0, $1::double precision - extract(epoch FROM admitted_at)::double precision * 1000),
      response_bytes = 0
    WHERE id IN (SELECT id FROM candidates)
    RETURNING *
  ), announced AS (
    ${ANNOUNCE_RESOLVED}
  )
  SELECT (${AS_RECORD}) AS record
  FROM resolved`;

/** After a restore on another machine, assigns the open epochs, whose spools were copied along, to that machine. */
export async function moveEpochs(postgres: PostgresClient, from: string, to: string): Promise<void> {
  await postgres.query('UPDATE process_epochs SET machine = $2 WHERE machine = $1 AND returned_at IS NULL', [from, to]);
}
