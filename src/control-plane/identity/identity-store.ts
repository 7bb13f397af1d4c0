// What identity operations need of storage; the composition root provides it. Expected refusals are returned as values,
// never thrown.

import type { CreateTokenParams, Token, TokenReference, TokenWithSecret } from '../../domain/identity/access-token.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { CreateKeyParams, Key, KeyChange, KeyReference, KeyWithSecret } from '../../domain/identity/api-key.ts';
import type { AuditEntry } from '../../domain/identity/audit-entry.ts';
import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import type { Limits, ReplaceLimitsParams } from '../../domain/identity/limits.ts';
import type { Member, MemberScope } from '../../domain/identity/member.ts';
import type { ModelAccess, ModelAccessScope, SetModelAccessParams } from '../../domain/identity/model-access.ts';
import type { Organization, OrganizationChange, OwnOrganization } from '../../domain/identity/organization.ts';
import type { PlatformAdministrator } from '../../domain/identity/platform-administrator.ts';
import type { Role } from '../../domain/identity/roles.ts';
import type { Team, TeamReference } from '../../domain/identity/team.ts';
import type { Page, PageParams } from '../../domain/lists/page.ts';
import type { Refused } from '../../domain/refusals/refused.ts';

export type Answer<T> = Promise<T | Refused>;

export interface IdentityStore {
  listOrganizations(params: PageParams): Answer<Page<Organization>>;
  listOrganizationsOfUser(params: PageParams & { userId: string }): Answer<Page<OwnOrganization>>;
  createOrganization(
    actor: Actor,
    params: {
      slug: string;
      displayName?: string | undefined;
      billing: 'prepaid' | 'none';
      ownerEmail?: string | undefined;
    },
  ): Answer<Organization>;
  getOrganization(organizationId: string): Answer<Organization>;
  updateOrganization(actor: Actor, organizationId: string, change: OrganizationChange): Answer<Organization>;

  listTeams(params: PageParams & { organizationId: string }): Answer<Page<Team>>;
  createTeam(
    actor: Actor,
    params: { organizationId: string; slug: string; displayName?: string | undefined },
  ): Answer<Team>;
  getTeam(team: TeamReference): Answer<Team>;
  updateTeam(
    actor: Actor,
    team: TeamReference,
    change: { slug?: string | undefined; displayName?: string | undefined },
  ): Answer<Team>;
  deleteTeam(actor: Actor, team: TeamReference): Answer<{ readonly deleted: true }>;

  listMembers(params: PageParams & MemberScope): Answer<Page<Member>>;
  addMember(actor: Actor, scope: MemberScope, params: { email: string; role: Role }): Answer<Member>;
  setMemberRole(actor: Actor, scope: MemberScope, params: { userId: string; role: Role }): Answer<Member>;
  removeMember(
    actor: Actor,
    scope: MemberScope,
    userId: string,
  ): Answer<{ readonly removed: true; readonly revokedKeys: number }>;

  listKeys(
    params: PageParams & { organizationId: string; teamId?: string | undefined; userId?: string | undefined },
  ): Answer<Page<Key>>;
  createKey(actor: Actor, params: CreateKeyParams): Answer<KeyWithSecret>;
  getKey(key: KeyReference): Answer<Key>;
  updateKey(actor: Actor, key: KeyReference, change: KeyChange): Answer<Key>;
  revokeKey(actor: Actor, key: KeyReference): Answer<Key>;
  rotateKey(actor: Actor, key: KeyReference, params: { overlapSeconds: number }): Answer<KeyWithSecret>;

  listTokens(params: PageParams & { userId: string }): Answer<Page<Token>>;
  createToken(actor: Actor, params: CreateTokenParams): Answer<TokenWithSecret>;
  revokeToken(actor: Actor, token: TokenReference): Answer<Token>;
  setActiveOrganization(actor: Actor, token: TokenReference, organizationId: string | null): Answer<Token>;

  listLimits(scope: LimitScope): Answer<Limits>;
  replaceLimits(actor: Actor, scope: LimitScope, params: ReplaceLimitsParams): Answer<Limits>;
  getModelAccess(scope: ModelAccessScope): Answer<ModelAccess>;
  setModelAccess(actor: Actor, scope: ModelAccessScope, params: SetModelAccessParams): Answer<ModelAccess>;
  listAudit(params: PageParams & { organizationId: string | null }): Answer<Page<AuditEntry>>;

  listPlatformAdministrators(params: PageParams): Answer<Page<PlatformAdministrator>>;
  addPlatformAdministrator(actor: Actor, email: string): Answer<PlatformAdministrator>;
  removePlatformAdministrator(actor: Actor, userId: string): Answer<{ readonly removed: true }>;
}
