// Wallets as their owners and the platform see them: balance, owner, and whether they are frozen. wallets.ts has their
// leases.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { PayerWallet } from '../../../domain/money/payer-wallet.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, NOT_FOUND } from '../identity/change.ts';
import { createdAtMs, PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from '../identity/page.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { revokeLeases } from './wallets.ts';

interface WalletRow {
  readonly id: string;
  readonly created_us: string;
  readonly organization_id: string;
  readonly user_id: string | null;
  readonly balance: string;
  readonly leased: string;
  readonly held: string;
  readonly frozen: boolean;
}

/** The holds of executions whose start is posted and whose end is not. The wallet's leases cover these holds. */
const HELD = `LEAST(t.leased, (SELECT coalesce(sum(authorized_amount), 0) FROM generations g
  WHERE g.billing_status = 'pending' AND g.wallet_id = t.id))`;
const COLUMNS = `${PAGE_COLUMNS}, t.organization_id, t.user_id, t.balance, t.leased, ${HELD} AS held, t.frozen`;

export async function readWallet(postgres: PostgresClient, walletId: string): Promise<PayerWallet | Refused> {
  const { rows } = await postgres.query<WalletRow>(
    { name: 'read_wallet', text: `SELECT ${COLUMNS} FROM wallets t WHERE t.id = $1` },
    [walletId],
  );
  return rows[0] === undefined ? NOT_FOUND : toWallet(rows[0]);
}

/** Oldest first: the organization's wallet, then those of its members. */
export async function listWallets(
  postgres: PostgresClient,
  params: PageParams & { organizationId: string },
): Promise<Page<PayerWallet> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS} FROM wallets t WHERE ${PAGE_CONDITION} AND t.organization_id = $4 ${PAGE_ORDER}`,
    [params.organizationId],
    toWallet,
  );
}

/** The id of an existing payer's wallet: the organization's, or a member's own, which is created on first use. */
export async function ensureWallet(
  client: PostgresClient,
  payer: { organizationId: string; userId: string | null },
): Promise<string | Refused> {
  const { organizationId, userId } = payer;
  if (!areUuids(organizationId) || (userId !== null && !areUuids(userId))) return NOT_FOUND;
  if (userId !== null) {
    await client.query(
      `INSERT INTO wallets (organization_id, user_id)
       SELECT organization_id, user_id FROM memberships WHERE organization_id = $1 AND user_id = $2 AND team_id IS NULL
       ON CONFLICT (organization_id, user_id) WHERE user_id IS NOT NULL DO NOTHING`,
      [organizationId, userId],
    );
  }
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM wallets WHERE organization_id = $1 AND user_id IS NOT DISTINCT FROM $2::uuid',
    [organizationId, userId],
  );
  return rows[0]?.id ?? NOT_FOUND;
}

/**
 * A frozen wallet grants no leases: its requests are refused with billing_frozen (spec 7.4). Open requests still
 * settle.
 */
export async function freezeWallet(
  postgres: Postgres,
  actor: Actor,
  { organizationId, walletId, frozen }: { organizationId: string; walletId: string; frozen: boolean },
): Promise<PayerWallet | Refused> {
  if (!areUuids(organizationId, walletId)) return NOT_FOUND;
  return change(postgres, 'wallet', async (client) => {
    await client.query('SELECT FROM wallets WHERE id = $1 FOR UPDATE', [walletId]);
    const before = await readWallet(client, walletId);
    if (isRefused(before) || before.organizationId !== organizationId) return NOT_FOUND;
    if (before.frozen === frozen) return before;
    await setFrozen(client, walletId, frozen);
    const action = frozen ? 'wallet.freeze' : 'wallet.unfreeze';
    await recordAudit(client, actor, {
      organizationId,
      action,
      target: { kind: 'wallet', id: walletId },
      before: { frozen: !frozen },
      after: { frozen },
    });
    return { ...before, frozen };
  });
}

/**
 * Freezes or unfreezes a wallet. Also revokes the credit that gateways have leased, so that freezing takes effect at
 * once and not when they have spent it.
 */
export async function setFrozen(client: PostgresClient, walletId: string, frozen: boolean): Promise<void> {
  await client.query('UPDATE wallets SET frozen = $2 WHERE id = $1', [walletId, frozen]);
  await revokeLeases(client, [walletId]);
}

/**
 * Revokes the leases of frozen wallets again, in case a gateway missed the first revocation. Returns how many frozen
 * wallets still have leases.
 */
export async function revokeFrozen(postgres: PostgresClient): Promise<number> {
  const { rows } = await postgres.query<{ id: string }>('SELECT id FROM wallets WHERE frozen AND leased > 0');
  await revokeLeases(
    postgres,
    rows.map(({ id }) => id),
  );
  return rows.length;
}

function toWallet(row: WalletRow): PayerWallet {
  return {
    id: row.id,
    organizationId: row.organization_id,
    userId: row.user_id,
    balance: BigInt(row.balance),
    held: BigInt(row.held),
    lent: BigInt(row.leased) - BigInt(row.held),
    frozen: row.frozen,
    createdAtMs: createdAtMs(row),
  };
}
