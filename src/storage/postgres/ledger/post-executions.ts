// Posts a batch of spool records in one statement: generation rows, ledger, wallets, leases, saved responses and the
// spool's cursor. Each execution is posted exactly once, however often a batch comes: the cursor admits a batch once,
// and a row is settled only while it is open.

import type { ExecutionRecord, TerminalRecord } from '../../../records/execution-record.ts';
import type { PostgresClient } from '../pool.ts';
import { REMEMBER_SIZES, sizesAsJson } from '../routing/turns.ts';
import { SAVE_ITEMS } from '../saved/saved-items.ts';
import { SAVE_RESPONSES, savedAsJson } from '../saved/saved-responses.ts';
import { ANNOUNCE_SETTLED } from '../webhooks/webhook-deliveries.ts';
import { ALL_COLUMNS, ALL_VALUES, CHANGES, RECORD_COLUMNS, START_COLUMNS, START_VALUES } from './generation-columns.ts';

/** The records between two offsets (in bytes) of a segment, in the order in which they were written. */
export interface SpoolBatch {
  readonly epoch: number;
  readonly segment: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly records: readonly ExecutionRecord[];
}

export type PostResult =
  /** `terminals`: the terminal records that this call posted, from which facts are made. */
  | { readonly status: 'posted'; readonly terminals: readonly TerminalRecord[] }
  /** The cursor was not at the start of the batch, and nothing was changed. The caller goes on from `postedOffset`. */
  | { readonly status: 'already_posted'; readonly postedOffset: number };

const READ_CURSOR = 'SELECT posted_offset FROM spool_cursors WHERE epoch = $1 AND segment = $2';

/**
 * One statement posts the whole batch, whatever its size, so this process only writes the records as JSON once. The
 * statement is its own transaction, which Postgres finishes even if this process dies, and it locks wallets after
 * everything else was written, so that gateways wait for them as briefly as possible.
 *
 *   cursor moves ─► input ─► terminals ─► settled (row absent or open) ─► due ─► transfers, entries ─► written
 *     (or nothing)       └─► opened (admitted,                         ├─► charges per wallet, locked in id order
 *                            no end in this batch)                     │     ─► balances, leases
 *                                                                      └─► spendings per budget pool, locked likewise
 *                                                                            ─► used, leases
 *
 * Use of a budget above its lease does not prevent the posting; check-ledger reports it as a fault. Suspense receives
 * usage that was not billed. If more was charged than a price accounts for (settle.ts), suspense receives that part of
 * the revenue. No step joins two lists of the batch: Postgres cannot know their lengths and would compare every pair.
 */
