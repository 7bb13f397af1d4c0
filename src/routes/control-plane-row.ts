// One control-plane row of the route table, and the paths and kinds of access that several rows share.

import type { DescribedRoute, RouteAccess } from '../control-plane/openapi/described-route.ts';
import type { Operation } from '../control-plane/operation.ts';

export interface ControlPlaneRow extends Pick<DescribedRoute, 'method' | 'path' | 'takesRest'>, RouteAccess {
  readonly operation: Operation;
  /** Absent: the platform's. */
  readonly envelope?: DescribedRoute['envelope'];
}

export function row(
  method: ControlPlaneRow['method'],
  path: string,
  access: RouteAccess,
  operation: Operation,
): ControlPlaneRow {
  return { method, path, ...access, operation };
}

/** An organization that a platform administrator names. */
export const ORGANIZATION_PATH = '/v1/admin/organizations/:organizationId';
/** The organization in which the caller's access token works. */
export const ACTIVE_ORGANIZATION_PATH = '/v1/admin/active-org';

export const PLATFORM_ADMIN: RouteAccess = { permission: 'platform.admin', scope: 'platform' };
export const ORGANIZATION_ADMIN: RouteAccess = { permission: 'org.admin', scope: 'organization' };
/** Administrators of the organization, and those of the team itself. */
export const TEAM_ADMIN: RouteAccess = { permission: 'org.admin', scope: 'team' };
