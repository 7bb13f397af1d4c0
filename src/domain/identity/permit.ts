// Whether a principal may do what a route requires; the refusals are the gateway envelope's (spec 7.6).

import type { Refusal } from '../refusals/refusal.ts';
import { isScoped, type Principal, type ScopedPrincipal } from './principal.ts';
import type { Permission } from './roles.ts';

/** Permissions that exist only within an organization. */
export type OrganizationPermission = Exclude<Permission, 'platform.admin'>;

/** The principal with its organization resolved, or the refusal. */
export function permitInOrganization(
  principal: Principal,
  permission: OrganizationPermission,
): ScopedPrincipal | Refusal {
  if (!isScoped(principal)) return { kind: 'scope_required' };
  return principal.permissions.includes(permission) ? principal : { kind: 'permission_denied' };
}

/**
 * Only inference keys may generate: they alone have limits, model lists and a payer. An access token reads and
 * administers; its holder makes a key to generate with. A token is denied before its organization is looked at.
 */
export function permitInference(principal: Principal): ScopedPrincipal | Refusal {
  return principal.credential === 'key' ? permitInOrganization(principal, 'inference') : { kind: 'permission_denied' };
}

/** null: the principal is a platform administrator. */
export function refusePlatform(principal: Principal): Refusal | null {
  return principal.platformAdmin ? null : { kind: 'permission_denied' };
}
