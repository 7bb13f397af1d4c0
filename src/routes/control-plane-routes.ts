// The control-plane rows of the route table: executions, catalog, and identity as the platform, an organization and a
// person see it.

import { getCredits } from '../control-plane/billing/credits.ts';
import { getCurrentLimits } from '../control-plane/billing/current-limits.ts';
import * as deposits from '../control-plane/billing/deposits.ts';
import * as wallets from '../control-plane/billing/wallets.ts';
import * as webhooks from '../control-plane/billing/webhooks.ts';
import { listModelProviders } from '../control-plane/catalog/list-model-providers.ts';
import { listModels } from '../control-plane/catalog/list-models.ts';
import { getGeneration } from '../control-plane/executions/get-generation.ts';
import { listGenerations } from '../control-plane/executions/list-generations.ts';
import { ACTIVE, NAMED } from '../control-plane/identity/asked-of.ts';
import * as audit from '../control-plane/identity/audit.ts';
import * as keys from '../control-plane/identity/keys.ts';
import * as limits from '../control-plane/identity/limits.ts';
import { getMe } from '../control-plane/identity/me.ts';
import * as members from '../control-plane/identity/members.ts';
import * as models from '../control-plane/identity/model-access.ts';
import * as organizations from '../control-plane/identity/organizations.ts';
import * as administrators from '../control-plane/identity/platform-administrators.ts';
import * as teams from '../control-plane/identity/teams.ts';
import * as tokens from '../control-plane/identity/tokens.ts';
import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import {
  GET_GENERATION,
  LIST_GENERATIONS,
  LIST_MODEL_PROVIDERS,
  LIST_MODELS,
} from '../control-plane/openapi/read-descriptions.ts';
import type { Operation, OperationDescription } from '../control-plane/operation.ts';
import * as policies from '../control-plane/routing/policies.ts';
import { previewRouting } from '../control-plane/routing/preview.ts';
import type { OrganizationPermission } from '../domain/identity/permit.ts';
import type { ScopedPrincipal } from '../domain/identity/principal.ts';
import type { Exchange } from '../http/exchange.ts';
import { authorizeBy, meterChanges } from './authorize.ts';
import { reportRows } from './report-routes.ts';
import type { RouteParts } from './route-parts.ts';

export type ControlPlaneRow = Pick<DescribedRoute, 'method' | 'path' | 'permission' | 'scope'> & {
  readonly operation: Operation;
};

export function controlPlaneRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const rows = [
    ...peopleRows(parts),
    ...ownKeyRows(parts),
    ...platformRows(parts),
    ...platformCeilingRows(parts),
    ...routingRows(parts),
    ...organizationRows(parts),
    ...teamRows(parts),
    ...keyRows(parts),
    ...billingRows(parts),
    ...webhookRows(parts),
    ...reportRows(parts),
  ];
  return [...readingRoutes(parts), ...rows.map((row) => routeOf(row, parts))];
}

function routeOf({ operation, ...gate }: ControlPlaneRow, { authenticator, changeMeter }: RouteParts): DescribedRoute {
  const isMetered = gate.method !== 'GET' && gate.method !== 'DELETE';
  const handle = (exchange: Exchange) => {
    const authorize = authorizeBy(authenticator, gate, exchange);
    return operation.serve(exchange, isMetered ? meterChanges(authorize, changeMeter) : authorize);
  };
  return { ...gate, plane: 'control', envelope: 'platform', description: operation, handle };
}

function peopleRows({ identity }: RouteParts): ControlPlaneRow[] {
  const any = { permission: null, scope: 'none' } as const;
  const person = { permission: null, scope: 'person' } as const;
  return [
    { method: 'GET', path: '/v1/me', ...any, operation: getMe() },
    { method: 'GET', path: '/v1/me/tokens', ...person, operation: tokens.listMyTokens(identity) },
    { method: 'POST', path: '/v1/me/tokens', ...person, operation: tokens.createMyToken(identity) },
    { method: 'DELETE', path: '/v1/me/tokens/:tokenId', ...person, operation: tokens.revokeMyToken(identity) },
    { method: 'GET', path: '/v1/me/organizations', ...person, operation: organizations.listMyOrganizations(identity) },
    {
      method: 'PUT',
      path: '/v1/me/active-organization',
      ...person,
      operation: tokens.setMyActiveOrganization(identity),
    },
  ];
}

