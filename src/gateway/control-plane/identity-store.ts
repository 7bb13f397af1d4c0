// Provides the identity operations of storage to the control plane.

import type { IdentityStore } from '../../control-plane/identity/identity-store.ts';
import { listAudit } from '../../storage/postgres/identity/audit.ts';
import {
  createKey,
  getKey,
  type KeySecrets,
  listKeys,
  revokeKey,
  updateKey,
} from '../../storage/postgres/identity/keys/keys.ts';
import { rotateKey } from '../../storage/postgres/identity/keys/rotate-key.ts';
import { listLimits, replaceLimits } from '../../storage/postgres/identity/limits.ts';
import { addMember, listMembers, removeMember, setMemberRole } from '../../storage/postgres/identity/members.ts';
import { getModelAccess, setModelAccess } from '../../storage/postgres/identity/model-access.ts';
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  listOrganizationsOfUser,
  updateOrganization,
} from '../../storage/postgres/identity/organizations.ts';
import {
  addPlatformAdministrator,
  listPlatformAdministrators,
  removePlatformAdministrator,
} from '../../storage/postgres/identity/platform-administrators.ts';
import { createTeam, deleteTeam, getTeam, listTeams, updateTeam } from '../../storage/postgres/identity/teams.ts';
import { createToken, listTokens, revokeToken, setActiveOrganization } from '../../storage/postgres/identity/tokens.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

export function createIdentityStore(postgres: Postgres, secrets: KeySecrets): IdentityStore {
  return {
    listOrganizations: (params) => listOrganizations(postgres, params),
    listOrganizationsOfUser: (params) => listOrganizationsOfUser(postgres, params),
    createOrganization: (actor, order) => createOrganization(postgres, actor, order),
    getOrganization: (organizationId) => getOrganization(postgres, organizationId),
    updateOrganization: (actor, organizationId, change) => updateOrganization(postgres, actor, organizationId, change),

    listTeams: (params) => listTeams(postgres, params),
    createTeam: (actor, order) => createTeam(postgres, actor, order),
    getTeam: (name) => getTeam(postgres, name),
    updateTeam: (actor, name, change) => updateTeam(postgres, actor, name, change),
    deleteTeam: (actor, name) => deleteTeam(postgres, actor, name),

    listMembers: (params) => listMembers(postgres, params),
    addMember: (actor, scope, order) => addMember(postgres, actor, scope, order),
    setMemberRole: (actor, scope, order) => setMemberRole(postgres, actor, scope, order),
    removeMember: (actor, scope, userId) => removeMember(postgres, actor, scope, userId),

    listKeys: (params) => listKeys(postgres, params),
    createKey: (actor, order) => createKey(postgres, secrets, actor, order),
    getKey: (name) => getKey(postgres, name),
    updateKey: (actor, name, change) => updateKey(postgres, actor, name, change),
    revokeKey: (actor, name) => revokeKey(postgres, actor, name),
    rotateKey: (actor, name, order) => rotateKey(postgres, secrets, actor, name, order),

    listTokens: (params) => listTokens(postgres, params),
    createToken: (actor, order) => createToken(postgres, secrets, actor, order),
    revokeToken: (actor, name) => revokeToken(postgres, actor, name),
    setActiveOrganization: (actor, name, organizationId) =>
      setActiveOrganization(postgres, actor, name, organizationId),

    listLimits: (scope) => listLimits(postgres, scope),
    replaceLimits: (actor, scope, order) => replaceLimits(postgres, actor, scope, order),
    getModelAccess: (scope) => getModelAccess(postgres, scope),
    setModelAccess: (actor, scope, order) => setModelAccess(postgres, actor, scope, order),
    listAudit: (params) => listAudit(postgres, params),

    listPlatformAdministrators: (params) => listPlatformAdministrators(postgres, params),
    addPlatformAdministrator: (actor, email) => addPlatformAdministrator(postgres, actor, email),
    removePlatformAdministrator: (actor, userId) => removePlatformAdministrator(postgres, actor, userId),
  };
}
