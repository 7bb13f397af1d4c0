// Who may do what: every caller × every route of the table × own, sibling, foreign and absent object, on one
// installation. A route without a row in EXPECTED fails: what is new says first whom it lets in.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { DescribedRoute } from '../../src/control-plane/openapi/described-route.ts';
import { howMany } from '../support/at-length.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { GENERATION_ROUTES } from '../support/generation-routes.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, issueToken, organizationIdOf, type Person, Tenant } from '../support/identity-world.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { nameOf, routeTable } from '../support/route-table.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const CALLERS = [
  'owner',
  'admin',
  'member',
  'teamOwner',
  'teamMember',
  'otherTeamOwner',
  'key',
  'otherPayer',
  'foreignOwner',
  'platform',
  'platformPerson',
  'nowhere',
  'revoked',
  'expired',
  'none',
] as const;
type Caller = (typeof CALLERS)[number];

/** Objects as the callers of the first organization see them; for the foreign owner `foreign` is its own. */
const OBJECTS = ['own', 'sibling', 'foreign', 'absent'] as const;
type ObjectName = (typeof OBJECTS)[number];

/** Who is let in at all. */
type Gate = 'open' | 'keys' | 'inference' | 'anybody' | 'people' | 'members' | 'admins' | 'teamAdmins' | 'platform';

interface Ids {
  readonly organizationId: string;
  readonly teamId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly tokenId: string;
  /** A key that a person made for themselves and pays for. */
  readonly personalKeyId: string;
  /** The organization's own key for a provider. */
  readonly credentialId: string;
}

interface Expectation {
  readonly gate: Gate;
  /** Status when let in to an object one may see. */
  readonly ok: number;
  readonly body?: () => object;
  /** What the call uses up: made anew for every call that should succeed. */
  readonly usesUp?: keyof typeof MAKERS;
  /**
   * Whose the object is, when the route names one: the organization's, a person's own, or the platform's (all of them
   * exist for it).
   */
  readonly object?: 'organization' | 'person' | 'platform' | 'administrator';
}

let counter = 0;
const fresh = (what: string) => `${what}-${(counter += 1)}`;

const READ = { ok: 200 } as const;
/** Inference takes inference keys, whatever else a person may do. */
const inference = { gate: 'keys', ok: 400, body: () => ({}) } as const;
const saved = { gate: 'keys', ok: 404 } as const;
const upload = { gate: 'inference', ok: 415, body: () => ({}) } as const;
const file = { gate: 'inference', ok: 404 } as const;
/** Who may call may read their own. */
const ofPayer = { gate: 'inference', ...READ } as const;
const admins = { gate: 'admins', ...READ } as const;
const team = { gate: 'teamAdmins', ...READ, object: 'organization' } as const;
const ofAdmins = { ...admins, object: 'organization' } as const;
const platform = { gate: 'platform', ...READ } as const;
const ofPlatform = { ...platform, object: 'platform' } as const;
const limits = () => ({ limits: [{ kind: 'requests_per_minute', limit: 1_000_000 }] });
const allModels = () => ({ allowed_models: null });
const webhook = () => ({ url: 'https://hooks.test/charges', active: false });
const ownKey = () => ({ kind: 'upstream', name: fresh('own'), secret: 'sk-own', verify: false });
const ofWebhook = { ...admins, usesUp: 'webhook' } as const;
const ofPlatformWebhook = { ...ofPlatform, usesUp: 'webhook' } as const;
const personBody = () => ({ email: `${fresh('new')}@people.test` });