const ORGANIZATIONS = '/v1/admin/organizations';
const ORGANIZATION = `${ORGANIZATIONS}/:organizationId`;
const ADMINISTRATORS = '/v1/admin/platform-administrators';

function platformRows({ identity }: RouteParts): ControlPlaneRow[] {
  const platform = { permission: 'platform.admin', scope: 'platform' } as const;
  const people = members.ORGANIZATION_MEMBERS;
  return [
    { method: 'GET', path: ORGANIZATIONS, ...platform, operation: organizations.listOrganizations(identity) },
    { method: 'POST', path: ORGANIZATIONS, ...platform, operation: organizations.createOrganization(identity) },
    { method: 'GET', path: ORGANIZATION, ...platform, operation: organizations.getOrganization(identity) },
    { method: 'PATCH', path: ORGANIZATION, ...platform, operation: organizations.updateOrganization(identity) },
    {
      method: 'GET',
      path: `${ORGANIZATION}/members`,
      ...platform,
      operation: members.listMembers(identity, NAMED, people),
    },
    {
      method: 'POST',
      path: `${ORGANIZATION}/members`,
      ...platform,
      operation: members.addMember(identity, NAMED, people),
    },
    {
      method: 'POST',
      path: `${ORGANIZATION}/members/:userId/tokens`,
      ...platform,
      operation: tokens.issueMemberToken(identity),
    },
    { method: 'GET', path: `${ORGANIZATION}/teams`, ...platform, operation: teams.listTeams(identity, NAMED) },
    { method: 'GET', path: `${ORGANIZATION}/keys`, ...platform, operation: keys.listKeys(identity, NAMED) },
    { method: 'GET', path: `${ORGANIZATION}/audit`, ...platform, operation: audit.listAudit(identity, NAMED) },
    { method: 'GET', path: '/v1/admin/audit', ...platform, operation: audit.listPlatformAudit(identity) },
    {
      method: 'GET',
      path: ADMINISTRATORS,
      ...platform,
      operation: administrators.listPlatformAdministrators(identity),
    },
    { method: 'POST', path: ADMINISTRATORS, ...platform, operation: administrators.addPlatformAdministrator(identity) },
    {
      method: 'DELETE',
      path: `${ADMINISTRATORS}/:userId`,
      ...platform,
      operation: administrators.removePlatformAdministrator(identity),
    },
  ];
}

/**
 * What the platform sets on an organization and on what is in it; what the organization sets itself is set and shown
 * below its own paths too.
 */
function platformCeilingRows({ identity }: RouteParts): ControlPlaneRow[] {
  const platform = { permission: 'platform.admin', scope: 'platform' } as const;
  const team = `${ORGANIZATION}/teams/:teamId`;
  const key = `${ORGANIZATION}/keys/:keyId`;
  const limitRows = ([path, bearer]: readonly [string, limits.LimitBearer]): ControlPlaneRow[] => [
    { method: 'GET', path: `${path}/limits`, ...platform, operation: limits.getLimits(identity, NAMED, bearer) },
    { method: 'PUT', path: `${path}/limits`, ...platform, operation: limits.replaceLimits(identity, NAMED, bearer) },
  ];
  const modelRows = ([path, bearer]: readonly [string, models.ModelBearer]): ControlPlaneRow[] => [
    {
      method: 'GET',
      path: `${path}/model-access`,
      ...platform,
      operation: models.getModelAccess(identity, NAMED, bearer),
    },
    {
      method: 'PUT',
      path: `${path}/model-access`,
      ...platform,
      operation: models.setModelAccess(identity, NAMED, bearer),
    },
  ];
  const limited = [
    [ORGANIZATION, limits.ORGANIZATION_LIMITS],
    [team, limits.TEAM_LIMITS],
    [`${ORGANIZATION}/members/:userId`, limits.MEMBER_LIMITS],
    [key, limits.KEY_LIMITS],
  ] as const;
  const listed = [
    [ORGANIZATION, models.ORGANIZATION_MODELS],
    [team, models.TEAM_MODELS],
    [key, models.KEY_MODELS],
  ] as const;
  return [...limited.flatMap(limitRows), ...listed.flatMap(modelRows)];
}

