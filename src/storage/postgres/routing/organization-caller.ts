// Reads an organization as a caller: its wallet and the models that it may use, without the narrower settings of its
// teams and keys.

import type { ScopedPrincipal } from '../../../domain/identity/principal.ts';
import type { PostgresClient } from '../pool.ts';

export type OrganizationCaller = Pick<ScopedPrincipal, 'organizationId' | 'walletId' | 'billed' | 'allowedModels'>;

/** `organizationId` must be a UUID. null: there is no such organization. */
export async function findOrganizationCaller(
  postgres: PostgresClient,
  organizationId: string,
): Promise<OrganizationCaller | null> {
  const { rows } = await postgres.query<{ billing: string; wallet_id: string | null; allowed_models: string[] | null }>(
    `SELECT o.billing, w.id AS wallet_id, o.allowed_models
       FROM organizations o LEFT JOIN wallets w ON w.organization_id = o.id AND w.user_id IS NULL WHERE o.id = $1`,
    [organizationId],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const billed = row.billing === 'prepaid';
  return {
    organizationId,
    billed,
    walletId: billed ? row.wallet_id : null,
    allowedModels: row.allowed_models === null ? null : new Set(row.allowed_models),
  };
}

/** The allowed models by organization. Organizations that may use every model are left out. */
export async function listAllowedModels(postgres: PostgresClient): Promise<Map<string, ReadonlySet<string>>> {
  const { rows } = await postgres.query<{ id: string; allowed_models: string[] }>(
    'SELECT id, allowed_models FROM organizations WHERE allowed_models IS NOT NULL',
  );
  return new Map(rows.map((row) => [row.id, new Set(row.allowed_models)]));
}