const EXPECTED: Readonly<Record<string, Expectation>> = {
  'GET /v1/responses': { gate: 'open', ok: 405 },
  'GET /v1/responses/:id': saved,
  'DELETE /v1/responses/:id': saved,
  'POST /v1/responses/:id/cancel': saved,
  'GET /v1/responses/:id/input_items': saved,
  ...Object.fromEntries(GENERATION_ROUTES.map(({ path }) => [`POST ${path}`, inference])),
  // Without their query; whose executions are found has a test of its own below.
  'GET /v1/generation': { gate: 'inference', ok: 400 },
  'GET /v1/generations': { gate: 'inference', ok: 400 },
  'GET /v1/models': { gate: 'inference', ...READ },
  'GET /v1/models/providers': { gate: 'inference', ...READ },
  // None of the ids here is a model's: those that are have their test in contract/4.6-model-catalog.test.ts.
  'GET /v1/models/:id': { gate: 'inference', ok: 404 },
  // The body is no form, and none of the ids here is a file's: contract/4.7-media.test.ts has those that are.
  'POST /v1/media/upload': upload,
  'POST /v1/files': upload,
  'GET /v1/media/:id': file,
  'GET /v1/media/:id/metadata': file,
  'GET /v1/media/:id/public/:signature': { gate: 'open', ok: 404 },
  'GET /v1/files/:id': file,
  'GET /v1/files/:id/metadata': file,
  'GET /v1/admin/active-org/media': admins,
  'GET /v1/admin/active-org/media/usage': admins,
  'DELETE /v1/admin/active-org/media/:mediaId': { gate: 'admins', ok: 404 },
  'GET /v1/admin/organizations/:organizationId/media': ofPlatform,
  'GET /v1/admin/organizations/:organizationId/media/usage': ofPlatform,
  'DELETE /v1/admin/organizations/:organizationId/media/:mediaId': { gate: 'platform', ok: 404 },
  'GET /healthz': { gate: 'open', ...READ },
  'GET /readyz': { gate: 'open', ...READ },
  'GET /openapi.json': { gate: 'open', ...READ },

  // The console is switched off here: who may sign in is in contract/8-console-sessions.test.ts.
  'GET /console': { gate: 'open', ok: 404 },
  'GET /console/:path': { gate: 'open', ok: 404 },
  'GET /v1/console/sign-in': { gate: 'open', ok: 404 },
  'POST /v1/console/sign-in': { gate: 'open', ok: 404, body: () => ({}) },
  'GET /v1/console/oidc/:providerName': { gate: 'open', ok: 404 },
  'GET /v1/console/oidc/:providerName/callback': { gate: 'open', ok: 404 },
  'GET /v1/console/session': { gate: 'anybody', ...READ },
  // None of the callers presents a session.
  'PATCH /v1/console/session': { gate: 'anybody', ok: 409, body: () => ({ organization_id: null }) },
  'DELETE /v1/console/session': { gate: 'anybody', ok: 409 },

  'POST /v1/console/playground-key': { gate: 'members', ok: 404 },

  'GET /v1/admin/active-org/limits/current': admins,
  'GET /v1/admin/active-org/members/:userId/limits/current': ofAdmins,
  'GET /v1/admin/active-org/teams/:teamId/limits/current': team,
  'GET /v1/admin/active-org/keys/:keyId/limits/current': ofAdmins,
  'GET /v1/admin/organizations/:organizationId/limits/current': ofPlatform,
  'GET /v1/admin/organizations/:organizationId/members/:userId/limits/current': ofPlatform,
  'GET /v1/admin/organizations/:organizationId/teams/:teamId/limits/current': ofPlatform,
  'GET /v1/admin/organizations/:organizationId/keys/:keyId/limits/current': ofPlatform,

  'GET /v1/admin/jobs': platform,
  'POST /v1/admin/jobs/:jobName/runs': { gate: 'platform', ok: 404 },
  'GET /v1/admin/jobs/:jobName/runs/:runNumber': { gate: 'platform', ok: 404 },
  'GET /v1/admin/epochs': platform,
  'GET /v1/admin/processes': platform,
  'GET /v1/admin/live': platform,
  'POST /v1/admin/routing/replay': { gate: 'platform', ok: 400, body: () => ({ policy: 'absent' }) },
  'POST /v1/admin/catalog/check': { ...platform, body: () => ({ configuration: 'providers: []' }) },
  'GET /v1/admin/drift': platform,

  'GET /v1/me': { gate: 'anybody', ...READ },
  'GET /v1/me/tokens': { gate: 'people', ...READ },
  'POST /v1/me/tokens': { gate: 'people', ok: 201, body: () => ({ name: fresh('token') }) },
  'DELETE /v1/me/tokens/:tokenId': { gate: 'people', ...READ, object: 'person', usesUp: 'token' },
  // An organization that does not exist is not entered, whoever asks; that one's own is, has a test below.
  'GET /v1/me/organizations': { gate: 'people', ...READ },
  'PUT /v1/me/active-organization': { gate: 'people', ok: 404, body: () => ({ organization_id: randomUUID() }) },

  'GET /v1/me/keys': { gate: 'members', ...READ },
  'POST /v1/me/keys': { gate: 'members', ok: 201, body: () => ({ name: fresh('own key') }) },
  'GET /v1/me/keys/:keyId': { gate: 'members', ...READ, object: 'person' },
  'PATCH /v1/me/keys/:keyId': { gate: 'members', ...READ, object: 'person', body: () => ({ expires_at: null }) },
  'DELETE /v1/me/keys/:keyId': { gate: 'members', ...READ, object: 'person', usesUp: 'personalKey' },
  'POST /v1/me/keys/:keyId/rotate': {
    gate: 'members',
    ...READ,
    object: 'person',
    usesUp: 'personalKey',
    body: () => ({ overlap_seconds: 60 }),
  },

  'GET /v1/admin/routing/policies': platform,
  // Nobody has made a policy here, and none is made.
  'GET /v1/admin/routing/policies/:policyName': { gate: 'platform', ok: 404 },
  'PUT /v1/admin/routing/policies/:policyName': { gate: 'platform', ok: 400, body: () => ({}) },
  'DELETE /v1/admin/routing/policies/:policyName': { gate: 'platform', ok: 404 },
  'GET /v1/admin/guardrails/policies': platform,
  // None of these names is a policy's: what happens to those that exist has its own test.
  'GET /v1/admin/guardrails/policies/:policyName': { gate: 'platform', ok: 404 },
  'PUT /v1/admin/guardrails/policies/:policyName': { gate: 'platform', ok: 400, body: () => ({}) },
  'DELETE /v1/admin/guardrails/policies/:policyName': { gate: 'platform', ok: 404 },
  'POST /v1/admin/guardrails/test': { ...platform, body: () => ({ text: 'a' }) },
  'GET /v1/admin/organizations/:organizationId/guardrails/assignments': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/guardrails/assignments': { ...ofPlatform, body: () => ({}) },
  'GET /v1/admin/active-org/guardrails/policies': admins,
  'GET /v1/admin/active-org/guardrails/policies/:policyName': { gate: 'admins', ok: 404 },
  'PUT /v1/admin/active-org/guardrails/policies/:policyName': { gate: 'admins', ok: 400, body: () => ({}) },
  'DELETE /v1/admin/active-org/guardrails/policies/:policyName': { gate: 'admins', ok: 404 },
  'POST /v1/admin/active-org/guardrails/test': { ...admins, body: () => ({ text: 'a' }) },
  'GET /v1/admin/active-org/guardrails/assignments': admins,
  'GET /v1/admin/active-org/guardrails/report': admins,
  'GET /v1/admin/guardrails/report': platform,
  'PUT /v1/admin/active-org/guardrails/assignments': { ...admins, body: () => ({}) },
  // Of names that nobody has: what happens to those that exist is in the contract tests.
  'GET /v1/admin/providers': platform,
  'GET /v1/admin/providers/:providerName': { gate: 'platform', ok: 404 },
  'PUT /v1/admin/providers/:providerName': { gate: 'platform', ok: 400, body: () => ({}) },
  'DELETE /v1/admin/providers/:providerName': { gate: 'platform', ok: 404 },
  'GET /v1/admin/models': platform,
  'GET /v1/admin/models/:modelName': { gate: 'platform', ok: 404 },
  'PUT /v1/admin/models/:modelName': { gate: 'platform', ok: 400, body: () => ({}) },
  'DELETE /v1/admin/models/:modelName': { gate: 'platform', ok: 404 },
  'GET /v1/admin/prices': { gate: 'platform', ok: 400 },
  'PUT /v1/admin/prices': { gate: 'platform', ok: 400, body: () => ({}) },
  'GET /v1/admin/organizations/:organizationId/routing': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/routing': { ...ofPlatform, body: () => ({ policy: null }) },
  // Of an organization that does not exist: nothing is asked of a provider here.
  'POST /v1/admin/routing/preview': {
    gate: 'platform',
    ok: 404,
    body: () => ({ organization_id: randomUUID(), api: 'messages', body: {} }),
  },
  'GET /v1/admin/organizations': platform,
  'POST /v1/admin/organizations': { gate: 'platform', ok: 201, body: () => ({ slug: fresh('made'), billing: 'none' }) },
  'GET /v1/admin/organizations/:organizationId': ofPlatform,
  'PATCH /v1/admin/organizations/:organizationId': { ...ofPlatform, body: () => ({ frozen: false }) },
  'GET /v1/admin/organizations/:organizationId/members': ofPlatform,
  'POST /v1/admin/organizations/:organizationId/members': { ...ofPlatform, ok: 201, body: personBody },
  'POST /v1/admin/organizations/:organizationId/members/:userId/tokens': {
    ...ofPlatform,
    ok: 201,
    body: () => ({ name: fresh('token') }),
  },
  'PATCH /v1/admin/organizations/:organizationId/members/:userId': { ...ofPlatform, body: () => ({ role: 'member' }) },
  'DELETE /v1/admin/organizations/:organizationId/members/:userId': { ...ofPlatform, usesUp: 'member' },
  'GET /v1/admin/organizations/:organizationId/teams': ofPlatform,
  'POST /v1/admin/organizations/:organizationId/teams': {
    ...ofPlatform,
    ok: 201,
    body: () => ({ slug: fresh('team-made') }),
  },
  'GET /v1/admin/organizations/:organizationId/teams/:teamId': ofPlatform,
  'PATCH /v1/admin/organizations/:organizationId/teams/:teamId': {
    ...ofPlatform,
    body: () => ({ display_name: 'Renamed' }),
  },
  'DELETE /v1/admin/organizations/:organizationId/teams/:teamId': { ...ofPlatform, usesUp: 'team' },
  'GET /v1/admin/organizations/:organizationId/teams/:teamId/members': ofPlatform,
  'POST /v1/admin/organizations/:organizationId/teams/:teamId/members': { ...ofPlatform, ok: 201, usesUp: 'candidate' },
  'PATCH /v1/admin/organizations/:organizationId/teams/:teamId/members/:userId': {
    ...ofPlatform,
    body: () => ({ role: 'member' }),
  },
  'DELETE /v1/admin/organizations/:organizationId/teams/:teamId/members/:userId': {
    ...ofPlatform,
    usesUp: 'teamMember',
  },
  'GET /v1/admin/organizations/:organizationId/keys': ofPlatform,
  'POST /v1/admin/organizations/:organizationId/keys': {
    ...ofPlatform,
    ok: 201,
    body: () => ({ name: fresh('key made') }),
  },
  'GET /v1/admin/organizations/:organizationId/keys/:keyId': ofPlatform,
  'PATCH /v1/admin/organizations/:organizationId/keys/:keyId': { ...ofPlatform, body: () => ({ expires_at: null }) },
  'DELETE /v1/admin/organizations/:organizationId/keys/:keyId': { ...ofPlatform, usesUp: 'key' },
  'POST /v1/admin/organizations/:organizationId/keys/:keyId/rotate': {
    ...ofPlatform,
    usesUp: 'key',
    body: () => ({ overlap_seconds: 60 }),
  },
  'GET /v1/admin/organizations/:organizationId/limits': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/limits': { ...ofPlatform, body: limits },
  'GET /v1/admin/organizations/:organizationId/model-access': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/model-access': { ...ofPlatform, body: allModels },
  'GET /v1/admin/organizations/:organizationId/teams/:teamId/limits': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/teams/:teamId/limits': { ...ofPlatform, body: limits },
  'GET /v1/admin/organizations/:organizationId/teams/:teamId/model-access': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/teams/:teamId/model-access': { ...ofPlatform, body: allModels },
  'GET /v1/admin/organizations/:organizationId/members/:userId/limits': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/members/:userId/limits': { ...ofPlatform, body: limits },
  'GET /v1/admin/organizations/:organizationId/keys/:keyId/limits': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/keys/:keyId/limits': { ...ofPlatform, body: limits },
  'GET /v1/admin/organizations/:organizationId/keys/:keyId/model-access': ofPlatform,
  'PUT /v1/admin/organizations/:organizationId/keys/:keyId/model-access': { ...ofPlatform, body: allModels },
  'GET /v1/admin/organizations/:organizationId/audit': ofPlatform,
  'GET /v1/admin/audit': platform,
  'GET /v1/admin/platform-administrators': platform,
  'POST /v1/admin/platform-administrators': { gate: 'platform', ok: 201, body: personBody },
  'DELETE /v1/admin/platform-administrators/:userId': { ...platform, object: 'administrator', usesUp: 'administrator' },

  'GET /v1/admin/active-org': admins,
  'GET /v1/admin/active-org/members': admins,
  'POST /v1/admin/active-org/members': { ...admins, ok: 201, body: personBody },
  'PATCH /v1/admin/active-org/members/:userId': { ...ofAdmins, body: () => ({ role: 'member' }) },
  'DELETE /v1/admin/active-org/members/:userId': { ...ofAdmins, usesUp: 'member' },
  'GET /v1/admin/active-org/members/:userId/limits': ofAdmins,
  'PUT /v1/admin/active-org/members/:userId/limits': { ...ofAdmins, body: limits },
  'GET /v1/admin/active-org/limits': admins,
  'PUT /v1/admin/active-org/limits': { ...admins, body: limits },
  'GET /v1/admin/active-org/model-access': admins,
  'PUT /v1/admin/active-org/model-access': { ...admins, body: allModels },
  'GET /v1/admin/active-org/audit': admins,
  'GET /v1/admin/active-org/teams': admins,
  'POST /v1/admin/active-org/teams': { ...admins, ok: 201, body: () => ({ slug: fresh('team-made') }) },
  'GET /v1/admin/active-org/teams/:teamId': team,
  'PATCH /v1/admin/active-org/teams/:teamId': { ...team, body: () => ({ display_name: 'Renamed' }) },
  'DELETE /v1/admin/active-org/teams/:teamId': { ...ofAdmins, usesUp: 'team' },
  'GET /v1/admin/active-org/teams/:teamId/members': team,
  'POST /v1/admin/active-org/teams/:teamId/members': { ...team, ok: 201, usesUp: 'candidate' },
  'PATCH /v1/admin/active-org/teams/:teamId/members/:userId': { ...team, body: () => ({ role: 'member' }) },
  'DELETE /v1/admin/active-org/teams/:teamId/members/:userId': { ...team, usesUp: 'teamMember' },
  'GET /v1/admin/active-org/teams/:teamId/limits': team,
  'PUT /v1/admin/active-org/teams/:teamId/limits': { ...ofAdmins, body: limits },
  'GET /v1/admin/active-org/teams/:teamId/model-access': team,
  'PUT /v1/admin/active-org/teams/:teamId/model-access': { ...ofAdmins, body: allModels },
  'GET /v1/admin/active-org/keys': admins,
  'POST /v1/admin/active-org/keys': { ...admins, ok: 201, body: () => ({ name: fresh('key made') }) },
  'GET /v1/admin/active-org/keys/:keyId': ofAdmins,
  'PATCH /v1/admin/active-org/keys/:keyId': { ...ofAdmins, body: () => ({ expires_at: null }) },
  'DELETE /v1/admin/active-org/keys/:keyId': { ...ofAdmins, usesUp: 'key' },
  'POST /v1/admin/active-org/keys/:keyId/rotate': { ...ofAdmins, usesUp: 'key', body: () => ({ overlap_seconds: 60 }) },
  'GET /v1/admin/active-org/keys/:keyId/limits': ofAdmins,
  'PUT /v1/admin/active-org/keys/:keyId/limits': { ...ofAdmins, body: limits },

  'GET /v1/admin/active-org/provider-credentials': admins,
  'POST /v1/admin/active-org/provider-credentials': { ...admins, ok: 201, body: ownKey },
  'GET /v1/admin/active-org/provider-credentials/:credentialId': ofAdmins,
  'PATCH /v1/admin/active-org/provider-credentials/:credentialId': { ...ofAdmins, body: () => ({ place: 'after' }) },
  'DELETE /v1/admin/active-org/provider-credentials/:credentialId': { ...ofAdmins, usesUp: 'credential' },
  'POST /v1/admin/active-org/provider-credentials/:credentialId/verify': ofAdmins,
  'POST /v1/admin/active-org/provider-credentials/:credentialId/rotate': {
    ...ofAdmins,
    body: () => ({ secret: 'sk-rotated', verify: false }),
  },
  'GET /v1/admin/active-org/byok-templates': admins,
  'GET /v1/admin/active-org/byok/settings': admins,
  'PATCH /v1/admin/active-org/byok/settings': { ...admins, body: () => ({ classifier: 'service' }) },
  'GET /v1/admin/active-org/byok/order': admins,
  // Of a kind that has no keys.
  'PUT /v1/admin/active-org/byok/order': { ...admins, body: () => ({ kind: 'groq', before: [] }) },
  'GET /v1/admin/active-org/byok/usage': admins,
  // Without its query.
  'GET /v1/admin/active-org/byok/explain': { gate: 'admins', ok: 400 },
  'GET /v1/admin/organizations/:organizationId/byok': ofPlatform,
  'PATCH /v1/admin/organizations/:organizationId/byok': { ...ofPlatform, body: () => ({ enabled: true }) },
  'GET /v1/admin/active-org/model-prices': admins,
  // None of the ids here is a model's.
  'GET /v1/admin/active-org/model-prices/:modelName': { gate: 'admins', ok: 404 },
  'PUT /v1/admin/active-org/model-prices/:modelName': { gate: 'admins', ok: 404, body: () => ({ input: '1' }) },
  'DELETE /v1/admin/active-org/model-prices/:modelName': { gate: 'admins', ok: 404 },

  'GET /v1/billing/credits': ofPayer,
  'GET /v1/billing/deposits': ofPayer,
  // Without an organization: into whose wallet has tests of its own.
  'POST /v1/billing/deposits': {
    gate: 'platform',
    ok: 400,
    body: () => ({ amount: '1', reference: fresh('deposit') }),
  },
  'GET /v1/usage/limits/current': ofPayer,
  'GET /v1/admin/organizations/:organizationId/wallets': ofPlatform,
  'PATCH /v1/admin/organizations/:organizationId/wallets/:walletId': {
    ...ofPlatform,
    ok: 404,
    body: () => ({ frozen: false }),
  },
  'GET /v1/admin/active-org/webhook': ofWebhook,
  'PUT /v1/admin/active-org/webhook': { ...admins, body: webhook },
  'DELETE /v1/admin/active-org/webhook': ofWebhook,
  'POST /v1/admin/active-org/webhook/rotate-secret': ofWebhook,
  'POST /v1/admin/active-org/webhook/redeliver': ofWebhook,
  'GET /v1/admin/organizations/:organizationId/webhook': ofPlatformWebhook,
  'PUT /v1/admin/organizations/:organizationId/webhook': { ...ofPlatform, body: webhook },
  'DELETE /v1/admin/organizations/:organizationId/webhook': ofPlatformWebhook,
  'POST /v1/admin/organizations/:organizationId/webhook/rotate-secret': ofPlatformWebhook,
  'POST /v1/admin/organizations/:organizationId/webhook/redeliver': ofPlatformWebhook,

  // What each of them shows is in reports-isolation.test.ts.
  'GET /v1/usage/me': ofPayer,
  'GET /v1/usage/me/daily': ofPayer,
  'GET /v1/usage/me/requests': ofPayer,
  'GET /v1/usage/me/analytics/routing': ofPayer,
  'GET /v1/usage/me/analytics/series': ofPayer,
  'GET /v1/usage/me/requests/:requestId': { ...ofPayer, ok: 404 },
  'GET /v1/usage/teams/:teamId': team,
  'GET /v1/usage/teams/:teamId/daily': team,
  'GET /v1/usage/teams/:teamId/requests': team,
  'GET /v1/usage/teams/:teamId/analytics/routing': team,
  'GET /v1/usage/teams/:teamId/analytics/series': team,
  'GET /v1/usage/teams/:teamId/requests/:requestId': { ...team, ok: 404 },
  'GET /v1/usage/active-org': { gate: 'members', ...READ },
  'GET /v1/usage/active-org/daily': { gate: 'members', ...READ },
  'GET /v1/usage/active-org/requests': admins,
  'GET /v1/usage/active-org/analytics/routing': { gate: 'members', ...READ },
  'GET /v1/usage/active-org/analytics/series': { gate: 'members', ...READ },
  'GET /v1/usage/active-org/requests/:requestId': { ...admins, ok: 404 },
  'GET /v1/admin/active-org/usage': admins,
  'GET /v1/admin/active-org/usage/daily': admins,
  'GET /v1/admin/active-org/usage/requests': admins,
  'GET /v1/admin/active-org/usage/analytics/routing': admins,
  'GET /v1/admin/active-org/usage/analytics/series': admins,
  'GET /v1/admin/active-org/usage/requests/:requestId': { ...admins, ok: 404 },
  'GET /v1/admin/active-org/usage/export/focus': admins,
  'GET /v1/admin/usage': platform,
  'GET /v1/admin/usage/daily': platform,
  'GET /v1/admin/usage/requests': platform,
  'GET /v1/admin/analytics/routing': platform,
  'GET /v1/admin/analytics/series': platform,
  'GET /v1/admin/usage/requests/:requestId': { ...platform, ok: 404 },
  'GET /v1/admin/usage/export/focus': platform,
};

