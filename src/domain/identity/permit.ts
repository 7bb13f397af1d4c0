// Whether a principal may do what a route requires; the refusals are the gateway envelope's (spec 7.6).

import type { Refusal } from '../refusals/refusal.ts';
import { isScoped, type Principal, type ScopedPrincipal } from './principal.ts';
import type { Permission } from './roles.ts';

/** Permissions that exist only within an organization. */
export type OrganizationPermission = Exclude<Permission, 'platform.admin'>;

/**
 * Only inference keys may generate: they alone have limits, model lists and a payer. An access token reads and
 * administers; its holder makes a key to generate with.
 */
export function permitInference(principal: Principal): ScopedPrincipal | Refusal {
  const mayGenerate = principal.credential === 'key' && principal.permissions.includes('inference');
  return mayGenerate && isScoped(principal) ? principal : { kind: 'permission_denied' };
}

/** null: the principal is a platform administrator. */
export function refusePlatform(principal: Principal): Refusal | null {
  return principal.platformAdmin ? null : { kind: 'permission_denied' };
}