function routingRows({ routing, previewRoute }: RouteParts): ControlPlaneRow[] {
  const platform = { permission: 'platform.admin', scope: 'platform' } as const;
  const list = '/v1/admin/routing/policies';
  return [
    { method: 'GET', path: list, ...platform, operation: policies.listPolicies(routing) },
    { method: 'GET', path: `${list}/:policyName`, ...platform, operation: policies.getPolicy(routing) },
    { method: 'PUT', path: `${list}/:policyName`, ...platform, operation: policies.putPolicy(routing) },
    { method: 'POST', path: '/v1/admin/routing/preview', ...platform, operation: previewRouting(previewRoute) },
    {
      method: 'GET',
      path: `${ORGANIZATION}/routing`,
      ...platform,
      operation: policies.getOrganizationRouting(routing),
    },
    {
      method: 'PUT',
      path: `${ORGANIZATION}/routing`,
      ...platform,
      operation: policies.setOrganizationRouting(routing),
    },
  ];
}

const ACTIVE_ORGANIZATION = '/v1/admin/active-org';
const OWN = { permission: 'org.admin', scope: 'organization' } as const;

function organizationRows({ identity }: RouteParts): ControlPlaneRow[] {
  const people = members.ORGANIZATION_MEMBERS;
  const member = `${ACTIVE_ORGANIZATION}/members/:userId`;
  return [
    { method: 'GET', path: ACTIVE_ORGANIZATION, ...OWN, operation: organizations.getActiveOrganization(identity) },
    {
      method: 'GET',
      path: `${ACTIVE_ORGANIZATION}/members`,
      ...OWN,
      operation: members.listMembers(identity, ACTIVE, people),
    },
    {
      method: 'POST',
      path: `${ACTIVE_ORGANIZATION}/members`,
      ...OWN,
      operation: members.addMember(identity, ACTIVE, people),
    },
    { method: 'PATCH', path: member, ...OWN, operation: members.setMemberRole(identity, ACTIVE, people) },
    { method: 'DELETE', path: member, ...OWN, operation: members.removeMember(identity, ACTIVE, people) },
    {
      method: 'GET',
      path: `${member}/limits`,
      ...OWN,
      operation: limits.getLimits(identity, ACTIVE, limits.MEMBER_LIMITS),
    },
    {
      method: 'PUT',
      path: `${member}/limits`,
      ...OWN,
      operation: limits.replaceLimits(identity, ACTIVE, limits.MEMBER_LIMITS),
    },
    {
      method: 'GET',
      path: `${ACTIVE_ORGANIZATION}/limits`,
      ...OWN,
      operation: limits.getLimits(identity, ACTIVE, limits.ORGANIZATION_LIMITS),
    },
    {
      method: 'PUT',
      path: `${ACTIVE_ORGANIZATION}/limits`,
      ...OWN,
      operation: limits.replaceLimits(identity, ACTIVE, limits.ORGANIZATION_LIMITS),
    },
    {
      method: 'GET',
      path: `${ACTIVE_ORGANIZATION}/model-access`,
      ...OWN,
      operation: models.getModelAccess(identity, ACTIVE, models.ORGANIZATION_MODELS),
    },
    {
      method: 'PUT',
      path: `${ACTIVE_ORGANIZATION}/model-access`,
      ...OWN,
      operation: models.setModelAccess(identity, ACTIVE, models.ORGANIZATION_MODELS),
    },
    { method: 'GET', path: `${ACTIVE_ORGANIZATION}/audit`, ...OWN, operation: audit.listAudit(identity, ACTIVE) },
  ];
}

