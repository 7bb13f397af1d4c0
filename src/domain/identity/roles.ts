// What a role permits, in an organization and in a team.

/** Permissions by name; roles grant them, routes require them. */
export type Permission =
  | 'inference'
  | 'usage.read'
  | 'team.usage.read'
  | 'org.usage.read'
  | 'org.admin'
  | 'platform.admin';

export const ROLES = ['owner', 'admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  admin: ['inference', 'usage.read', 'team.usage.read', 'org.usage.read', 'org.admin'],
  // The member view of the organization's usage (spec 4.10).
  member: ['inference', 'usage.read', 'org.usage.read'],
};

/** An inference key never administers and sees only its own use, whoever owns it. */
export const KEY_PERMISSIONS: readonly Permission[] = ['inference', 'usage.read'];

/** What a platform administrator may do in the active organization, member or not. */
export const PLATFORM_PERMISSIONS: readonly Permission[] = [...ROLE_PERMISSIONS.owner, 'platform.admin'];
