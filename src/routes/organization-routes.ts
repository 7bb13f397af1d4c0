// The rows of the route table for administrators of an organization: the active one, and what is in it.

import * as audit from '../control-plane/identity/audit.ts';
import * as organizations from '../control-plane/identity/organizations.ts';
import { ACTIVE } from '../control-plane/identity/tenancy.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  row,
  TEAM_ADMIN,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';
import { tenantRows } from './tenant-rows.ts';

export function organizationRows(parts: RouteParts): ControlPlaneRow[] {
  const { identity } = parts;
  const path = ACTIVE_ORGANIZATION_PATH;
  return [
    row('GET', path, ORGANIZATION_ADMIN, organizations.getActiveOrganization(identity)),
    row('GET', `${path}/audit`, ORGANIZATION_ADMIN, audit.listAudit(identity, ACTIVE)),
    ...tenantRows(parts, { path, tenancy: ACTIVE, admin: ORGANIZATION_ADMIN, teamAdmin: TEAM_ADMIN }),
  ];
}
