// Credit that comes into wallets, each deposit once.

import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import type { PostgresClient } from './pool.ts';

export type DepositResult =
  /** `repeated`: this reference had been posted before with this amount, and nothing changed. */
  | { readonly ok: true; readonly repeated: boolean; readonly balance: bigint }
  /** The reference was used before for another amount. */
  | { readonly ok: false; readonly reason: 'reference_conflict' };

/** Posts a deposit; the reference makes it idempotent within its wallet. */
export async function deposit(postgres: PostgresClient, order: { walletId: string; amount: PicoUsd; reference: string }): Promise<DepositResult> {
  const { rows } = await postgres.query<{ posted: boolean; conflict: boolean; balance: string }>(
    'SELECT posted, conflict, balance FROM post_deposit($1, $2, $3)',
    [order.walletId, order.amount.toString(), order.reference],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('post_deposit returned no row');
  if (row.conflict) return { ok: false, reason: 'reference_conflict' };
  return { ok: true, repeated: !row.posted, balance: BigInt(row.balance) };
}

/** The wallet of an organization, by the organization's slug; null when there is no such organization. */
export async function findOrganizationWallet(postgres: PostgresClient, organizationSlug: string): Promise<string | null> {
  const { rows } = await postgres.query<{ id: string }>(
    'SELECT w.id FROM wallets w JOIN organizations o ON o.id = w.organization_id WHERE o.slug = $1 AND w.user_id IS NULL',
    [organizationSlug],
  );
  return rows[0]?.id ?? null;
}
