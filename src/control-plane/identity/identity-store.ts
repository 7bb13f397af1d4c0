// What identity operations ask of storage; the composition root puts it together. An expected no comes back as a value, never as a throw.

import type { UsageLimit } from '../../domain/configuration/configuration.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Role } from '../../domain/identity/roles.ts';

/** `not_found` is also everything that belongs to somebody else. `field`: as the operation's input names it. */
export interface Refused {
  readonly refused: 'not_found' | 'conflict' | 'owner_floor' | 'permission_denied' | 'invalid';
  readonly field?: string;
  readonly reason?: string;
}

export type Answer<T> = Promise<T | Refused>;

export interface PageQuestion {
  readonly limit?: number | undefined;
  readonly cursor?: string | null | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export interface Organization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly billing: 'prepaid' | 'none';
  readonly frozen: boolean;
  readonly createdAtMs: number;
}

/** An organization as one of its members knows it. */
export interface OwnOrganization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly role: Role;
}

export interface OrganizationChange {
  readonly displayName?: string | undefined;
  readonly billing?: 'prepaid' | 'none' | undefined;
  readonly frozen?: boolean | undefined;
}

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdAtMs: number;
}

export interface TeamName {
  readonly organizationId: string;
  readonly teamId: string;
}

export interface Member {
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAtMs: number;
}

/** An organization (`teamId` null) or one of its teams. */
export interface MemberScope {
  readonly organizationId: string;
  readonly teamId: string | null;
}

export interface Key {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly teamId: string | null;
  readonly userId: string | null;
  readonly payer: 'organization' | 'user';
  readonly allowedModels: readonly string[] | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly previousSecretUntilMs: number | null;
}

export interface WithSecret {
  /** Shown once, here. */
  readonly secret: string;
}

export interface KeyName {
  readonly organizationId: string;
  readonly keyId: string;
  /** Only if it is this user's, who may end it, and change it where they pay for it. */
  readonly userId?: string | undefined;
}

export interface KeyChange {
  readonly name?: string | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly expiresAtMs?: number | null | undefined;
}

export interface KeyOrder extends KeyChange {
  readonly organizationId: string;
  readonly name: string;
  readonly teamId?: string | null | undefined;
  readonly userId?: string | null | undefined;
  readonly payer?: 'organization' | 'user' | undefined;
}

export interface Token {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly prefix: string;
  readonly activeOrganizationId: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly revokedAtMs: number | null;
}

export interface TokenOrder {
  readonly userId: string;
  readonly name: string;
  readonly lifetimeSeconds: number;
  readonly organizationId?: string | null | undefined;
}

export interface TokenName {
  readonly tokenId: string;
  readonly userId: string | null;
}

export type LimitScope =
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'team'; readonly organizationId: string; readonly teamId: string }
  | { readonly kind: 'user'; readonly organizationId: string; readonly userId: string }
  | { readonly kind: 'key'; readonly organizationId: string; readonly keyId: string };

export type ModelAccessScope = Exclude<LimitScope, { kind: 'user' }>;

export interface Limits {
  readonly items: readonly UsageLimit[];
}

export interface ModelAccess {
  /** null: every model. */
  readonly allowedModels: readonly string[] | null;
}

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  readonly organizationId: string | null;
  readonly actor: Actor;
  readonly action: string;
  readonly target: { readonly kind: string; readonly id: string };
  readonly before: unknown;
  readonly after: unknown;
}

export interface PlatformAdministrator {
  readonly userId: string;
  readonly email: string;
  readonly createdAtMs: number;
}

export interface IdentityStore {
  listOrganizations(question: PageQuestion): Answer<Page<Organization>>;
  listOrganizationsOfUser(question: PageQuestion & { userId: string }): Answer<Page<OwnOrganization>>;
  createOrganization(
    actor: Actor,
    order: { slug: string; displayName?: string | undefined; billing: 'prepaid' | 'none'; ownerEmail?: string | undefined },
  ): Answer<Organization>;
  getOrganization(organizationId: string): Answer<Organization>;
  updateOrganization(actor: Actor, organizationId: string, change: OrganizationChange): Answer<Organization>;

  listTeams(question: PageQuestion & { organizationId: string }): Answer<Page<Team>>;
  createTeam(actor: Actor, order: { organizationId: string; slug: string; displayName?: string | undefined }): Answer<Team>;
  getTeam(name: TeamName): Answer<Team>;
  updateTeam(actor: Actor, name: TeamName, change: { slug?: string | undefined; displayName?: string | undefined }): Answer<Team>;
  deleteTeam(actor: Actor, name: TeamName): Answer<{ readonly deleted: true }>;

  listMembers(question: PageQuestion & MemberScope): Answer<Page<Member>>;
  addMember(actor: Actor, scope: MemberScope, order: { email: string; role: Role }): Answer<Member>;
  setMemberRole(actor: Actor, scope: MemberScope, order: { userId: string; role: Role }): Answer<Member>;
  removeMember(actor: Actor, scope: MemberScope, userId: string): Answer<{ readonly removed: true; readonly revokedKeys: number }>;

  listKeys(question: PageQuestion & { organizationId: string; teamId?: string | undefined; userId?: string | undefined }): Answer<Page<Key>>;
  createKey(actor: Actor, order: KeyOrder): Answer<Key & WithSecret>;
  getKey(name: KeyName): Answer<Key>;
  updateKey(actor: Actor, name: KeyName, change: KeyChange): Answer<Key>;
  revokeKey(actor: Actor, name: KeyName): Answer<Key>;
  rotateKey(actor: Actor, name: KeyName, order: { overlapSeconds: number }): Answer<Key & WithSecret>;

  listTokens(question: PageQuestion & { userId: string }): Answer<Page<Token>>;
  createToken(actor: Actor, order: TokenOrder): Answer<Token & WithSecret>;
  revokeToken(actor: Actor, name: TokenName): Answer<Token>;
  setActiveOrganization(actor: Actor, name: TokenName, organizationId: string | null): Answer<Token>;

  listLimits(scope: LimitScope): Answer<Limits>;
  replaceLimits(actor: Actor, scope: LimitScope, limits: readonly UsageLimit[]): Answer<Limits>;
  getModelAccess(scope: ModelAccessScope): Answer<ModelAccess>;
  setModelAccess(actor: Actor, scope: ModelAccessScope, allowedModels: readonly string[] | null): Answer<ModelAccess>;
  listAudit(question: PageQuestion & { organizationId: string | null }): Answer<Page<AuditEntry>>;

  listPlatformAdministrators(question: PageQuestion): Answer<Page<PlatformAdministrator>>;
  addPlatformAdministrator(actor: Actor, email: string): Answer<PlatformAdministrator>;
  removePlatformAdministrator(actor: Actor, userId: string): Answer<{ readonly removed: true }>;
}
