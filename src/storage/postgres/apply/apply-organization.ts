// Upserts an organization with its wallet, opening credit, limits, teams, users and webhook. Other files of this folder
// apply its keys, guardrails and own provider keys.

import type { ConfiguredOrganization, ConfiguredUser } from '../../../domain/configuration/configuration.ts';
import { addAccount } from '../identity/accounts.ts';
import { addLimits, storeLimits } from '../identity/limits.ts';
import { deposit } from '../ledger/credits.ts';
import { applyWebhook } from '../webhooks/webhooks.ts';
import type { Application } from './application.ts';
import { applyAssignments } from './apply-guardrails.ts';
import { applyKeys } from './apply-keys.ts';
import { applyOwnKeys } from './apply-own-keys.ts';

/**
 * An opening credit is posted once in an organization's life, whatever the file says later; more credit is a deposit.
 */
const OPENING_CREDIT_REFERENCE = 'opening credit';

/** Returns the id of the organization. */
export async function applyOrganization(
  application: Application,
  organization: ConfiguredOrganization,
): Promise<string> {
  const id = await upsertOrganization(application, organization);
  const walletId = await ensureWallet(application, id);
  if (organization.openingCredit !== null && organization.openingCredit > 0n) {
    // A conflict means that the opening credit was posted before with another amount. That posting counts.
    await deposit(application.client, {
      walletId,
      amount: organization.openingCredit,
      reference: OPENING_CREDIT_REFERENCE,
    });
  }
  // The file sets limits of organizations as the platform. It has no limits for teams, users and keys.
  if (organization.limits !== null) {
    const store = application.prune ? storeLimits : addLimits;
    const params = { setBy: 'platform', limits: organization.limits } as const;
    if (await store(application.client, { kind: 'organization', organizationId: id }, params))
      application.changedIds.push(id);
  }
  for (const slug of organization.teams) {
    await application.client.query(
      'INSERT INTO teams (organization_id, slug) VALUES ($1, $2) ON CONFLICT (organization_id, slug) DO NOTHING',
      [id, slug],
    );
  }
  for (const user of organization.users) await applyUser(application, id, user);
  if (organization.keys !== null) await applyKeys(application, { id, slug: organization.slug }, organization.keys);
  if (organization.guardrails !== null) await applyAssignments(application, id, organization.guardrails);
  if (organization.webhook !== null)
    await applyWebhook(application.client, application.box, { organizationId: id, ...organization.webhook });
  await applyOwnKeys(application, id, organization);
  return id;
}

async function upsertOrganization(application: Application, organization: ConfiguredOrganization): Promise<string> {
  const { client, changedIds } = application;
  const { slug, displayName, autoRouting } = organization;
  const before = await client.query<{ billing: string }>(
    'SELECT billing FROM organizations WHERE slug = $1 FOR UPDATE',
    [slug],
  );
  const billing = organization.billing ?? before.rows[0]?.billing;
  if (billing === undefined) throw new Error(`nothing says whether the organization ${slug} is billed`);
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO organizations AS o (slug, display_name, billing, auto_routing_policy)
      VALUES ($1, coalesce($2, $1), $3, $4)
     ON CONFLICT (slug) DO UPDATE SET display_name = coalesce($2, o.display_name), billing = excluded.billing,
       auto_routing_policy = CASE WHEN $5 THEN excluded.auto_routing_policy ELSE o.auto_routing_policy END
     RETURNING id`,
    [slug, displayName, billing, autoRouting?.policy ?? null, autoRouting !== null],
  );
  const id = rows[0]?.id;
  if (id === undefined) throw new Error(`the organization ${slug} was not stored`);
  // Gateways remember for each key who pays, so they must look up the organization's keys again.
  if (before.rows[0] !== undefined && before.rows[0].billing !== billing) changedIds.push(id);
  return id;
}

/** Every organization has a wallet, billed or not, so that its billing can be switched on. */
async function ensureWallet({ client }: Application, organizationId: string): Promise<string> {
  await client.query(
    'INSERT INTO wallets (organization_id) VALUES ($1) ON CONFLICT (organization_id) WHERE user_id IS NULL DO NOTHING',
    [organizationId],
  );
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM wallets WHERE organization_id = $1 AND user_id IS NULL',
    [organizationId],
  );
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('an organization has no wallet');
  return id;
}

async function applyUser(application: Application, organizationId: string, user: ConfiguredUser): Promise<void> {
  const { client } = application;
  await addAccount(client, user.email);
  const values = [organizationId, user.email, user.role];
  const own = await client.query<{ user_id: string }>(
    `INSERT INTO memberships (organization_id, user_id, role) SELECT $1, id, coalesce($3, 'member') FROM users
      WHERE lower(email) = lower($2)
     ON CONFLICT (organization_id, user_id) WHERE team_id IS NULL DO UPDATE SET role = excluded.role
       WHERE $3 IS NOT NULL AND memberships.role <> excluded.role
     RETURNING user_id`,
    values,
  );
  const inTeams = await client.query<{ user_id: string }>(
    `INSERT INTO memberships (organization_id, team_id, user_id, role)
     SELECT $1, teams.id, users.id, 'member' FROM users, teams
      WHERE lower(users.email) = lower($2) AND teams.organization_id = $1 AND teams.slug = ANY ($3)
     ON CONFLICT (team_id, user_id) WHERE team_id IS NOT NULL DO NOTHING RETURNING user_id`,
    [organizationId, user.email, user.teams],
  );
  application.changedIds.push(...[...own.rows, ...inTeams.rows].map((row) => row.user_id));
}
