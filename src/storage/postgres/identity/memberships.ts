// Reads and adds rows of memberships for all operations on members: who is in a scope, who may make owners, and adding
// a person by email.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Member, MemberScope } from '../../../domain/identity/member.ts';
import type { Role } from '../../../domain/identity/roles.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import type { PostgresClient } from '../pool.ts';
import { addAccount } from './accounts.ts';
import { recordAudit } from './audit.ts';
import { conflict, NOT_FOUND } from './change.ts';
import { createdAtMs, PAGE_COLUMNS } from './page.ts';

export interface MembershipRow {
  readonly id: string;
  readonly created_us: string;
  readonly user_id: string;
  readonly email: string;
  readonly role: Role;
}

export const MEMBER_COLUMNS = `${PAGE_COLUMNS}, t.user_id, u.email, t.role`;
export const MEMBER_SOURCE = 'memberships t JOIN users u ON u.id = t.user_id';

/**
 * False when the scope does not exist or belongs to another organization. In a transaction it locks the scope, so that
 * a team cannot be deleted meanwhile.
 */
export async function scopeExists(client: PostgresClient, { organizationId, teamId }: MemberScope): Promise<boolean> {
  const { rowCount } =
    teamId === null
      ? await client.query('SELECT FROM organizations WHERE id = $1 FOR KEY SHARE', [organizationId])
      : await client.query('SELECT FROM teams WHERE organization_id = $1 AND id = $2 FOR KEY SHARE', [
          organizationId,
          teamId,
        ]);
  return rowCount > 0;
}

export async function findMember(
  client: PostgresClient,
  { organizationId, teamId }: MemberScope,
  userId: string,
): Promise<Member | null> {
  const { rows } = await client.query<MembershipRow>(
    `SELECT ${MEMBER_COLUMNS} FROM ${MEMBER_SOURCE}
      WHERE t.organization_id = $1 AND t.team_id IS NOT DISTINCT FROM $2::uuid AND t.user_id = $3 FOR UPDATE OF t`,
    [organizationId, teamId, userId],
  );
  return rows[0] === undefined ? null : toMember(rows[0]);
}

export function toMember(row: MembershipRow): Member {
  return {
    userId: row.user_id,
    email: row.email,
    role: row.role,
    createdAtMs: createdAtMs(row),
  };
}

/**
 * Whether the actor may make and unmake owners of a scope. Its owners may, platform administrators may, and for a team
 * also the owners and admins of the organization.
 */
export async function mayChangeOwners(
  client: PostgresClient,
  actor: Actor,
  { organizationId, teamId }: MemberScope,
): Promise<boolean> {
  if (actor.kind !== 'token') return true;
  const { rowCount } = await client.query(
    `SELECT FROM platform_administrators WHERE user_id = $1
      UNION ALL SELECT FROM memberships WHERE organization_id = $2 AND user_id = $1
        AND (team_id IS NULL AND role = ANY ($4) OR team_id = $3::uuid AND role = 'owner')`,
    [actor.userId, organizationId, teamId, teamId === null ? ['owner'] : ['owner', 'admin']],
  );
  return rowCount > 0;
}

/** Runs in the caller's transaction; the scope must exist. */
export async function addMembership(
  client: PostgresClient,
  actor: Actor,
  scope: MemberScope,
  { email, role }: { email: string; role: Role },
): Promise<Member | Refused> {
  const userId = await findOrAddUser(client, scope, email);
  if (userId === null) return NOT_FOUND;
  const { rowCount } = await client.query(
    `INSERT INTO memberships (organization_id, team_id, user_id, role) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
      RETURNING id`,
    [scope.organizationId, scope.teamId, userId, role],
  );
  if (rowCount === 0) return conflict('email', 'is a member already');
  const added = await findMember(client, scope, userId);
  if (added === null) throw new Error('a member was added and is not there');
  await recordAudit(client, actor, {
    organizationId: scope.organizationId,
    action: 'member.add',
    target: { kind: 'user', id: userId },
    after: { ...added, teamId: scope.teamId },
  });
  return added;
}

/** A team takes only members of its organization, whose membership is locked meanwhile. */
async function findOrAddUser(
  client: PostgresClient,
  { organizationId, teamId }: MemberScope,
  email: string,
): Promise<string | null> {
  if (teamId === null) await addAccount(client, email);
  const { rows } =
    teamId === null
      ? await client.query<{ id: string }>('SELECT id FROM users WHERE lower(email) = lower($1)', [email])
      : await client.query<{ id: string }>(
          `SELECT u.id FROM users u JOIN memberships m ON m.user_id = u.id AND m.organization_id = $2
            AND m.team_id IS NULL
            WHERE lower(u.email) = lower($1) FOR SHARE OF m`,
          [email, organizationId],
        );
  return rows[0]?.id ?? null;
}
