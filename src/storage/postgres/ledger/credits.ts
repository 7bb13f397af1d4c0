// Credit that comes into wallets, each deposit once by its reference, and the deposits that came.

import type { Actor } from '../../../domain/identity/actor.ts';
import { labelFault } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { Deposit, DepositOrder } from '../../../domain/money/deposit.ts';
import { type PicoUsd, picoUsd } from '../../../domain/money/pico-usd.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, conflict, invalid, refuseFaults } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { ensureWallet } from './payer-wallets.ts';

export type DepositResult =
  /** `repeated`: this reference had been posted before with this amount, and nothing changed. */
  | { readonly ok: true; readonly repeated: boolean; readonly balance: bigint }
  /** The reference was used before for another amount. */
  | { readonly ok: false; readonly reason: 'reference_conflict' };

/** Posts a deposit; the reference makes it idempotent within its wallet. */
export async function deposit(
  postgres: PostgresClient,
  order: { walletId: string; amount: PicoUsd; reference: string },
): Promise<DepositResult> {
  const { rows } = await postgres.query<{ posted: boolean; conflict: boolean; balance: string }>(
    'SELECT posted, conflict, balance FROM post_deposit($1, $2, $3)',
    [order.walletId, order.amount.toString(), order.reference],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('post_deposit returned no row');
  if (row.conflict) return { ok: false, reason: 'reference_conflict' };
  return { ok: true, repeated: !row.posted, balance: BigInt(row.balance) };
}

export interface PostedDeposit extends Deposit {
  /** This reference had been posted before with this amount, and nothing changed. */
  readonly repeated: boolean;
  /** Of the wallet, after it. */
  readonly balance: bigint;
}

/** Posts a deposit in somebody's name. A reference that was used before for another amount is a `conflict`. */
export async function postDeposit(
  postgres: Postgres,
  actor: Actor,
  order: DepositOrder,
): Promise<PostedDeposit | Refused> {
  const { organizationId, userId, amount, reference } = order;
  if (amount <= 0n) return invalid('amount', 'must be above 0');
  const fault = refuseFaults({ reference: labelFault(reference) });
  if (fault !== null) return fault;
  return change(postgres, 'reference', async (client) => {
    const walletId = await ensureWallet(client, { organizationId, userId });
    if (isRefused(walletId)) return walletId as Refused;
    const posted = await deposit(client, { walletId, amount, reference });
    if (!posted.ok) return conflict('reference', 'was used before for another amount; nothing was posted');
    const [made] = await readDeposits(client, FIND_DEPOSIT, [walletId, reference]);
    if (made === undefined) throw new Error('a deposit was posted and cannot be found');
    if (!posted.repeated) {
      const after = { depositId: made.id, amount: amount.toString(), reference };
      await recordAudit(client, actor, {
        organizationId,
        action: 'wallet.deposit',
        target: { kind: 'wallet', id: walletId },
        after,
      });
    }
    return { ...made, repeated: posted.repeated, balance: posted.balance };
  });
}

interface DepositRow {
  readonly id: string;
  readonly reference: string;
  readonly amount: string;
  readonly created_ms: number;
}

/**
 * A reference is 'deposit:', the wallet's 36 characters, ':' and what the depositor wrote; migration 0012 has the
 * index.
 */
const DEPOSITS = `
  SELECT t.id::text, substr(t.reference, 46) AS reference, e.amount,
         (extract(epoch FROM t.created_at) * 1000)::double precision AS created_ms
    FROM ledger_transfers t
    JOIN ledger_accounts a ON a.wallet_id = $1
    JOIN ledger_entries e ON e.transfer_id = t.id AND e.account_id = a.id
   WHERE t.kind = 'deposit' AND split_part(t.reference, ':', 2) = $1::uuid::text`;
const FIND_DEPOSIT = `${DEPOSITS} AND t.reference = 'deposit:' || $1::uuid || ':' || $2`;
const LIST_DEPOSITS = `${DEPOSITS} AND ($2::bigint IS NULL OR t.id < $2) ORDER BY t.id DESC LIMIT $3`;

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 200;

/** Newest first. */
export async function listDeposits(
  postgres: PostgresClient,
  params: PageParams & { walletId: string },
): Promise<Page<Deposit> | Refused> {
  const { walletId, limit = LIMIT_DEFAULT, cursor = null } = params;
  if (limit < 1 || limit > LIMIT_MAX) return invalid('limit', `must be from 1 to ${LIMIT_MAX}`);
  const before = cursor === null ? null : Buffer.from(cursor, 'base64url').toString('latin1');
  if (before !== null && !/^d[1-9]\d{0,17}$/.test(before))
    return invalid('cursor', 'must be the next_cursor of an earlier page');
  const found = await readDeposits(postgres, LIST_DEPOSITS, [walletId, before?.slice(1) ?? null, limit + 1]);
  const last = found.length > limit ? found[limit - 1] : undefined;
  return {
    items: found.slice(0, limit),
    nextCursor: last === undefined ? null : Buffer.from(`d${last.id}`, 'latin1').toString('base64url'),
  };
}

async function readDeposits(
  postgres: PostgresClient,
  statement: string,
  values: readonly unknown[],
): Promise<Deposit[]> {
  const { rows } = await postgres.query<DepositRow>(statement, values);
  return rows.map(({ id, reference, amount, created_ms }) => ({
    id,
    amount: picoUsd(BigInt(amount)),
    reference,
    createdAtMs: Math.floor(created_ms),
  }));
}
