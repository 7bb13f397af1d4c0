// The rows on what is in an organization: members, teams and keys, with their limits. The same rows stand below the
// active organization's path, for its administrators, and below any organization's path, for the platform's.

import * as keys from '../control-plane/identity/keys.ts';
import * as members from '../control-plane/identity/members.ts';
import * as scopes from '../control-plane/identity/route-scopes.ts';
import * as teams from '../control-plane/identity/teams.ts';
import type { Tenancy } from '../control-plane/identity/tenancy.ts';
import type { RouteAccess } from '../control-plane/openapi/described-route.ts';
import { limitRows, modelAccessRows } from './ceiling-rows.ts';
import { type ControlPlaneRow, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

/** Where the organization is, and who administers it there. */
export interface TenantPlace {
  readonly path: string;
  readonly tenancy: Tenancy;
  readonly admin: RouteAccess;
  /** Who administers a team in it. */
  readonly teamAdmin: RouteAccess;
}

export function tenantRows(parts: RouteParts, place: TenantPlace): ControlPlaneRow[] {
  const { path, tenancy, admin } = place;
  const access = { read: admin, replace: admin };
  return [
    ...limitRows(parts, path, access, tenancy, scopes.ORGANIZATION),
    ...modelAccessRows(parts, path, access, tenancy, scopes.ORGANIZATION),
    ...memberRows(parts, place),
    ...teamRows(parts, place),
    ...keyRows(parts, place),
  ];
}

function memberRows(parts: RouteParts, { path, tenancy, admin }: TenantPlace): ControlPlaneRow[] {
  const { identity } = parts;
  const people = members.ORGANIZATION_MEMBERS;
  const member = `${path}/members/:userId`;
  return [
    row('GET', `${path}/members`, admin, members.listMembers(identity, tenancy, people)),
    row('POST', `${path}/members`, admin, members.addMember(identity, tenancy, people)),
    row('PATCH', member, admin, members.setMemberRole(identity, tenancy, people)),
    row('DELETE', member, admin, members.removeMember(identity, tenancy, people)),
    ...limitRows(parts, member, { read: admin, replace: admin }, tenancy, scopes.MEMBER),
  ];
}

function teamRows(parts: RouteParts, { path, tenancy, admin, teamAdmin }: TenantPlace): ControlPlaneRow[] {
  const { identity } = parts;
  const teamsPath = `${path}/teams`;
  const team = `${teamsPath}/:teamId`;
  const access = { read: teamAdmin, replace: admin };
  const people = members.TEAM_MEMBERS;
  return [
    row('GET', teamsPath, admin, teams.listTeams(identity, tenancy)),
    row('POST', teamsPath, admin, teams.createTeam(identity, tenancy)),
    row('GET', team, teamAdmin, teams.getTeam(identity, tenancy)),
    row('PATCH', team, teamAdmin, teams.updateTeam(identity, tenancy)),
    row('DELETE', team, admin, teams.deleteTeam(identity, tenancy)),
    row('GET', `${team}/members`, teamAdmin, members.listMembers(identity, tenancy, people)),
    row('POST', `${team}/members`, teamAdmin, members.addMember(identity, tenancy, people)),
    row('PATCH', `${team}/members/:userId`, teamAdmin, members.setMemberRole(identity, tenancy, people)),
    row('DELETE', `${team}/members/:userId`, teamAdmin, members.removeMember(identity, tenancy, people)),
    ...limitRows(parts, team, access, tenancy, scopes.TEAM),
    ...modelAccessRows(parts, team, access, tenancy, scopes.TEAM),
  ];
}

function keyRows(parts: RouteParts, { path, tenancy, admin }: TenantPlace): ControlPlaneRow[] {
  const { identity } = parts;
  const keysPath = `${path}/keys`;
  const key = `${keysPath}/:keyId`;
  const all = keys.keysOf(tenancy);
  return [
    row('GET', keysPath, admin, keys.listKeys(identity, tenancy)),
    row('POST', keysPath, admin, keys.createKey(identity, tenancy)),
    row('GET', key, admin, keys.getKey(identity, all)),
    row('PATCH', key, admin, keys.updateKey(identity, all)),
    row('DELETE', key, admin, keys.revokeKey(identity, all)),
    row('POST', `${key}/rotate`, admin, keys.rotateKey(identity, all)),
    ...limitRows(parts, key, { read: admin, replace: admin }, tenancy, scopes.KEY),
  ];
}
