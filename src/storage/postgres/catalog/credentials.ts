// Finds the principal of a credential: an inference key (also by a secret that a rotation replaced), an access token or
// a session of the console.

import type { Principal, PrincipalLimit } from '../../../domain/identity/principal.ts';
import { KEY_PERMISSIONS, PLATFORM_PERMISSIONS, ROLE_PERMISSIONS, type Role } from '../../../domain/identity/roles.ts';
import type { PostgresClient } from '../pool.ts';

interface CredentialRow {
  readonly id: string;
  readonly organization_id: string | null;
  readonly user_id: string | null;
  readonly billing: 'prepaid' | 'none' | null;
  readonly wallet_id: string | null;
  readonly expires_at_ms: number | null;
  readonly organization_models: readonly string[] | null;
  readonly has_own_keys: boolean;
}

interface KeyRow extends CredentialRow {
  readonly team_id: string | null;
  readonly team_models: readonly string[] | null;
  readonly key_models: readonly string[] | null;
  readonly limits: readonly (Omit<PrincipalLimit, 'amount'> & { readonly amount: string })[] | null;
}

interface TokenRow extends CredentialRow {
  readonly organization_role: Role | null;
  readonly platform_admin: boolean;
  readonly team_roles: Readonly<Record<string, Role>> | null;
}

const FIND_KEY = {
  name: 'find_principal_by_key_hash',
  text: `
    SELECT k.id, k.organization_id, k.team_id, k.user_id, o.billing, coalesce(k.wallet_id, w.id) AS wallet_id,
           (extract(epoch FROM least(k.expires_at, found.valid_until)) * 1000)::double precision AS expires_at_ms,
           o.allowed_models AS organization_models, t.allowed_models AS team_models, k.allowed_models AS key_models,
           EXISTS (SELECT FROM own_keys WHERE own_keys.organization_id = o.id) AS has_own_keys,
           (SELECT jsonb_agg(jsonb_build_object('id', l.id, 'scope', l.scope, 'setBy', l.set_by, 'kind', l.kind,
             'window', l.time_window,
                                                'amount', l.amount::text, 'model', l.model) ORDER BY l.id)
              FROM (SELECT *, 'organization' AS scope FROM usage_limits
                     WHERE organization_id = o.id AND team_id IS NULL AND user_id IS NULL AND api_key_id IS NULL
                    UNION ALL SELECT *, 'team' FROM usage_limits
                     WHERE organization_id = o.id AND team_id = k.team_id AND user_id IS NULL AND api_key_id IS NULL
                    UNION ALL SELECT *, 'user' FROM usage_limits
                     WHERE organization_id = o.id AND team_id IS NULL AND user_id = k.user_id AND api_key_id IS NULL
                    UNION ALL SELECT *, 'key' FROM usage_limits
                     WHERE organization_id = o.id AND team_id IS NULL AND user_id IS NULL AND api_key_id = k.id) l
           ) AS limits
      FROM (SELECT id, NULL::timestamptz AS valid_until FROM api_keys WHERE key_hash = $1
            UNION ALL SELECT api_key_id, valid_until FROM api_key_previous_secrets WHERE key_hash = $1) found
      JOIN api_keys k ON k.id = found.id
      JOIN organizations o ON o.id = k.organization_id
      LEFT JOIN teams t ON t.id = k.team_id
      LEFT JOIN wallets w ON w.organization_id = o.id AND w.user_id IS NULL
     WHERE k.revoked_at IS NULL`,
};

/**
 * The active organization counts only while the token's user is a member of it or a platform administrator. A session
 * without a user has the rights of a platform administrator.
 */
const SELECT_TOKEN = `
    SELECT a.id, o.id AS organization_id, a.user_id, o.billing, w.id AS wallet_id,
      o.allowed_models AS organization_models, false AS has_own_keys,
           (extract(epoch FROM a.expires_at) * 1000)::double precision AS expires_at_ms,
           m.role AS organization_role, p.user_id IS NOT NULL OR a.user_id IS NULL AS platform_admin,
           (SELECT jsonb_object_agg(tm.team_id, tm.role) FROM memberships tm
             WHERE tm.organization_id = o.id AND tm.user_id = a.user_id AND tm.team_id IS NOT NULL) AS team_roles
      FROM access_tokens a
      LEFT JOIN platform_administrators p ON p.user_id = a.user_id
      LEFT JOIN memberships m ON m.organization_id = a.active_organization_id AND m.user_id = a.user_id
        AND m.team_id IS NULL
      LEFT JOIN organizations o ON o.id = a.active_organization_id
        AND (m.role IS NOT NULL OR p.user_id IS NOT NULL OR a.user_id IS NULL)
      LEFT JOIN wallets w ON w.organization_id = o.id AND w.user_id IS NULL
     WHERE a.token_hash = $1 AND a.revoked_at IS NULL`;

