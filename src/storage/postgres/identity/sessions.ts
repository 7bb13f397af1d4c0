// Opens, extends and ends sessions of the console, and makes the one-time links that open them. Sessions and links are
// rows of access_tokens with kinds of their own, so they are hashed, looked up and revoked like access tokens.

import type { Actor } from '../../../domain/identity/actor.ts';
import { generateLinkCode, generateSession } from '../../../domain/identity/generate-credential.ts';
import { hashCredential, keyPrefix } from '../../../domain/identity/key-hash.ts';
import type { Role } from '../../../domain/identity/roles.ts';
import {
  LINK_SECONDS,
  type OneTimeLink,
  type OpenedSession,
  type OpenSessionParams,
  SESSION_EXTENDED_EVERY_SECONDS,
  SESSION_IDLE_SECONDS,
  SESSION_SECONDS_MAX,
  type SessionNames,
} from '../../../domain/identity/session.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { InstallationSecrets } from '../installation-secrets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';

type Pepper = Pick<InstallationSecrets, 'pepper'>;

interface OpenedRow {
  readonly id: string;
  readonly expires_at_ms: number;
}

const EXPIRES_AT_MS = 'floor(extract(epoch FROM expires_at) * 1000)::double precision AS expires_at_ms';

/**
 * A session works in the given organization, or else in the first one that its user is a member of. It ends no later
 * than the access token that opened it. null: that token is revoked, and this process has not been notified yet.
 * `adminToken`: the setting ADMIN_TOKEN, if it opened the session.
 */
export async function openSession(
  postgres: Postgres,
  secrets: Pepper,
  params: OpenSessionParams,
  adminToken: string | null,
): Promise<OpenedSession | null> {
  return postgres.transaction((client) => insertSession(client, secrets, params, adminToken));
}

async function insertSession(
  client: PostgresClient,
  { pepper }: Pepper,
  { userId, organizationId, way, tokenId, isBootstrap }: OpenSessionParams,
  adminToken: string | null,
): Promise<OpenedSession | null> {
  const secret = generateSession();
  const { rows } = await client.query<OpenedRow & { readonly active_organization_id: string | null }>(
    `WITH opener AS MATERIALIZED (
       SELECT expires_at FROM access_tokens WHERE id = $6 AND revoked_at IS NULL FOR SHARE
     )
     INSERT INTO access_tokens AS t (kind, user_id, active_organization_id, name, token_hash, token_prefix, opened_by,
       bootstrap_hash, expires_latest, expires_at)
     SELECT 'session', $1, coalesce($2, (SELECT organization_id FROM memberships
              WHERE user_id = $1 AND team_id IS NULL ORDER BY created_at, id LIMIT 1)),
            $3, $4, $5, $6, $7, latest, least(now() + make_interval(secs => $8), latest)
       FROM (SELECT least(now() + make_interval(secs => $9), (SELECT expires_at FROM opener)) AS latest
              WHERE $6::uuid IS NULL OR EXISTS (SELECT FROM opener)) life
     RETURNING t.id, t.active_organization_id, ${EXPIRES_AT_MS}`,
    [
      userId,
      organizationId,
      `console (${way})`,
      hashCredential(pepper, secret),
      keyPrefix(secret),
      tokenId,
      isBootstrap && adminToken !== null ? hashCredential(pepper, adminToken) : null,
      SESSION_IDLE_SECONDS,
      SESSION_SECONDS_MAX,
    ],
  );
  if (rows[0] === undefined) return null;
  const { id, expires_at_ms, active_organization_id } = rows[0];
  await recordAudit(client, sessionActor(id, userId), {
    organizationId: null,
    action: 'session.open',
    target: { kind: 'token', id },
    after: { userId, activeOrganizationId: active_organization_id, way, openedBy: tokenId },
  });
  return { id, secret, expiresAtMs: expires_at_ms };
}

function sessionActor(sessionId: string, userId: string | null): Actor {
  return { kind: userId === null ? 'bootstrap' : 'token', userId, label: `console session ${sessionId}` };
}