function teamRows({ identity }: RouteParts): ControlPlaneRow[] {
  const teamsPath = `${ACTIVE_ORGANIZATION}/teams`;
  const team = `${teamsPath}/:teamId`;
  /** Who administers the organization, or the team itself. */
  const ofTeam = { permission: 'org.admin', scope: 'team' } as const;
  const people = members.TEAM_MEMBERS;
  return [
    { method: 'GET', path: teamsPath, ...OWN, operation: teams.listTeams(identity, ACTIVE) },
    { method: 'POST', path: teamsPath, ...OWN, operation: teams.createTeam(identity) },
    { method: 'GET', path: team, ...ofTeam, operation: teams.getTeam(identity) },
    { method: 'PATCH', path: team, ...ofTeam, operation: teams.updateTeam(identity) },
    { method: 'DELETE', path: team, ...OWN, operation: teams.deleteTeam(identity) },
    { method: 'GET', path: `${team}/members`, ...ofTeam, operation: members.listMembers(identity, ACTIVE, people) },
    { method: 'POST', path: `${team}/members`, ...ofTeam, operation: members.addMember(identity, ACTIVE, people) },
    {
      method: 'PATCH',
      path: `${team}/members/:userId`,
      ...ofTeam,
      operation: members.setMemberRole(identity, ACTIVE, people),
    },
    {
      method: 'DELETE',
      path: `${team}/members/:userId`,
      ...ofTeam,
      operation: members.removeMember(identity, ACTIVE, people),
    },
    {
      method: 'GET',
      path: `${team}/limits`,
      ...ofTeam,
      operation: limits.getLimits(identity, ACTIVE, limits.TEAM_LIMITS),
    },
    {
      method: 'PUT',
      path: `${team}/limits`,
      ...OWN,
      operation: limits.replaceLimits(identity, ACTIVE, limits.TEAM_LIMITS),
    },
    {
      method: 'GET',
      path: `${team}/model-access`,
      ...ofTeam,
      operation: models.getModelAccess(identity, ACTIVE, models.TEAM_MODELS),
    },
    {
      method: 'PUT',
      path: `${team}/model-access`,
      ...OWN,
      operation: models.setModelAccess(identity, ACTIVE, models.TEAM_MODELS),
    },
  ];
}

function keyRows({ identity }: RouteParts): ControlPlaneRow[] {
  const keysPath = `${ACTIVE_ORGANIZATION}/keys`;
  const key = `${keysPath}/:keyId`;
  const all = keys.ORGANIZATION_KEYS;
  return [
    { method: 'GET', path: keysPath, ...OWN, operation: keys.listKeys(identity, ACTIVE) },
    { method: 'POST', path: keysPath, ...OWN, operation: keys.createKey(identity) },
    { method: 'GET', path: key, ...OWN, operation: keys.getKey(identity, all) },
    { method: 'PATCH', path: key, ...OWN, operation: keys.updateKey(identity, all) },
    { method: 'DELETE', path: key, ...OWN, operation: keys.revokeKey(identity, all) },
    { method: 'POST', path: `${key}/rotate`, ...OWN, operation: keys.rotateKey(identity, all) },
    { method: 'GET', path: `${key}/limits`, ...OWN, operation: limits.getLimits(identity, ACTIVE, limits.KEY_LIMITS) },
    {
      method: 'PUT',
      path: `${key}/limits`,
      ...OWN,
      operation: limits.replaceLimits(identity, ACTIVE, limits.KEY_LIMITS),
    },
  ];
}