const POST = {
  name: 'post_executions',
  text: `
    WITH moved AS (
      INSERT INTO spool_cursors AS stored (epoch, segment, posted_offset)
      SELECT $1::bigint, $3::integer, $5::bigint WHERE $4::bigint = 0
        OR EXISTS (SELECT FROM spool_cursors WHERE epoch = $1 AND segment = $3)
      ON CONFLICT (epoch, segment) DO UPDATE SET posted_offset = excluded.posted_offset, updated_at = now()
        WHERE stored.posted_offset = $4
      RETURNING 1
    ), input AS MATERIALIZED (
      SELECT * FROM json_to_recordset($2::json) AS record (${RECORD_COLUMNS}) WHERE EXISTS (SELECT FROM moved)
    ), terminals AS MATERIALIZED (
      SELECT DISTINCT ON ("id") * FROM input WHERE "type" = 'terminal' ORDER BY "id"
    ), opened AS (
      INSERT INTO generations (${START_COLUMNS}, billing_status)
      SELECT ${START_VALUES}, 'pending' FROM input WHERE "type" = 'admitted'
      ON CONFLICT (id) DO NOTHING
      RETURNING 1
    ), settled AS (
      INSERT INTO generations AS stored (${ALL_COLUMNS})
      SELECT ${ALL_VALUES} FROM terminals
      ON CONFLICT (id) DO UPDATE SET ${CHANGES}
       WHERE stored.ended_at IS NULL AND stored.epoch = excluded.epoch
      RETURNING id, organization_id, wallet_id, outcome, rated_cost, charge, suspense, budgets, budget_use
    ), announced AS (
      ${ANNOUNCE_SETTLED}
      RETURNING 1
    ), saved AS (
      ${SAVE_RESPONSES} RETURNING 1
    ), saved_parts AS (
      ${SAVE_ITEMS} RETURNING 1
    ), sized AS (
      ${REMEMBER_SIZES} RETURNING 1
    ), due AS MATERIALIZED (
      SELECT nextval('ledger_transfers_id_seq') AS transfer_id, 'charge' AS kind, settled.id AS execution_id,
        charge AS amount,
             wallet.id AS from_account, (SELECT id FROM ledger_accounts WHERE kind = 'revenue') AS to_account
        FROM settled JOIN ledger_accounts AS wallet USING (wallet_id) WHERE charge > 0
      UNION ALL
      SELECT nextval('ledger_transfers_id_seq'), 'suspense', id, suspense,
             (SELECT id FROM ledger_accounts WHERE kind = CASE WHEN charge > coalesce(rated_cost, 0) THEN 'revenue'
               ELSE 'unbilled_usage' END), (SELECT id FROM ledger_accounts WHERE kind = 'suspense')
        FROM settled WHERE suspense > 0
    ), transfers AS (
      INSERT INTO ledger_transfers (id, reference, kind, execution_id)
        SELECT transfer_id, kind || ':' || execution_id, kind, execution_id FROM due
      RETURNING 1
    ), entries AS (
      INSERT INTO ledger_entries (transfer_id, account_id, amount)
      SELECT transfer_id, from_account, -amount FROM due UNION ALL SELECT transfer_id, to_account, amount FROM due
      RETURNING 1
    ), written AS MATERIALIZED (
      SELECT (SELECT count(*) FROM opened) + (SELECT count(*) FROM announced) + (SELECT count(*)
        FROM saved) + (SELECT count(*) FROM saved_parts)
           + (SELECT count(*) FROM sized) + (SELECT count(*) FROM transfers) + (SELECT count(*) FROM entries) AS rows
    ), charges AS MATERIALIZED (
      SELECT wallet_id, sum(charge) AS total FROM settled WHERE charge > 0 AND wallet_id IS NOT NULL GROUP BY wallet_id
    ), locked AS MATERIALIZED (
      SELECT wallets.id, charges.total FROM wallets JOIN charges ON charges.wallet_id = wallets.id
       WHERE (SELECT rows FROM written) >= 0 ORDER BY wallets.id FOR UPDATE OF wallets
    ), balances AS (
      UPDATE wallets SET balance = balance - locked.total, leased = leased - locked.total FROM locked
        WHERE wallets.id = locked.id
      RETURNING wallets.id
    ), held AS (
      UPDATE leases SET outstanding = outstanding - locked.total FROM locked
        WHERE leases.epoch = $1 AND leases.wallet_id = locked.id
      RETURNING leases.wallet_id
    ), spendings AS MATERIALIZED (
      SELECT pool_id, sum(budget_use) AS total FROM settled, unnest(budgets) AS pool_id WHERE budget_use > 0
        GROUP BY pool_id
    ), budgeted AS MATERIALIZED (
      SELECT pool.id, spendings.total, least(lease.outstanding, spendings.total) AS covered
        FROM spendings JOIN limit_pools pool ON pool.id = spendings.pool_id JOIN limit_leases lease
          ON lease.pool_id = pool.id AND lease.epoch = $1
       ORDER BY pool.id FOR UPDATE OF pool, lease
    ), spent AS (
      UPDATE limit_pools SET used = used + total, leased = leased - covered FROM budgeted
        WHERE limit_pools.id = budgeted.id
    ), unspent AS (
      UPDATE limit_leases SET outstanding = outstanding - covered FROM budgeted
        WHERE limit_leases.epoch = $1 AND limit_leases.pool_id = budgeted.id
    )
    SELECT check_posting(
             $1,
             (SELECT coalesce(sum(charge), 0) FROM settled WHERE wallet_id IS NOT NULL),
               (SELECT coalesce(sum(amount), 0) FROM due WHERE kind = 'charge'),
             (SELECT count(*) FROM charges), (SELECT count(*) FROM balances), (SELECT count(*) FROM held)),
           EXISTS (SELECT FROM moved) AS moved,
           (SELECT count(*) FROM settled)::integer AS settled,
           ARRAY(SELECT "id"::text FROM terminals EXCEPT SELECT id::text FROM settled) AS skipped`,
};

interface PostRow {
  /** Whether the cursor was at the batch's start. */
  readonly moved: boolean;
  readonly settled: number;
  readonly skipped: string[];
}

/** Posts the whole batch, unless it was posted before. The batch is posted completely or not at all. */
export async function postExecutions(client: PostgresClient, batch: SpoolBatch): Promise<PostResult> {
  const { epoch, segment, fromOffset, toOffset, records } = batch;
  const terminals = records.filter((record) => record.type === 'terminal');
  // An admitted record whose terminal record is in the same batch adds nothing to it.
  const ended = new Set(terminals.map(({ id }) => id));
  const needed = records.filter((record) => record.type === 'terminal' || !ended.has(record.id));
  const values = [epoch, asJson(needed), segment, fromOffset, toOffset, savedAsJson(terminals), sizesAsJson(terminals)];
  const { rows } = await client.query<PostRow>(POST, values);
  const row = rows[0];
  if (row === undefined) throw new Error('posting returned no row');
  if (!row.moved) return { status: 'already_posted', postedOffset: await readCursor(client, epoch, segment) };
  if (row.skipped.length === 0 && row.settled === terminals.length) return { status: 'posted', terminals };
  const seen = new Set(row.skipped);
  return {
    status: 'posted',
    terminals: terminals.filter(({ id }) => !seen.has(id.toLowerCase()) && seen.add(id.toLowerCase())),
  };
}

async function readCursor(client: PostgresClient, epoch: number, segment: number): Promise<number> {
  const { rows } = await client.query<{ posted_offset: string }>(READ_CURSOR, [epoch, segment]);
  return Number(rows[0]?.posted_offset ?? 0);
}

/**
 * Postgres accepts neither NUL nor lone surrogates in texts. One such character in a client's label would make Postgres
 * refuse the whole batch for ever. JSON.stringify writes both as escapes, so one search finds them. They are rare and
 * are replaced by U+FFFD.
 */
function asJson(records: readonly ExecutionRecord[]): string {
  const text = JSON.stringify(records);
  if (!/\\u(?:0000|d[89a-f])/.test(text)) return text;
  return JSON.stringify(records, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\uFFFD') : value,
  );
}
