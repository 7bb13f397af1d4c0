// What a role in an organization permits (DESIGN 5).

import type { Permission } from './principal.ts';

export type Role = 'owner' | 'admin' | 'member';

export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  admin: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  member: ['inference', 'usage.read', 'org.usage.read'],
};