/** Makes a link that opens one session within ten minutes. */
export async function createLink(
  postgres: Postgres,
  { pepper }: Pepper,
  actor: Actor,
  { userId, organizationId }: Pick<OpenSessionParams, 'userId' | 'organizationId'>,
): Promise<OneTimeLink> {
  const code = generateLinkCode();
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<OpenedRow>(
      `INSERT INTO access_tokens (kind, user_id, active_organization_id, name, token_hash, token_prefix, expires_at)
       VALUES ('link', $1, $2, 'one-time link', $3, $4, now() + make_interval(secs => $5))
       RETURNING id, ${EXPIRES_AT_MS}`,
      [userId, organizationId, hashCredential(pepper, code), keyPrefix(code), LINK_SECONDS],
    );
    const { id, expires_at_ms } = rows[0] as OpenedRow;
    await recordAudit(client, actor, {
      organizationId: null,
      action: 'sign_in_link.create',
      target: { kind: 'token', id },
      after: { userId, activeOrganizationId: organizationId },
    });
    return { code, expiresAtMs: expires_at_ms };
  });
}

/** Opens a session only once for a code, also for concurrent calls. null: the code is unknown, used or too old. */
export async function openSessionByLink(
  postgres: Postgres,
  secrets: Pepper,
  code: string,
): Promise<OpenedSession | null> {
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<{ user_id: string | null; active_organization_id: string | null }>(
      `UPDATE access_tokens SET revoked_at = now()
        WHERE token_hash = $1 AND kind = 'link' AND revoked_at IS NULL AND expires_at > now()
        RETURNING user_id, active_organization_id`,
      [hashCredential(secrets.pepper, code)],
    );
    const link = rows[0];
    if (link === undefined) return null;
    const of = { userId: link.user_id, organizationId: link.active_organization_id };
    return insertSession(client, secrets, { ...of, way: 'one-time link', tokenId: null, isBootstrap: false }, null);
  });
}

/** Moves the end of a session that is still used. The next look-up finds the new end, so nobody is notified. */
export async function extendSession(postgres: PostgresClient, sessionId: string): Promise<void> {
  await postgres.query(
    `UPDATE access_tokens SET expires_at = least(now() + make_interval(secs => $2), expires_latest)
      WHERE id = $1 AND kind = 'session' AND revoked_at IS NULL AND expires_at > now()
        AND expires_at < now() + make_interval(secs => $3) AND expires_at < expires_latest`,
    [sessionId, SESSION_IDLE_SECONDS, SESSION_IDLE_SECONDS - SESSION_EXTENDED_EVERY_SECONDS],
  );
}

/** Ends a session on every gateway. Idempotent. */
export async function endSession(postgres: Postgres, sessionId: string): Promise<void> {
  await postgres.transaction(async (client) => {
    const { rows } = await client.query<{ user_id: string | null }>(
      `UPDATE access_tokens SET revoked_at = now() WHERE id = $1 AND kind = 'session' AND revoked_at IS NULL
       RETURNING user_id`,
      [sessionId],
    );
    if (rows[0] === undefined) return;
    await recordAudit(client, sessionActor(sessionId, rows[0].user_id), {
      organizationId: null,
      action: 'session.end',
      target: { kind: 'token', id: sessionId },
    });
    await notifyPrincipalsChanged(client, [sessionId]);
  });
}

/** The names that the console shows in its header. */
export async function nameSession(
  postgres: PostgresClient,
  { userId, organizationId }: { readonly userId: string | null; readonly organizationId: string | null },
): Promise<SessionNames> {
  const { rows } = await postgres.query<{
    readonly email: string | null;
    readonly id: string | null;
    readonly slug: string;
    readonly display_name: string;
    readonly role: Role | null;
  }>(
    `SELECT u.email, o.id, o.slug, o.display_name, m.role
       FROM (SELECT $1::uuid AS user_id, $2::uuid AS organization_id) who
       LEFT JOIN users u ON u.id = who.user_id
       LEFT JOIN organizations o ON o.id = who.organization_id
       LEFT JOIN memberships m ON m.organization_id = o.id AND m.user_id = u.id AND m.team_id IS NULL`,
    [userId, organizationId],
  );
  const row = rows[0];
  if (row === undefined) return { email: null, organization: null };
  const { email, id, slug, display_name: displayName, role } = row;
  return { email, organization: id === null ? null : { id, slug, displayName, role } };
}

/** Deletes ended sessions and links. Access tokens are kept, because people see theirs for ever. */
export async function forgetEndedSessions(postgres: PostgresClient, olderThanDays: number): Promise<number> {
  const { rowCount } = await postgres.query(
    `DELETE FROM access_tokens WHERE kind <> 'token' AND expires_at < now() - make_interval(days => $1)`,
    [olderThanDays],
  );
  return rowCount;
}
