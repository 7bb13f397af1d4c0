// Whether a principal may do what a route requires; the refusals are the gateway envelope's (spec 7.6).

import type { Refusal } from '../refusals/refusal.ts';
import type { Permission, Principal, ScopedPrincipal } from './principal.ts';

/** Permissions that mean something only in an organization. */
export type OrganizationPermission = Exclude<Permission, 'platform.admin'>;

/** The principal, its organization resolved; else why not. */
export function permitInOrganization(
  principal: Principal,
  permission: OrganizationPermission,
): ScopedPrincipal | Refusal {
  if (!isScoped(principal)) return { kind: 'scope_required' };
  return principal.permissions.includes(permission) ? principal : { kind: 'permission_denied' };
}

/**
 * Inference takes inference keys: they alone have limits, model lists and a payer. An access token reads and
 * administers, and its holder makes a key to generate with; it is denied before its organization is asked about.
 */
export function permitInference(principal: Principal): ScopedPrincipal | Refusal {
  return principal.credential === 'key' ? permitInOrganization(principal, 'inference') : { kind: 'permission_denied' };
}

/** null: it may. */
export function refusePlatform(principal: Principal): Refusal | null {
  return principal.platformAdmin ? null : { kind: 'permission_denied' };
}

function isScoped(principal: Principal): principal is ScopedPrincipal {
  return principal.organizationId !== null;
}
