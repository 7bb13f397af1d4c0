// Stores routing policies in versions, and which organization routes by which policy.

import { entryOf } from '../../../domain/configuration/file-entries.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import type { ModelKind } from '../../../domain/models/apis.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { checkPolicy, type PolicyModel } from '../../../domain/routing/check-policy.ts';
import { type PolicyDefinition, policyOf } from '../../../domain/routing/policy-definition.ts';
import type { RoutingTable } from '../../../domain/routing/routing-table.ts';
import type {
  OrganizationRouting,
  PolicyHistory,
  PolicyVersion,
  StoredPolicy,
} from '../../../domain/routing/stored-policy.ts';
import { notifyCatalogChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

interface VersionRow {
  readonly name: string;
  readonly version: number;
  readonly definition: PolicyDefinition;
  readonly created_at_ms: number;
}

const VERSION_COLUMNS =
  'name, version, definition, floor(extract(epoch FROM created_at) * 1000)::double precision AS created_at_ms';
const PRESENT = `SELECT DISTINCT ON (name) ${VERSION_COLUMNS} FROM routing_policies ORDER BY name, version DESC`;
/** Old versions are kept for the records that name them; at most this many are shown. */
const VERSIONS_SHOWN_MAX = 100;

/** Part of the catalog's snapshot; runs in its transaction. */
export async function loadRoutingTable(client: PostgresClient): Promise<RoutingTable> {
  const policies = await client.query<VersionRow>(PRESENT);
  const organizations = await client.query<{ id: string; policy: string }>(
    'SELECT id, auto_routing_policy AS policy FROM organizations WHERE auto_routing_policy IS NOT NULL',
  );
  return {
    policies: new Map(
      policies.rows.map(({ name, version, definition }) => [name, policyOf(name, version, definition)]),
    ),
    policyOf: new Map(organizations.rows.map(({ id, policy }) => [id, policy])),
  };
}

/** A definition that differs from the newest version becomes the next version. False: it is the same. */
export async function putPolicyVersion(
  client: PostgresClient,
  name: string,
  definition: PolicyDefinition,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `INSERT INTO routing_policies (name, version, definition)
     SELECT $1, coalesce(max(version), 0) + 1, $2::jsonb FROM routing_policies WHERE name = $1
     HAVING (SELECT definition FROM routing_policies WHERE name = $1 ORDER BY version DESC LIMIT 1) IS DISTINCT
       FROM $2::jsonb`,
    [name, JSON.stringify(definition)],
  );
  return rowCount > 0;
}

export async function listPolicies(postgres: PostgresClient): Promise<StoredPolicy[]> {
  const { rows } = await postgres.query<VersionRow & { organizations: number }>(
    `SELECT p.*, (SELECT count(*) FROM organizations WHERE auto_routing_policy = p.name)::integer AS organizations
      FROM (${PRESENT}) p ORDER BY p.name`,
  );
  return rows.map((row) => ({ ...toVersion(row), name: row.name, organizations: row.organizations }));
}

export async function getPolicy(postgres: PostgresClient, name: string): Promise<PolicyHistory | Refused> {
  const { rows } = await postgres.query<VersionRow>(
    `SELECT ${VERSION_COLUMNS} FROM routing_policies WHERE name = $1 ORDER BY version DESC LIMIT ${VERSIONS_SHOWN_MAX}`,
    [name],
  );
  const versions = rows.map(toVersion);
  const present = versions[0];
  if (present === undefined) return NOT_FOUND;
  const users = await postgres.query<{ organizations: number }>(
    'SELECT count(*)::integer AS organizations FROM organizations WHERE auto_routing_policy = $1',
    [name],
  );
  return { ...present, name, organizations: users.rows[0]?.organizations ?? 0, versions };
}

function toVersion({ version, definition, created_at_ms }: VersionRow): PolicyVersion {
  return { version, definition, createdAtMs: created_at_ms };
}

/**
 * Putting the same definition again changes nothing and notifies nobody. The first mistake in a definition is returned
 * as `invalid`.
 */
export async function putPolicy(
  postgres: Postgres,
  actor: Actor,
  name: string,
  definition: PolicyDefinition,
): Promise<PolicyHistory | Refused> {
  return change(postgres, 'name', async (client) => {
    await lockCatalog(client);
    const refused = await refuseDefinition(client, definition, await billedOrganizationsOf(client, name));
    if (refused !== null) return refused;
    const before = await getPolicy(client, name);
    if (await putPolicyVersion(client, name, definition)) {
      await recordAudit(client, actor, {
        organizationId: null,
        action: 'routing_policy.put',
        target: { kind: 'routing_policy', id: name },
        before: 'refused' in before ? undefined : { version: before.version, definition: before.definition },
        after: { definition },
      });
      await publish(client);
    }
    return getPolicy(client, name);
  });
}

