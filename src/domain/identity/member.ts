// What is shown of a member, and of what somebody is a member.

import type { Role } from './roles.ts';

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
