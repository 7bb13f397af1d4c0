// Finds who a credential stands for.

import type { Permission, Principal } from '../../domain/identity/principal.ts';
import { ROLE_PERMISSIONS, type Role } from '../../domain/identity/roles.ts';
import type { PostgresClient } from './pool.ts';

interface CredentialRow {
  readonly api_key_id: string;
  readonly organization_id: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly billing: 'prepaid' | 'none';
  readonly wallet_id: string | null;
  readonly expires_at_ms: number | null;
  readonly organization_role: Role | null;
}

const FIND_PRINCIPAL = {
  name: 'find_principal_by_key_hash',
  text: `
    SELECT k.id AS api_key_id, k.organization_id, k.team_id, k.user_id, o.billing,
           coalesce(k.wallet_id, w.id) AS wallet_id,
           (extract(epoch FROM k.expires_at) * 1000)::double precision AS expires_at_ms,
           m.role AS organization_role
      FROM api_keys k
      JOIN organizations o ON o.id = k.organization_id
      LEFT JOIN wallets w ON w.organization_id = o.id AND w.user_id IS NULL
      LEFT JOIN memberships m ON m.organization_id = o.id AND m.user_id = k.user_id AND m.team_id IS NULL
     WHERE k.key_hash = $1 AND k.revoked_at IS NULL`,
};

/** The principal of a live key, by the HMAC of the whole credential; null when it is unknown or revoked. Expiry is the caller's to check. */
export async function findPrincipalByKeyHash(postgres: PostgresClient, hash: Buffer): Promise<Principal | null> {
  const { rows } = await postgres.query<CredentialRow>(FIND_PRINCIPAL, [hash]);
  const row = rows[0];
  if (row === undefined) return null;
  const billed = row.billing === 'prepaid';
  return {
    apiKeyId: row.api_key_id,
    organizationId: row.organization_id,
    teamId: row.team_id,
    userId: row.user_id,
    walletId: billed ? row.wallet_id : null,
    billed,
    permissions: keyPermissions(row.organization_role),
    expiresAtMs: row.expires_at_ms,
  };
}

/** An inference key may always infer and read its own usage; what else its user's role grants, it may too, except to administer. */
function keyPermissions(role: Role | null): readonly Permission[] {
  const granted = role === null ? [] : ROLE_PERMISSIONS[role];
  const readable = granted.filter((permission) => permission !== 'org.admin');
  return [...new Set<Permission>(['inference', 'usage.read', ...readable])];
}
