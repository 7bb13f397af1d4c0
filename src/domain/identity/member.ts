// A member of an organization or a team, as it is shown, and the scope of a membership.

import type { Role } from './roles.ts';

export interface Member {
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAtMs: number;
}

/** An organization (`teamId` null), or one of its teams. */
export interface MemberScope {
  readonly organizationId: string;
  readonly teamId: string | null;
}