export async function getOrganizationRouting(
  postgres: PostgresClient,
  organizationId: string,
): Promise<OrganizationRouting | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const { rows } = await postgres.query<{ policy: string | null }>(
    'SELECT auto_routing_policy AS policy FROM organizations WHERE id = $1',
    [organizationId],
  );
  return rows[0] === undefined ? NOT_FOUND : { policy: rows[0].policy };
}

export async function setOrganizationRouting(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
  policy: string | null,
): Promise<OrganizationRouting | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'policy', async (client) => {
    await lockCatalog(client);
    const before = await getOrganizationRouting(client, organizationId);
    if ('refused' in before) return before;
    if (before.policy === policy) return before;
    const refused = policy === null ? null : await refuseUse(client, organizationId, policy);
    if (refused !== null) return refused;
    await client.query('UPDATE organizations SET auto_routing_policy = $2 WHERE id = $1', [organizationId, policy]);
    const target = { kind: 'organization', id: organizationId } as const;
    await recordAudit(client, actor, {
      organizationId,
      action: 'organization.routing',
      target,
      before,
      after: { policy },
    });
    await publish(client);
    return { policy };
  });
}

/**
 * Decisions that depend on the catalog and the organizations take this lock, so that neither changes meanwhile.
 * Applying a configuration file takes it too.
 */
async function lockCatalog(client: PostgresClient): Promise<void> {
  await client.query('SELECT version FROM catalog_version FOR UPDATE');
}

async function publish(client: PostgresClient): Promise<void> {
  await client.query('UPDATE catalog_version SET version = version + 1');
  await notifyCatalogChanged(client);
}

/** Whether an unpublished definition could serve an organization (null: any); null: it could. */
export async function refuseDraft(
  client: PostgresClient,
  definition: PolicyDefinition,
  organizationId: string | null,
): Promise<Refused | null> {
  const { rows } = await client.query<{ slug: string }>(
    `SELECT slug FROM organizations WHERE id = $1 AND billing = 'prepaid'`,
    [organizationId],
  );
  return refuseDefinition(
    client,
    definition,
    rows.map(({ slug }) => slug),
  );
}

async function billedOrganizationsOf(client: PostgresClient, policy: string): Promise<string[]> {
  const { rows } = await client.query<{ slug: string }>(
    `SELECT slug FROM organizations WHERE auto_routing_policy = $1 AND billing = 'prepaid' ORDER BY slug LIMIT 1`,
    [policy],
  );
  return rows.map(({ slug }) => slug);
}

async function refuseUse(client: PostgresClient, organizationId: string, name: string): Promise<Refused | null> {
  const found = await getPolicy(client, name);
  if ('refused' in found)
    return invalid('policy', `must be the name of a routing policy: there is no ${JSON.stringify(name)}`);
  const refused = await refuseDraft(client, found.definition, organizationId);
  return refused === null ? null : invalid('policy', `cannot be used: ${refused.field ?? ''} ${refused.reason ?? ''}`);
}

async function refuseDefinition(
  client: PostgresClient,
  definition: PolicyDefinition,
  billedOrganizations: readonly string[],
): Promise<Refused | null> {
  const problems = checkPolicy(entryOf(definition), {
    models: await policyModels(client),
    where: 'the catalog',
    billedOrganizations,
  });
  const first = problems[0];
  if (first === undefined) return null;
  return invalid(first.place.join('.'), `is not possible: ${first.message}`);
}

/** The active models under each of their names. */
async function policyModels(client: PostgresClient): Promise<Map<string, PolicyModel>> {
  const { rows } = await client.query<{
    name: string;
    kind: ModelKind;
    is_priced: boolean;
    is_asked_by_logprobs: boolean;
  }>(
    `SELECT named.name, m.kind, NOT EXISTS (SELECT FROM served_by s
      WHERE s.model_id = m.id AND s.price_version IS NULL) AS is_priced,
            EXISTS (SELECT FROM served_by s WHERE s.model_id = m.id AND s.via = 'logprobs') AS is_asked_by_logprobs
       FROM models m JOIN (SELECT id AS name, id FROM models UNION ALL SELECT alias, model_id FROM model_aliases) named
         ON named.id = m.id
      WHERE m.active`,
  );
  return new Map(
    rows.map((row) => [
      row.name,
      { kind: row.kind, isPriced: row.is_priced, isAskedByLogprobs: row.is_asked_by_logprobs },
    ]),
  );
}
