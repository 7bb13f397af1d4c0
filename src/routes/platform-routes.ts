// The rows of the route table for platform administrators: organizations, what the platform sets on them, auto routing.

import * as audit from '../control-plane/identity/audit.ts';
import * as organizations from '../control-plane/identity/organizations.ts';
import * as administrators from '../control-plane/identity/platform-administrators.ts';
import { KEY } from '../control-plane/identity/route-scopes.ts';
import { NAMED } from '../control-plane/identity/tenancy.ts';
import * as tokens from '../control-plane/identity/tokens.ts';
import * as policies from '../control-plane/routing/policies.ts';
import { previewRouting } from '../control-plane/routing/preview.ts';
import { replayRouting } from '../control-plane/routing/replay.ts';
import { modelAccessRows } from './ceiling-rows.ts';
import { type ControlPlaneRow, ORGANIZATION_PATH, PLATFORM_ADMIN, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';
import { tenantRows } from './tenant-rows.ts';

const ORGANIZATIONS_PATH = '/v1/admin/organizations';
const ADMINISTRATORS_PATH = '/v1/admin/platform-administrators';
const POLICIES_PATH = '/v1/admin/routing/policies';

export function platformRows(parts: RouteParts): ControlPlaneRow[] {
  return [...organizationRows(parts), ...tenancyRows(parts), ...routingRows(parts)];
}

function organizationRows({ identity }: RouteParts): ControlPlaneRow[] {
  return [
    row('GET', ORGANIZATIONS_PATH, PLATFORM_ADMIN, organizations.listOrganizations(identity)),
    row('POST', ORGANIZATIONS_PATH, PLATFORM_ADMIN, organizations.createOrganization(identity)),
    row('GET', ORGANIZATION_PATH, PLATFORM_ADMIN, organizations.getOrganization(identity)),
    row('PATCH', ORGANIZATION_PATH, PLATFORM_ADMIN, organizations.updateOrganization(identity)),
    row('POST', `${ORGANIZATION_PATH}/members/:userId/tokens`, PLATFORM_ADMIN, tokens.issueMemberToken(identity)),
    row('GET', `${ORGANIZATION_PATH}/audit`, PLATFORM_ADMIN, audit.listAudit(identity, NAMED)),
    row('GET', '/v1/admin/audit', PLATFORM_ADMIN, audit.listPlatformAudit(identity)),
    row('GET', ADMINISTRATORS_PATH, PLATFORM_ADMIN, administrators.listPlatformAdministrators(identity)),
    row('POST', ADMINISTRATORS_PATH, PLATFORM_ADMIN, administrators.addPlatformAdministrator(identity)),
    row(
      'DELETE',
      `${ADMINISTRATORS_PATH}/:userId`,
      PLATFORM_ADMIN,
      administrators.removePlatformAdministrator(identity),
    ),
  ];
}

/**
 * The rows on what is in any organization. The limits and allow-lists that are set here are the platform's: the
 * organization sets its own below its own paths, and both are shown together.
 */
function tenancyRows(parts: RouteParts): ControlPlaneRow[] {
  const access = { read: PLATFORM_ADMIN, replace: PLATFORM_ADMIN };
  const place = { path: ORGANIZATION_PATH, tenancy: NAMED, admin: PLATFORM_ADMIN, teamAdmin: PLATFORM_ADMIN };
  return [
    ...tenantRows(parts, place),
    ...modelAccessRows(parts, `${ORGANIZATION_PATH}/keys/:keyId`, access, NAMED, KEY),
  ];
}

function routingRows({ routing, catalogStore, previewRoute, replayPolicy }: RouteParts): ControlPlaneRow[] {
  return [
    row('GET', POLICIES_PATH, PLATFORM_ADMIN, policies.listPolicies(routing)),
    row('GET', `${POLICIES_PATH}/:policyName`, PLATFORM_ADMIN, policies.getPolicy(routing)),
    row('PUT', `${POLICIES_PATH}/:policyName`, PLATFORM_ADMIN, policies.putPolicy(routing)),
    row('DELETE', `${POLICIES_PATH}/:policyName`, PLATFORM_ADMIN, policies.removePolicy(catalogStore)),
    row('POST', '/v1/admin/routing/preview', PLATFORM_ADMIN, previewRouting(previewRoute)),
    row('POST', '/v1/admin/routing/replay', PLATFORM_ADMIN, replayRouting(replayPolicy)),
    row('GET', `${ORGANIZATION_PATH}/routing`, PLATFORM_ADMIN, policies.getOrganizationRouting(routing)),
    row('PUT', `${ORGANIZATION_PATH}/routing`, PLATFORM_ADMIN, policies.setOrganizationRouting(routing)),
  ];
}