const REFUSED = {
  none: [401, 'authentication required'],
  rejected: [401, 'unauthorized'],
  scope: [400, 'authorization scope required'],
  denied: [403, 'permission denied'],
} as const;

/** Why the caller is not let in; null when it is. Written from spec 5 and 7.6, not from the table. */
function refusalFor(caller: Caller, gate: Gate, object: ObjectName): keyof typeof REFUSED | null {
  if (gate === 'open') return null;
  if (caller === 'none') return 'none';
  if (caller === 'revoked' || caller === 'expired') return 'rejected';
  const isPlatform = caller === 'platform' || caller === 'platformPerson';
  switch (gate) {
    case 'anybody':
      return null;
    case 'people':
      return caller === 'key' || caller === 'otherPayer' || caller === 'platform' ? 'denied' : null;
    case 'members':
      if (isPlatform || caller === 'nowhere') return 'scope';
      return caller === 'key' || caller === 'otherPayer' ? 'denied' : null;
    case 'platform':
      return isPlatform ? null : 'denied';
    case 'keys':
      return caller === 'key' || caller === 'otherPayer' ? null : 'denied';
    case 'inference':
      return isPlatform || caller === 'nowhere' ? 'scope' : null;
    case 'admins':
    case 'teamAdmins':
      if (isPlatform || caller === 'nowhere') return 'scope';
      if (caller === 'owner' || caller === 'admin' || caller === 'foreignOwner') return null;
      if (gate === 'teamAdmins' && caller === 'teamOwner' && object === 'own') return null;
      return gate === 'teamAdmins' && caller === 'otherTeamOwner' && object === 'sibling' ? null : 'denied';
  }
}

