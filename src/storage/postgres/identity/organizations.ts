// Creates, lists, finds and changes organizations. These are operations of the platform's administrators.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids, emailProblem, labelProblem, slugProblem } from '../../../domain/identity/names.ts';
import type { Organization, OrganizationChange, OwnOrganization } from '../../../domain/identity/organization.ts';
import type { Role } from '../../../domain/identity/roles.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import { setFrozen } from '../ledger/payer-wallets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { recordAudit } from './audit.ts';
import { change, NOT_FOUND, refuseProblems } from './change.ts';
import { addMembership } from './memberships.ts';
import { createdAtMs, PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from './page.ts';

export interface CreateOrganizationParams {
  readonly slug: string;
  readonly displayName?: string | undefined;
  readonly billing: 'prepaid' | 'none';
  /** Email of the first owner; an account is created if there is none. */
  readonly ownerEmail?: string | undefined;
}

interface OrganizationRow {
  readonly id: string;
  readonly created_us: string;
  readonly slug: string;
  readonly display_name: string;
  readonly billing: 'prepaid' | 'none';
  readonly frozen: boolean;
}

const COLUMNS = `${PAGE_COLUMNS}, t.slug, t.display_name, t.billing, coalesce(w.frozen, false) AS frozen`;
const SOURCE = 'organizations t LEFT JOIN wallets w ON w.organization_id = t.id AND w.user_id IS NULL';

export async function createOrganization(
  postgres: Postgres,
  actor: Actor,
  params: CreateOrganizationParams,
): Promise<Organization | Refused> {
  const { slug, displayName = slug, billing, ownerEmail } = params;
  const problem = refuseProblems({
    slug: slugProblem(slug),
    displayName: labelProblem(displayName),
    ownerEmail: ownerEmail === undefined ? null : emailProblem(ownerEmail),
  });
  if (problem !== null) return problem;
  return change(postgres, 'slug', async (client) => {
    const { rows } = await client.query<{ id: string }>(
      'INSERT INTO organizations (slug, display_name, billing) VALUES ($1, $2, $3) RETURNING id',
      [slug, displayName, billing],
    );
    const id = rows[0]?.id ?? '';
    await client.query('INSERT INTO wallets (organization_id) VALUES ($1)', [id]);
    const made = await getOrganization(client, id);
    await recordAudit(client, actor, {
      organizationId: id,
      action: 'organization.create',
      target: { kind: 'organization', id },
      after: made,
    });
    if (ownerEmail !== undefined)
      await addMembership(client, actor, { organizationId: id, teamId: null }, { email: ownerEmail, role: 'owner' });
    return made;
  });
}

export async function listOrganizations(
  postgres: PostgresClient,
  params: PageParams,
): Promise<Page<Organization> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS} FROM ${SOURCE} WHERE ${PAGE_CONDITION} ${PAGE_ORDER}`,
    [],
    toOrganization,
  );
}

/** The organizations of which a user is a member, and in which their tokens can work. */
export async function listOrganizationsOfUser(
  postgres: PostgresClient,
  params: PageParams & { userId: string },
): Promise<Page<OwnOrganization> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS}, m.role FROM ${SOURCE} JOIN memberships m ON m.organization_id = t.id AND m.user_id = $4
      AND m.team_id IS NULL
      WHERE ${PAGE_CONDITION} ${PAGE_ORDER}`,
    [params.userId],
    ({ id, slug, display_name, role }: OrganizationRow & { role: Role }) => ({
      id,
      slug,
      displayName: display_name,
      role,
    }),
  );
}

export async function getOrganization(
  postgres: PostgresClient,
  organizationId: string,
): Promise<Organization | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const { rows } = await postgres.query<OrganizationRow>(`SELECT ${COLUMNS} FROM ${SOURCE} WHERE t.id = $1`, [
    organizationId,
  ]);
  return rows[0] === undefined ? NOT_FOUND : toOrganization(rows[0]);
}

/** For commands, which refer to organizations by slug. */
export async function findOrganizationBySlug(postgres: PostgresClient, slug: string): Promise<Organization | Refused> {
  if (slugProblem(slug) !== null) return NOT_FOUND;
  const { rows } = await postgres.query<OrganizationRow>(`SELECT ${COLUMNS} FROM ${SOURCE} WHERE t.slug = $1`, [slug]);
  return rows[0] === undefined ? NOT_FOUND : toOrganization(rows[0]);
}

export async function updateOrganization(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
  { displayName, billing, frozen }: OrganizationChange,
): Promise<Organization | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const problem = refuseProblems({ displayName: displayName === undefined ? null : labelProblem(displayName) });
  if (problem !== null) return problem;
  return change(postgres, 'slug', async (client) => {
    await client.query('SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE', [organizationId]);
    const before = await getOrganization(client, organizationId);
    if (isRefused(before)) return before;
    await client.query(
      `UPDATE organizations SET display_name = coalesce($2, display_name), billing = coalesce($3, billing)
        WHERE id = $1`,
      [organizationId, displayName ?? null, billing ?? null],
    );
    if (frozen !== undefined && frozen !== before.frozen) await freezeOwnWallet(client, organizationId, frozen);
    const after = await getOrganization(client, organizationId);
    await recordAudit(client, actor, {
      organizationId,
      action: 'organization.update',
      target: { kind: 'organization', id: organizationId },
      before,
      after,
    });
    await notifyPrincipalsChanged(client, [organizationId]);
    return after;
  });
}

async function freezeOwnWallet(client: PostgresClient, organizationId: string, frozen: boolean): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM wallets WHERE organization_id = $1 AND user_id IS NULL',
    [organizationId],
  );
  for (const { id } of rows) await setFrozen(client, id, frozen);
}

function toOrganization(row: OrganizationRow): Organization {
  const { id, slug, billing, frozen } = row;
  return { id, slug, displayName: row.display_name, billing, frozen, createdAtMs: createdAtMs(row) };
}
