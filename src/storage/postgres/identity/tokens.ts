// Creates, lists and revokes people's access tokens, and sets the organization that a token works in. A token is shown
// once.

import type {
  CreateTokenParams,
  Token,
  TokenReference,
  TokenWithSecret,
} from '../../../domain/identity/access-token.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import type { AuditAction } from '../../../domain/identity/audit-entry.ts';
import { generateToken } from '../../../domain/identity/generate-credential.ts';
import { hashCredential, keyPrefix } from '../../../domain/identity/key-hash.ts';
import { areUuids, emailProblem, labelProblem } from '../../../domain/identity/names.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { InstallationSecrets } from '../installation-secrets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, invalid, NOT_FOUND, refuseProblems } from './change.ts';
import { createdAtMs, PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from './page.ts';
import { refuseCount } from './refuse-count.ts';

interface TokenRow {
  readonly id: string;
  readonly created_us: string;
  /** null: a session without a person, of a platform administrator. */
  readonly user_id: string | null;
  readonly name: string;
  readonly token_prefix: string;
  readonly active_organization_id: string | null;
  readonly expires_at_ms: number;
  readonly revoked_at_ms: number | null;
}

const LIFETIME_SECONDS_MIN = 60;
const LIFETIME_SECONDS_MAX = 365 * 24 * 3600;
const COLUMNS = `${PAGE_COLUMNS}, t.user_id, t.name, t.token_prefix, t.active_organization_id,
  floor(extract(epoch FROM t.expires_at) * 1000)::double precision AS expires_at_ms,
  floor(extract(epoch FROM t.revoked_at) * 1000)::double precision AS revoked_at_ms`;

/** `not_found`: there is no such user, or the user may not work in the organization. */
export async function createToken(
  postgres: Postgres,
  { pepper }: Pick<InstallationSecrets, 'pepper'>,
  actor: Actor,
  { userId, name, lifetimeSeconds, organizationId = null }: CreateTokenParams,
): Promise<TokenWithSecret | Refused> {
  const problem = refuseProblems({ name: labelProblem(name) });
  if (problem !== null) return problem;
  if (
    !Number.isInteger(lifetimeSeconds) ||
    lifetimeSeconds < LIFETIME_SECONDS_MIN ||
    lifetimeSeconds > LIFETIME_SECONDS_MAX
  ) {
    return invalid('lifetimeSeconds', `must be a whole number from ${LIFETIME_SECONDS_MIN} to ${LIFETIME_SECONDS_MAX}`);
  }
  if (!areUuids(userId, ...(organizationId === null ? [] : [organizationId]))) return NOT_FOUND;
  const secret = generateToken();
  const hash = hashCredential(pepper, secret);
  return change(postgres, 'name', async (client) => {
    const user = await client.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [userId]);
    if (user.rowCount === 0) return { ...NOT_FOUND, field: 'userId' };
    if (organizationId !== null && !(await mayWorkIn(client, userId, organizationId)))
      return { ...NOT_FOUND, field: 'organizationId' };
    const full = await refuseCount(client, actor, 'tokensOfUser', userId);
    if (full !== null) return full;
    const { rows } = await client.query<TokenRow>(
      `INSERT INTO access_tokens AS t (user_id, active_organization_id, name, token_hash, token_prefix, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6)) RETURNING ${COLUMNS}`,
      [userId, organizationId, name, hash, keyPrefix(secret), lifetimeSeconds],
    );
    const made = toToken(rows[0] as TokenRow);
    await auditToken(client, actor, 'token.create', null, made);
    return { ...made, secret };
  });
}