/** Whether the object exists for a caller that was let in. */
function sees(caller: Caller, kind: Expectation['object'], object: ObjectName): boolean {
  switch (kind) {
    case undefined:
      return true;
    case 'platform':
      return object !== 'absent';
    case 'administrator':
      return object === 'own';
    case 'person':
      return (
        (caller === 'owner' && object === 'own') ||
        (caller === 'admin' && object === 'sibling') ||
        (caller === 'foreignOwner' && object === 'foreign')
      );
    case 'organization':
      return caller === 'foreignOwner' ? object === 'foreign' : object === 'own' || object === 'sibling';
  }
}

interface World {
  readonly tollgate: Front;
  readonly first: Tenant;
  readonly second: Tenant;
  readonly credentials: Readonly<Record<Caller, string | null>>;
  readonly people: Readonly<Record<'owner' | 'admin' | 'foreignOwner', Person>>;
  readonly ids: Readonly<Record<ObjectName, Ids>>;
}

/** Objects that one successful call uses up, in the place of the standing ones. */
const MAKERS = {
  key: async ({ tenant }: Cell) => ({ keyId: (await tenant.addKey()).id }),
  team: async ({ tenant }: Cell) => ({ teamId: await tenant.addTeam() }),
  member: async ({ tenant }: Cell) => ({ userId: await tenant.addMember('member') }),
  teamMember: async ({ tenant, ids }: Cell) => ({
    userId: await tenant.addMember('member', { id: ids.teamId, role: 'member' }),
  }),
  candidate: async ({ tenant }: Cell) => {
    const email = `${fresh('candidate')}-${tenant.id.slice(0, 8)}@people.test`;
    await tenant.as('POST', '/members', { email }, 201);
    return { body: { email } };
  },
  token: async ({ world, caller }: Cell) => {
    const { token } = world.people[caller as 'owner'];
    return {
      tokenId: String(
        (await ask(world.tollgate.url, token, 'POST', '/v1/me/tokens', { name: fresh('spare') }, 201))['id'],
      ),
    };
  },
  personalKey: async ({ world, caller }: Cell) => ({
    personalKeyId: await personalKey(world.tollgate.url, world.people[caller as 'owner']),
  }),
  administrator: async ({ world }: Cell) => {
    const email = `${fresh('administrator')}@people.test`;
    return {
      userId: String(
        (await ask(world.tollgate.url, ADMIN_TOKEN, 'POST', '/v1/admin/platform-administrators', { email }, 201))[
          'user_id'
        ],
      ),
    };
  },
  credential: async ({ tenant }: Cell) => ({ credentialId: await addOwnKey(tenant) }),
  webhook: async ({ world }: Cell) => {
    for (const tenant of [world.first, world.second]) await tenant.as('PUT', '/webhook', webhook());
    return {};
  },
} satisfies Record<string, (cell: Cell) => Promise<Partial<Ids> & { body?: object }>>;

