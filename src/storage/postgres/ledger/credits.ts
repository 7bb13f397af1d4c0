// Posts deposits into wallets, once per reference, and lists them.

import type { Actor } from '../../../domain/identity/actor.ts';
import { labelProblem } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { Deposit, PostDepositParams } from '../../../domain/money/deposit.ts';
import { formatUsdString } from '../../../domain/money/format.ts';
import { type PicoUsd, picoUsd } from '../../../domain/money/pico-usd.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, conflict, invalid, refuseProblems } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { ensureWallet } from './payer-wallets.ts';

export type DepositResult =
  /** `repeated`: the same deposit had been posted before under this reference, so nothing changed. */
  | { readonly ok: true; readonly repeated: boolean; readonly balance: bigint }
  /** The reference was used before for another amount. */
  | { readonly ok: false; readonly reason: 'reference_conflict' };

/** Posts a deposit; the reference makes it idempotent within its wallet. */
export async function deposit(
  postgres: PostgresClient,
  params: { walletId: string; amount: PicoUsd; reference: string },
): Promise<DepositResult> {
  const { rows } = await postgres.query<{ posted: boolean; conflict: boolean; balance: string }>(
    'SELECT posted, conflict, balance FROM post_deposit($1, $2, $3)',
    [params.walletId, params.amount.toString(), params.reference],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('post_deposit returned no row');
  if (row.conflict) return { ok: false, reason: 'reference_conflict' };
  return { ok: true, repeated: !row.posted, balance: BigInt(row.balance) };
}

export interface PostedDeposit extends Deposit {
  /** The same deposit had been posted before under this reference, so nothing changed. */
  readonly repeated: boolean;
  /** The wallet's balance after the deposit. */
  readonly balance: bigint;
}

/** Posts a deposit on behalf of an actor. A reference that was used for another amount is a `conflict`. */
export async function postDeposit(
  postgres: Postgres,
  actor: Actor,
  params: PostDepositParams,
): Promise<PostedDeposit | Refused> {
  const { organizationId, userId, amount, reference } = params;
  if (amount <= 0n) return invalid('amount', 'must be above 0');
  const problem = refuseProblems({ reference: labelProblem(reference) });
  if (problem !== null) return problem;
  return change(postgres, 'reference', async (client) => {
    const walletId = await ensureWallet(client, { organizationId, userId });
    if (isRefused(walletId)) return walletId as Refused;
    const posted = await deposit(client, { walletId, amount, reference });
    if (!posted.ok) return conflict('reference', 'was used before for another amount; nothing was posted');
    const [made] = await readDeposits(client, FIND_DEPOSIT, [walletId, reference]);
    if (made === undefined) throw new Error('a deposit was posted and cannot be found');
    if (!posted.repeated) {
      const after = { depositId: made.id, amount: formatUsdString(amount), reference };
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
 * A stored reference is 'deposit:', the wallet's 36 characters, ':' and the depositor's text; migration 0012 has its
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