/** A user's tokens, including revoked and expired ones, and their open sessions of the console. */
export async function listTokens(
  postgres: PostgresClient,
  params: PageParams & { userId: string },
): Promise<Page<Token> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS} FROM access_tokens t WHERE ${PAGE_CONDITION} AND t.user_id = $4
       AND (t.kind = 'token' OR (t.kind = 'session' AND t.revoked_at IS NULL AND t.expires_at > now())) ${PAGE_ORDER}`,
    [params.userId],
    toToken,
  );
}

/** Revokes a token and the sessions that it opened. Every gateway is notified at once. Idempotent. */
export async function revokeToken(
  postgres: Postgres,
  actor: Actor,
  reference: TokenReference,
): Promise<Token | Refused> {
  return change(postgres, 'name', async (client) => {
    const before = await lockToken(client, reference);
    if (before === null) return NOT_FOUND;
    if (before.revoked_at_ms !== null) return toToken(before);
    const { rows } = await client.query<{ id: string }>(
      `UPDATE access_tokens SET revoked_at = now() WHERE (id = $1 OR opened_by = $1) AND revoked_at IS NULL
       RETURNING id`,
      [reference.tokenId],
    );
    await notifyPrincipalsChanged(
      client,
      rows.map(({ id }) => id),
    );
    return recordTokenChange(client, actor, 'token.revoke', reference, before);
  });
}

/**
 * `not_found`: the user is not a member of the organization (platform administrators may work in any). null leaves the
 * active organization.
 */
export async function setActiveOrganization(
  postgres: Postgres,
  actor: Actor,
  reference: TokenReference,
  organizationId: string | null,
): Promise<Token | Refused> {
  if (organizationId !== null && !areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'name', async (client) => {
    const before = await lockToken(client, reference);
    if (before === null || before.revoked_at_ms !== null) return NOT_FOUND;
    if (before.active_organization_id === organizationId) return toToken(before);
    if (organizationId !== null && !(await mayWorkIn(client, before.user_id, organizationId)))
      return { ...NOT_FOUND, field: 'organizationId' };
    await client.query('UPDATE access_tokens SET active_organization_id = $2 WHERE id = $1', [
      reference.tokenId,
      organizationId,
    ]);
    return recordTokenChange(client, actor, 'token.active_organization', reference, before);
  });
}

/** For commands, which refer to people by email. */
export async function findUserByEmail(
  postgres: PostgresClient,
  email: string,
): Promise<{ readonly userId: string } | Refused> {
  if (emailProblem(email) !== null) return NOT_FOUND;
  const { rows } = await postgres.query<{ id: string }>('SELECT id FROM users WHERE lower(email) = lower($1)', [email]);
  return rows[0] === undefined ? NOT_FOUND : { userId: rows[0].id };
}

async function mayWorkIn(client: PostgresClient, userId: string | null, organizationId: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT FROM organizations o WHERE o.id = $2
        AND ($1::uuid IS NULL
             OR EXISTS (SELECT FROM memberships m
                         WHERE m.organization_id = o.id AND m.user_id = $1 AND m.team_id IS NULL)
             OR EXISTS (SELECT FROM platform_administrators p WHERE p.user_id = $1))`,
    [userId, organizationId],
  );
  return rowCount > 0;
}

async function lockToken(client: PostgresClient, { tokenId, userId }: TokenReference): Promise<TokenRow | null> {
  if (!areUuids(tokenId, ...(userId === null ? [] : [userId]))) return null;
  const { rows } = await client.query<TokenRow>(
    `SELECT ${COLUMNS} FROM access_tokens t WHERE t.id = $1 AND ($2::uuid IS NULL OR t.user_id = $2) FOR UPDATE`,
    [tokenId, userId],
  );
  return rows[0] ?? null;
}

async function recordTokenChange(
  client: PostgresClient,
  actor: Actor,
  action: AuditAction,
  reference: TokenReference,
  before: TokenRow,
): Promise<Token | Refused> {
  const after = await lockToken(client, reference);
  if (after === null) return NOT_FOUND;
  await auditToken(client, actor, action, toToken(before), toToken(after));
  await notifyPrincipalsChanged(client, [reference.tokenId]);
  return toToken(after);
}

/** Written without an organization: a token belongs to a person, and works in one organization after another. */
async function auditToken(
  client: PostgresClient,
  actor: Actor,
  action: AuditAction,
  before: Token | null,
  after: Token,
): Promise<void> {
  await recordAudit(client, actor, {
    organizationId: null,
    action,
    target: { kind: 'token', id: after.id },
    before,
    after,
  });
}

function toToken(row: TokenRow): Token {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    prefix: row.token_prefix,
    activeOrganizationId: row.active_organization_id,
    createdAtMs: createdAtMs(row),
    expiresAtMs: row.expires_at_ms,
    revokedAtMs: row.revoked_at_ms,
  };
}
