// The members of an organization or of one of its teams, and their roles. `teamId` null means the organization itself.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Member, MemberScope } from '../../../domain/identity/member.ts';
import { areUuids, emailProblem } from '../../../domain/identity/names.ts';
import type { Role } from '../../../domain/identity/roles.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, NOT_FOUND, refuseProblems } from './change.ts';
import { revokeKeysOfUser } from './keys/keys.ts';
import {
  addMembership,
  findMember,
  MEMBER_COLUMNS,
  MEMBER_SOURCE,
  type MembershipRow,
  mayChangeOwners,
  scopeExists,
  toMember,
} from './memberships.ts';
import { PAGE_CONDITION, PAGE_ORDER, readPage } from './page.ts';
import { refuseCount } from './refuse-count.ts';
import { forgetGrants } from './sign-in-grants.ts';

const PERMISSION_DENIED: Refused = { refused: 'permission_denied', reason: 'only an owner makes or unmakes an owner' };

export async function listMembers(
  postgres: PostgresClient,
  params: PageParams & MemberScope,
): Promise<Page<Member> | Refused> {
  const page = await readPage(
    postgres,
    params,
    `SELECT ${MEMBER_COLUMNS} FROM ${MEMBER_SOURCE}
      WHERE ${PAGE_CONDITION} AND t.organization_id = $4 AND t.team_id IS NOT DISTINCT FROM $5::uuid ${PAGE_ORDER}`,
    [params.organizationId, params.teamId],
    toMember,
  );
  const isEmpty = !isRefused(page) && page.items.length === 0;
  return isEmpty && !(await scopeExists(postgres, params)) ? NOT_FOUND : page;
}

/** For commands, which refer to people by email. */
export async function findMemberByEmail(
  postgres: PostgresClient,
  { organizationId, teamId }: MemberScope,
  email: string,
): Promise<Member | Refused> {
  if (emailProblem(email) !== null) return NOT_FOUND;
  const { rows } = await postgres.query<MembershipRow>(
    `SELECT ${MEMBER_COLUMNS} FROM ${MEMBER_SOURCE}
      WHERE t.organization_id = $1 AND t.team_id IS NOT DISTINCT FROM $2::uuid AND lower(u.email) = lower($3)`,
    [organizationId, teamId, email],
  );
  return rows[0] === undefined ? NOT_FOUND : toMember(rows[0]);
}

/**
 * Adds a member by email. An organization can add anybody, who becomes a user if new; a team only members of its
 * organization. `conflict`: the person is a member already.
 */
export async function addMember(
  postgres: Postgres,
  actor: Actor,
  scope: MemberScope,
  params: { email: string; role: Role },
): Promise<Member | Refused> {
  const problem = refuseProblems({ email: emailProblem(params.email) });
  if (problem !== null) return problem;
  if (!isNameable(scope)) return NOT_FOUND;
  return change(postgres, 'email', async (client) => {
    if (!(await scopeExists(client, scope))) return NOT_FOUND;
    if (params.role === 'owner' && !(await mayChangeOwners(client, actor, scope))) return PERMISSION_DENIED;
    const full =
      scope.teamId === null ? await refuseCount(client, actor, 'membersOfOrganization', scope.organizationId) : null;
    if (full !== null) return full;
    const added = await addMembership(client, actor, scope, params);
    if (!isRefused(added)) await notifyPrincipalsChanged(client, [added.userId]);
    return added;
  });
}

/** `permission_denied`: only an owner, or someone above the scope, makes or unmakes an owner. */
export async function setMemberRole(
  postgres: Postgres,
  actor: Actor,
  scope: MemberScope,
  { userId, role }: { userId: string; role: Role },
): Promise<Member | Refused> {
  if (!isNameable(scope) || !areUuids(userId)) return NOT_FOUND;
  return change(postgres, 'email', async (client) => {
    const before = await findMember(client, scope, userId);
    if (before === null) return NOT_FOUND;
    if (before.role === role) return before;
    if ((before.role === 'owner' || role === 'owner') && !(await mayChangeOwners(client, actor, scope)))
      return PERMISSION_DENIED;
    await client.query(
      `UPDATE memberships SET role = $4 WHERE organization_id = $1 AND team_id IS NOT DISTINCT
        FROM $2::uuid AND user_id = $3`,
      [scope.organizationId, scope.teamId, userId, role],
    );
    const after = { ...before, role };
    const { organizationId, teamId } = scope;
    const target = { kind: 'user', id: userId } as const;
    await recordAudit(client, actor, {
      organizationId,
      action: 'member.role',
      target,
      before: { ...before, teamId },
      after: { ...after, teamId },
    });
    await notifyPrincipalsChanged(client, [userId]);
    return after;
  });
}

/**
 * Removing a user from an organization also removes them from its teams and revokes their keys there. Removing a user
 * from a team revokes their keys of that team. Limits on the member stay, with their recorded use, and apply again when
 * the member returns: sign-in groups remove and add members, and nobody would set a budget anew each time.
 */
export async function removeMember(
  postgres: Postgres,
  actor: Actor,
  scope: MemberScope,
  userId: string,
): Promise<{ readonly removed: true; readonly revokedKeys: number } | Refused> {
  if (!isNameable(scope) || !areUuids(userId)) return NOT_FOUND;
  const { organizationId, teamId } = scope;
  return change(postgres, 'email', async (client) => {
    const before = await findMember(client, scope, userId);
    if (before === null) return NOT_FOUND;
    if (before.role === 'owner' && !(await mayChangeOwners(client, actor, scope))) return PERMISSION_DENIED;
    await client.query(
      'DELETE FROM memberships WHERE organization_id = $1 AND user_id = $3 AND ($2::uuid IS NULL OR team_id = $2)',
      [organizationId, teamId, userId],
    );
    await forgetGrants(client, userId, scope);
    await recordAudit(client, actor, {
      organizationId,
      action: 'member.remove',
      target: { kind: 'user', id: userId },
      before: { ...before, teamId },
    });
    const revokedKeys = await revokeKeysOfUser(client, actor, { organizationId, teamId, userId });
    await notifyPrincipalsChanged(client, [userId]);
    return { removed: true, revokedKeys };
  });
}

function isNameable({ organizationId, teamId }: MemberScope): boolean {
  return areUuids(organizationId) && (teamId === null || areUuids(teamId));
}