interface Cell {
  readonly world: World;
  readonly caller: Caller;
  /** Where the object is. */
  readonly tenant: Tenant;
  readonly ids: Ids;
}

const table = routeTable();

/** What is not one's own is tried on one route of so many, another one for each caller and object. */
const ROUTES_APART = howMany({ short: 16, long: 1 });

/** Who may use a route uses one of so many: to refuse costs little, to answer much. */
const ANSWERS_APART = howMany({ short: 3, long: 1 });

function isTried(route: number, caller: Caller, object: ObjectName, isRefused: boolean): boolean {
  const turn = route + CALLERS.indexOf(caller) + OBJECTS.indexOf(object);
  return turn % (object !== 'own' ? ROUTES_APART : isRefused ? 1 : ANSWERS_APART) === 0;
}

describe('identity: every caller on every route', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let world: World;
  let cells = 0;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startFront({
      reports: true,
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      env: { ADMIN_TOKEN, MEDIA: 'disk', CONSOLE: 'off' },
    });
    world = await makeWorld(tollgate);
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  test('every route of the table has its expectations', () => {
    assert.deepEqual(Object.keys(EXPECTED).toSorted(), table.map(nameOf).toSorted());
  });

  for (const [index, route] of table.entries()) {
    test(nameOf(route), async () => {
      const expected = EXPECTED[nameOf(route)];
      assert.ok(expected !== undefined, 'the route has no expectations');
      const namesObject = route.path.includes(':');
      let nothing: object | null = null;
      for (const object of namesObject ? OBJECTS : (['own'] as const)) {
        for (const caller of CALLERS) {
          const refusal = refusalFor(caller, expected.gate, object);
          if (!isTried(index, caller, object, refusal !== null)) continue;
          const where = `${caller} on ${object}`;
          cells += 1;
          const seen = refusal === null && sees(caller, expected.object, object);
          const reply = await callCell(route, expected, { world, caller, object, seen });
          // What one may see a cache in front shall not give to the next; a provider says itself what may be kept.
          if (route.plane !== 'process')
            assert.equal(reply.headers['cache-control'], route.plane === 'control' ? 'no-store' : undefined, where);
          if (refusal !== null) {
            const [status, error] = REFUSED[refusal];
            assert.deepEqual([reply.status, refusalBody(reply.body.toString())], [status, { error }], where);
          } else if (seen) {
            assert.equal(reply.status, expected.ok, `${where}: ${reply.body.toString()}`);
            assertAsDescribed(route, reply, where);
          } else {
            // Foreign and absent are the same, but for the id of each answer.
            assert.equal(reply.status, 404, `${where}: ${reply.body.toString()}`);
            const body = refusalBody(reply.body.toString());
            nothing ??= body;
            assert.deepEqual(body, nothing, where);
          }
        }
      }
    });
  }

  test('the standing objects stand: nobody changed what was not theirs', async (context) => {
    context.diagnostic(`${cells} cells`);
    for (const [tenant, ids] of [
      [world.first, world.ids.own],
      [world.first, world.ids.sibling],
      [world.second, world.ids.foreign],
    ] as const) {
      assert.equal((await tenant.as('GET', `/keys/${ids.keyId}`))['revoked_at'], null);
      await tenant.as('GET', `/teams/${ids.teamId}`);
      await tenant.as('GET', `/members/${ids.userId}/limits`);
    }
  });

  test('an execution is found by its organization and payer, by nobody else', async () => {
    const { url } = tollgate;
    const body = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":5}';
    const headers = { authorization: `Bearer ${KEYS.acme}`, 'x-client-request-id': 'matrix' };
    const generated = await httpCall(`${url}/v1/chat/completions`, { headers, body });
    assert.equal(generated.status, 200, generated.body.toString());
    const id = String(generated.headers['x-service-execution-id']);
    await settledGeneration(url, KEYS.acme, id);
    const get = (credential: string, path: string) =>
      httpCall(`${url}${path}`, { headers: { authorization: `Bearer ${credential}` } });
    const byId = `/v1/generation?id=${id}`;
    assert.equal((await get(KEYS.acmeSecond, byId)).status, 200);
    assert.equal((await get(world.people.owner.token, byId)).status, 200);
    // An id of long ago, so that no look-up waits for it to arrive.
    const absent = await get(KEYS.acme, '/v1/generation?id=01890a5d-ac96-774b-bcce-b302099a8057');
    assert.equal(absent.status, 404);
    for (const caller of ['foreignOwner', 'otherPayer'] as const) {
      const credential = world.credentials[caller] ?? '';
      const reply = await get(credential, byId);
      const said = refusalBody(reply.body.toString());
      assert.deepEqual([reply.status, said], [404, refusalBody(absent.body.toString())], caller);
      assert.equal(
        (await get(credential, '/v1/generations?client_request_id=matrix')).body.toString(),
        '{"data":[]}',
        caller,
      );
    }
  });

  test('an active organization is chosen among one’s own', async () => {
    const person = await world.first.addPerson('member');
    const enter = (organization_id: string | null, status: number) =>
      ask(tollgate.url, person.token, 'PUT', '/v1/me/active-organization', { organization_id }, status).catch(
        (error: unknown) => {
          throw error;
        },
      );
    // A gateway hears of the change a moment later.
    const status = async () =>
      (await httpCall(`${tollgate.url}/v1/models`, { headers: { authorization: `Bearer ${person.token}` } })).status;
    const follows = (expected: number) => waitFor('the gateway to follow', status, (found) => found === expected);
    await enter(null, 200);
    await follows(400);
    const foreign = await httpCall(`${tollgate.url}/v1/me/active-organization`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${person.token}` },
      body: JSON.stringify({ organization_id: world.second.id }),
    });
    assert.equal(foreign.status, 404);
    await enter(world.first.id, 200);
    await follows(200);
  });

  test('a member’s own wallet is charged by keys of that member, or of the operator', async () => {
    const { url } = tollgate;
    const tenant = await Tenant.create(url, fresh('wallets'), 'prepaid');
    const [admin, member] = [await tenant.addPerson('admin'), await tenant.addPerson('member')];
    const denied = async (who: Person, method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${who.token}` };
      const reply = await httpCall(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      assert.deepEqual(
        [reply.status, refusalBody(reply.body.toString())],
        [403, { error: 'permission denied' }],
        `${method} ${path}`,
      );
    };
    const history = async () => JSON.stringify(await tenant.as('GET', '/audit'));
    const before = await history();
    const order = { name: 'theirs', user_id: member.userId, payer: 'user' };
    for (const who of [tenant.owner, admin]) await denied(who, 'POST', '/v1/admin/active-org/keys', order);
    assert.deepEqual(await tenant.as('GET', '/keys'), []);
    assert.equal(await history(), before);

    const own = await ask(url, member.token, 'POST', '/v1/me/keys', { name: 'own' }, 201);
    assert.deepEqual([own['payer'], own['user_id'], own['team_id']], ['user', member.userId, null]);
    const path = `/keys/${String(own['id'])}`;
    for (const who of [tenant.owner, admin]) {
      await denied(who, 'POST', `/v1/admin/active-org${path}/rotate`, { overlap_seconds: 0 });
      await denied(who, 'PATCH', `/v1/admin/active-org${path}`, { expires_at: null });
    }
    const given = await tenant.as('POST', '/keys', { name: 'given', user_id: member.userId }, 201);
    await denied(member, 'POST', `/v1/me/keys/${String(given['id'])}/rotate`, { overlap_seconds: 0 });
    const { secret: _, ...shown } = own;
    const { secret: __, ...givenShown } = given;
    assert.deepEqual(await ask(url, member.token, 'GET', '/v1/me/keys'), [shown, givenShown]);
    assert.deepEqual(await ask(url, admin.token, 'GET', '/v1/me/keys'), []);
    assert.notEqual((await ask(url, admin.token, 'DELETE', `/v1/admin/active-org${path}`))['revoked_at'], null);
    assert.notEqual((await ask(url, member.token, 'DELETE', `/v1/me/keys/${String(given['id'])}`))['revoked_at'], null);

    const email = `${fresh('administrator')}@people.test`;
    const administrator = await ask(url, ADMIN_TOKEN, 'POST', '/v1/admin/platform-administrators', { email }, 201);
    const platform = await issueToken(url, tenant.id, String(administrator['user_id']));
    assert.equal((await ask(url, platform.token, 'POST', '/v1/admin/active-org/keys', order, 201))['payer'], 'user');
    // At work there, and no member.
    await ask(url, platform.token, 'POST', '/v1/me/keys', { name: 'mine' }, 404);
  });

  test('a person sees the organizations they belong to', async () => {
    const person = await world.first.addPerson('member');
    const [own, ...others] = (await ask(
      tollgate.url,
      person.token,
      'GET',
      '/v1/me/organizations',
    )) as unknown as readonly object[];
    assert.deepEqual([own, others], [{ id: world.first.id, slug: 'acme', display_name: 'acme', role: 'member' }, []]);
  });

  test('the last owner stays: 409 owner_floor (spec 7.8)', async () => {
    const tenant = await Tenant.create(tollgate.url, fresh('floor'));
    const url = `${tollgate.url}/v1/admin/active-org/members/${tenant.owner.userId}`;
    const headers = { authorization: `Bearer ${tenant.owner.token}` };
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', '{"role":"admin"}'],
    ] as const) {
      const reply = await httpCall(url, { method, headers, ...(body === undefined ? {} : { body }) });
      assert.equal(reply.status, 409, reply.body.toString());
      assert.equal((JSON.parse(reply.body.toString()) as { code: string }).code, 'owner_floor');
    }
  });
});