const FIND_TOKEN = { name: 'find_principal_by_token_hash', text: `${SELECT_TOKEN} AND a.kind = 'token'` };
const FIND_SESSION = {
  name: 'find_principal_by_session_hash',
  text: `${SELECT_TOKEN} AND a.kind = 'session' AND (a.bootstrap_hash IS NULL OR a.bootstrap_hash = $2)`,
};

/**
 * The principal of a live credential, found by the HMAC of the whole credential; null when it is unknown or revoked.
 * The caller checks expiry.
 */
export async function findPrincipalByCredentialHash(postgres: PostgresClient, hash: Buffer): Promise<Principal | null> {
  const keys = await postgres.query<KeyRow>(FIND_KEY, [hash]);
  if (keys.rows[0] !== undefined) return keyPrincipal(keys.rows[0]);
  const tokens = await postgres.query<TokenRow>(FIND_TOKEN, [hash]);
  return tokens.rows[0] === undefined ? null : tokenPrincipal(tokens.rows[0], 'token');
}

/** `bootstrapHash`: the hash of ADMIN_TOKEN; null: the setting is absent. */
export async function findPrincipalBySessionHash(
  postgres: PostgresClient,
  hash: Buffer,
  bootstrapHash: Buffer | null,
): Promise<Principal | null> {
  const sessions = await postgres.query<TokenRow>(FIND_SESSION, [hash, bootstrapHash]);
  return sessions.rows[0] === undefined ? null : tokenPrincipal(sessions.rows[0], 'session');
}

/** The hash of any inference key that is not revoked; null: there is none. */
export async function findAnyKeyHash(postgres: PostgresClient): Promise<Buffer | null> {
  const { rows } = await postgres.query<{ key_hash: Buffer }>(
    'SELECT key_hash FROM api_keys WHERE revoked_at IS NULL LIMIT 1',
  );
  return rows[0]?.key_hash ?? null;
}

function keyPrincipal(row: KeyRow): Principal {
  return {
    ...commonOf(row),
    credential: 'key',
    teamId: row.team_id,
    permissions: KEY_PERMISSIONS,
    teamPermissions: new Map(),
    platformAdmin: false,
    allowedModels: intersect([row.organization_models, row.team_models, row.key_models]),
    limits: (row.limits ?? []).map((limit) => ({ ...limit, amount: BigInt(limit.amount) })),
  };
}

function tokenPrincipal(row: TokenRow, credential: 'token' | 'session'): Principal {
  return {
    ...commonOf(row),
    credential,
    teamId: null,
    permissions: tokenPermissions(row),
    teamPermissions: new Map(Object.entries(row.team_roles ?? {})),
    platformAdmin: row.platform_admin,
    allowedModels: intersect([row.organization_models]),
    limits: [],
  };
}

function commonOf(row: CredentialRow) {
  const billed = row.billing === 'prepaid';
  return {
    apiKeyId: row.id,
    organizationId: row.organization_id,
    userId: row.user_id,
    walletId: billed ? row.wallet_id : null,
    billed,
    hasOwnKeys: row.has_own_keys,
    expiresAtMs: row.expires_at_ms,
  };
}

function tokenPermissions({ organization_id, organization_role, platform_admin }: TokenRow): Principal['permissions'] {
  if (platform_admin) return organization_id === null ? ['platform.admin'] : PLATFORM_PERMISSIONS;
  return organization_role === null ? [] : ROLE_PERMISSIONS[organization_role];
}

function intersect(lists: readonly (readonly string[] | null)[]): ReadonlySet<string> | null {
  const given = lists.filter((list) => list !== null);
  const [first, ...others] = given;
  return first === undefined ? null : new Set(first.filter((id) => others.every((list) => list.includes(id))));
}
