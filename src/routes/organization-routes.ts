// The rows of the route table for administrators of an organization: its members, teams and keys, and their ceilings.

import * as audit from '../control-plane/identity/audit.ts';
import * as bearers from '../control-plane/identity/ceiling-bearers.ts';
import * as keys from '../control-plane/identity/keys.ts';
import * as members from '../control-plane/identity/members.ts';
import * as organizations from '../control-plane/identity/organizations.ts';
import * as teams from '../control-plane/identity/teams.ts';
import { ACTIVE } from '../control-plane/identity/tenancy.ts';
import { limitRows, modelAccessRows } from './ceiling-rows.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  row,
  TEAM_ADMIN,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

const ADMIN_ONLY = { read: ORGANIZATION_ADMIN, replace: ORGANIZATION_ADMIN };

export function organizationRows(parts: RouteParts): ControlPlaneRow[] {
  return [...activeOrganizationRows(parts), ...teamRows(parts), ...keyRows(parts)];
}

function activeOrganizationRows(parts: RouteParts): ControlPlaneRow[] {
  const { identity } = parts;
  const people = members.ORGANIZATION_MEMBERS;
  const member = `${ACTIVE_ORGANIZATION_PATH}/members/:userId`;
  return [
    row('GET', ACTIVE_ORGANIZATION_PATH, ORGANIZATION_ADMIN, organizations.getActiveOrganization(identity)),
    row(
      'GET',
      `${ACTIVE_ORGANIZATION_PATH}/members`,
      ORGANIZATION_ADMIN,
      members.listMembers(identity, ACTIVE, people),
    ),
    row('POST', `${ACTIVE_ORGANIZATION_PATH}/members`, ORGANIZATION_ADMIN, members.addMember(identity, ACTIVE, people)),
    row('PATCH', member, ORGANIZATION_ADMIN, members.setMemberRole(identity, ACTIVE, people)),
    row('DELETE', member, ORGANIZATION_ADMIN, members.removeMember(identity, ACTIVE, people)),
    ...limitRows(parts, member, ADMIN_ONLY, ACTIVE, bearers.MEMBER),
    ...limitRows(parts, ACTIVE_ORGANIZATION_PATH, ADMIN_ONLY, ACTIVE, bearers.ORGANIZATION),
    ...modelAccessRows(parts, ACTIVE_ORGANIZATION_PATH, ADMIN_ONLY, ACTIVE, bearers.ORGANIZATION),
    row('GET', `${ACTIVE_ORGANIZATION_PATH}/audit`, ORGANIZATION_ADMIN, audit.listAudit(identity, ACTIVE)),
  ];
}

function teamRows(parts: RouteParts): ControlPlaneRow[] {
  const { identity } = parts;
  const teamsPath = `${ACTIVE_ORGANIZATION_PATH}/teams`;
  const team = `${teamsPath}/:teamId`;
  const access = { read: TEAM_ADMIN, replace: ORGANIZATION_ADMIN };
  const people = members.TEAM_MEMBERS;
  return [
    row('GET', teamsPath, ORGANIZATION_ADMIN, teams.listTeams(identity, ACTIVE)),
    row('POST', teamsPath, ORGANIZATION_ADMIN, teams.createTeam(identity)),
    row('GET', team, TEAM_ADMIN, teams.getTeam(identity)),
    row('PATCH', team, TEAM_ADMIN, teams.updateTeam(identity)),
    row('DELETE', team, ORGANIZATION_ADMIN, teams.deleteTeam(identity)),
    row('GET', `${team}/members`, TEAM_ADMIN, members.listMembers(identity, ACTIVE, people)),
    row('POST', `${team}/members`, TEAM_ADMIN, members.addMember(identity, ACTIVE, people)),
    row('PATCH', `${team}/members/:userId`, TEAM_ADMIN, members.setMemberRole(identity, ACTIVE, people)),
    row('DELETE', `${team}/members/:userId`, TEAM_ADMIN, members.removeMember(identity, ACTIVE, people)),
    ...limitRows(parts, team, access, ACTIVE, bearers.TEAM),
    ...modelAccessRows(parts, team, access, ACTIVE, bearers.TEAM),
  ];
}

function keyRows(parts: RouteParts): ControlPlaneRow[] {
  const { identity } = parts;
  const keysPath = `${ACTIVE_ORGANIZATION_PATH}/keys`;
  const key = `${keysPath}/:keyId`;
  const all = keys.ORGANIZATION_KEYS;
  return [
    row('GET', keysPath, ORGANIZATION_ADMIN, keys.listKeys(identity, ACTIVE)),
    row('POST', keysPath, ORGANIZATION_ADMIN, keys.createKey(identity)),
    row('GET', key, ORGANIZATION_ADMIN, keys.getKey(identity, all)),
    row('PATCH', key, ORGANIZATION_ADMIN, keys.updateKey(identity, all)),
    row('DELETE', key, ORGANIZATION_ADMIN, keys.revokeKey(identity, all)),
    row('POST', `${key}/rotate`, ORGANIZATION_ADMIN, keys.rotateKey(identity, all)),
    ...limitRows(parts, key, ADMIN_ONLY, ACTIVE, bearers.KEY),
  ];
}