interface CellCall {
  readonly world: World;
  readonly caller: Caller;
  readonly object: ObjectName;
  readonly seen: boolean;
}

/** What an identity route answers is what the OpenAPI document says of it, and nothing beside. */
function assertAsDescribed({ path, description }: DescribedRoute, reply: HttpAnswer, where: string): void {
  if (description.answer === null || reply.status >= 400 || !/^\/v1\/(me|admin|usage|billing)\b/.test(path)) return;
  assert.equal(reply.status, description.status, where);
  const value: unknown = JSON.parse(reply.body.toString());
  assert.deepEqual(description.answer.parse(value), value, where);
}

async function callCell(
  route: DescribedRoute,
  expected: Expectation,
  { world, caller, object, seen }: CellCall,
): Promise<HttpAnswer> {
  const tenant = object === 'foreign' ? world.second : world.first;
  const standing = world.ids[object];
  const made =
    seen && expected.usesUp !== undefined
      ? await MAKERS[expected.usesUp]({ world, caller, tenant, ids: standing })
      : {};
  const { body: madeBody, ...madeIds } = made as Partial<Ids> & { body?: object };
  const named: Ids = { ...standing, ...madeIds };
  const keyId = expected.object === 'person' ? named.personalKeyId : named.keyId;
  const ids: Readonly<Record<string, string>> = { id: 'resp_nobodys', ...named, keyId };
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'unknown');
  const body = madeBody ?? expected.body?.() ?? (expected.usesUp === 'candidate' ? personBody() : undefined);
  const credential = world.credentials[caller];
  return httpCall(`${world.tollgate.url}${path}`, {
    method: route.method,
    headers: credential === null ? {} : { authorization: `Bearer ${credential}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function makeWorld(tollgate: Front): Promise<World> {
  const { url } = tollgate;
  const first = await Tenant.adopt(url, await organizationIdOf(url, ADMIN_TOKEN, 'acme'));
  const second = await Tenant.create(url, 'matrix-foreign', 'prepaid');
  const [ownTeam, siblingTeam, foreignTeam] = [await first.addTeam(), await first.addTeam(), await second.addTeam()];

  const admin = await first.addPerson('admin');
  const member = await first.addPerson('member');
  const teamOwner = await first.addPerson('member', { id: ownTeam, role: 'owner' });
  const teamMember = await first.addPerson('member', { id: ownTeam, role: 'member' });
  const otherTeamOwner = await first.addPerson('member', { id: siblingTeam, role: 'owner' });
  const nowhere = await first.addPerson('member');
  await ask(url, nowhere.token, 'PUT', '/v1/me/active-organization', { organization_id: null });
  const administrator = await ask(
    url,
    ADMIN_TOKEN,
    'POST',
    '/v1/admin/platform-administrators',
    { email: 'root@platform.test' },
    201,
  );
  const platformPerson = await issueToken(url, first.id, String(administrator['user_id']));
  await ask(url, platformPerson.token, 'PUT', '/v1/me/active-organization', { organization_id: null });

  const revoked = await issueToken(url, first.id, member.userId);
  await ask(url, revoked.token, 'DELETE', `/v1/me/tokens/${revoked.tokenId}`);
  const expired = await issueToken(url, first.id, member.userId);
  await expireToken(tollgate, expired.tokenId);
  const otherPayer = await ask(url, member.token, 'POST', '/v1/me/keys', { name: 'own' }, 201);

  const idsOf = async (tenant: Tenant, teamId: string, person: Person): Promise<Ids> => ({
    organizationId: tenant.id,
    teamId,
    userId: await tenant.addMember('member', { id: teamId, role: 'member' }),
    keyId: (await tenant.addKey()).id,
    tokenId: person.tokenId,
    personalKeyId: await personalKey(url, person),
    credentialId: await addOwnKey(tenant),
  });
  for (const { id } of [first, second])
    await ask(url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${id}/byok`, { enabled: true });
  return {
    tollgate,
    first,
    second,
    credentials: {
      owner: first.owner.token,
      admin: admin.token,
      member: member.token,
      teamOwner: teamOwner.token,
      teamMember: teamMember.token,
      otherTeamOwner: otherTeamOwner.token,
      key: KEYS.acme,
      otherPayer: String(otherPayer['secret']),
      foreignOwner: second.owner.token,
      platform: ADMIN_TOKEN,
      platformPerson: platformPerson.token,
      nowhere: nowhere.token,
      revoked: revoked.token,
      expired: expired.token,
      none: null,
    },
    people: { owner: first.owner, admin, foreignOwner: second.owner },
    ids: {
      own: await idsOf(first, ownTeam, first.owner),
      sibling: await idsOf(first, siblingTeam, admin),
      foreign: await idsOf(second, foreignTeam, second.owner),
      absent: {
        organizationId: randomUUID(),
        teamId: randomUUID(),
        userId: randomUUID(),
        keyId: randomUUID(),
        tokenId: randomUUID(),
        personalKeyId: randomUUID(),
        credentialId: randomUUID(),
      },
    },
  };
}

async function addOwnKey(tenant: Tenant): Promise<string> {
  return String((await tenant.as('POST', '/provider-credentials', ownKey(), 201))['id']);
}

async function personalKey(url: string, { token }: Person): Promise<string> {
  return String((await ask(url, token, 'POST', '/v1/me/keys', { name: fresh('personal') }, 201))['id']);
}

/** Time does what the API does not: no token is made that has expired already. */
async function expireToken({ postgresUrl }: Front, tokenId: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query(`UPDATE access_tokens SET expires_at = now() - interval '1 second' WHERE id = $1`, [tokenId]);
  } finally {
    await client.end();
  }
}
