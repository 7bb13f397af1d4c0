// What a role permits, in an organization and in a team (DESIGN 5).

import type { Permission } from './principal.ts';

export const ROLES = ['owner', 'admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  admin: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  member: ['inference', 'usage.read'],
};

/** An inference key never administers and sees no more than its own use, whoever it belongs to. */
export const KEY_PERMISSIONS: readonly Permission[] = ['inference', 'usage.read'];

/** A platform administrator in an organization that is active, member or not. */
export const PLATFORM_PERMISSIONS: readonly Permission[] = [...ROLE_PERMISSIONS.owner, 'platform.admin'];