/** A member's own keys in the active organization. */
function ownKeyRows({ identity }: RouteParts): ControlPlaneRow[] {
  const own = { permission: 'inference', scope: 'member' } as const;
  const keysPath = '/v1/me/keys';
  const key = `${keysPath}/:keyId`;
  const mine = keys.MY_KEYS;
  return [
    { method: 'GET', path: keysPath, ...own, operation: keys.listMyKeys(identity) },
    { method: 'POST', path: keysPath, ...own, operation: keys.createMyKey(identity) },
    { method: 'GET', path: key, ...own, operation: keys.getKey(identity, mine) },
    { method: 'PATCH', path: key, ...own, operation: keys.updateKey(identity, mine) },
    { method: 'DELETE', path: key, ...own, operation: keys.revokeKey(identity, mine) },
    { method: 'POST', path: `${key}/rotate`, ...own, operation: keys.rotateKey(identity, mine) },
  ];
}

function billingRows({ billing, identity }: RouteParts): ControlPlaneRow[] {
  const payer = { permission: 'usage.read', scope: 'organization' } as const;
  const platform = { permission: 'platform.admin', scope: 'platform' } as const;
  return [
    { method: 'GET', path: '/v1/billing/credits', ...payer, operation: getCredits(billing) },
    { method: 'GET', path: '/v1/billing/deposits', ...payer, operation: deposits.listDeposits(billing) },
    { method: 'POST', path: '/v1/billing/deposits', ...platform, operation: deposits.postDeposit(billing) },
    { method: 'GET', path: '/v1/usage/limits/current', ...payer, operation: getCurrentLimits(billing) },
    { method: 'GET', path: `${ORGANIZATION}/wallets`, ...platform, operation: wallets.listWallets(billing, identity) },
    {
      method: 'PATCH',
      path: `${ORGANIZATION}/wallets/:walletId`,
      ...platform,
      operation: wallets.freezeWallet(billing),
    },
  ];
}

function webhookRows({ billing, webhookTargets }: RouteParts): ControlPlaneRow[] {
  const rowsAt = (
    path: string,
    gate: Pick<ControlPlaneRow, 'permission' | 'scope'>,
    tenancy: typeof ACTIVE,
  ): ControlPlaneRow[] => [
    { method: 'GET', path, ...gate, operation: webhooks.getWebhook(billing, tenancy) },
    { method: 'PUT', path, ...gate, operation: webhooks.setWebhook(billing, webhookTargets, tenancy) },
    { method: 'DELETE', path, ...gate, operation: webhooks.removeWebhook(billing, tenancy) },
    {
      method: 'POST',
      path: `${path}/rotate-secret`,
      ...gate,
      operation: webhooks.rotateWebhookSecret(billing, tenancy),
    },
    { method: 'POST', path: `${path}/redeliver`, ...gate, operation: webhooks.redeliverWebhooks(billing, tenancy) },
  ];
  return [
    ...rowsAt(`${ACTIVE_ORGANIZATION}/webhook`, OWN, ACTIVE),
    ...rowsAt(`${ORGANIZATION}/webhook`, { permission: 'platform.admin', scope: 'platform' }, NAMED),
  ];
}

/** Routes that write their JSON text themselves. */
function readingRoutes(parts: RouteParts): DescribedRoute[] {
  type Handle = (exchange: Exchange, principal: ScopedPrincipal) => void | Promise<void>;
  const reading = (
    path: string,
    permission: OrganizationPermission,
    description: OperationDescription,
    handle: Handle,
  ): DescribedRoute => ({
    method: 'GET',
    path,
    plane: 'control',
    permission,
    scope: 'organization',
    envelope: 'platform',
    description,
    async handle(exchange) {
      const identified = await parts.authenticator.authenticate(
        exchange.authorization,
        exchange.apiKey,
        permission,
        undefined,
        exchange,
      );
      if ('kind' in identified) return exchange.refuse(identified);
      await handle(exchange, identified);
    },
  });
  return [
    reading('/v1/generation', 'usage.read', GET_GENERATION, getGeneration(parts.lookup)),
    reading('/v1/generations', 'usage.read', LIST_GENERATIONS, listGenerations(parts.findGenerations)),
    reading('/v1/models', 'inference', LIST_MODELS, listModels(parts.catalog, parts.virtualModel)),
    reading('/v1/models/providers', 'inference', LIST_MODEL_PROVIDERS, listModelProviders(parts.catalog)),
  ];
}
