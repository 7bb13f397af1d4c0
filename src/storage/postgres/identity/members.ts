// The people of an organization and of its teams, and their roles. `teamId` null: the organization itself.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Role } from '../../../domain/identity/roles.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface Member {
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAtMs: number;
}

/** An organization (`teamId` null) or one of its teams. */
export interface MemberScope {
  readonly organizationId: string;
  readonly teamId: string | null;
}

export async function listMembers(_postgres: PostgresClient, _question: PageQuestion & MemberScope): Promise<Page<Member> | Refused> {
  throw new Error('follows');
}
/** Adds by email: to an organization anybody, who becomes a user; to a team only members of its organization. `conflict`: is a member already. */
export async function addMember(_postgres: Postgres, _actor: Actor, _scope: MemberScope, _order: { email: string; role: Role }): Promise<Member | Refused> {
  throw new Error('follows');
}
/** `permission_denied`: only an owner, or who stands above the scope, makes or unmakes an owner. */
export async function setMemberRole(_postgres: Postgres, _actor: Actor, _scope: MemberScope, _order: { userId: string; role: Role }): Promise<Member | Refused> {
  throw new Error('follows');
}
/** Out of an organization: also out of its teams, and the keys that are the user's there are revoked. Out of a team: the user's keys of that team. */
export async function removeMember(_postgres: Postgres, _actor: Actor, _scope: MemberScope, _userId: string): Promise<{ readonly removed: true; readonly revokedKeys: number } | Refused> {
  throw new Error('follows');
}
