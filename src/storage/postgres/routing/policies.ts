// Stores routing policies in versions, and the routing policy of each organization.

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
import { changeCatalog } from '../catalog/change-catalog.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, contradicts, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';

interface VersionRow {
  readonly name: string;
  readonly version: number;
  readonly definition: PolicyDefinition;
  readonly created_at_ms: number;
}

/** A version that stands for the removal of the policy. */
type RemovedRow = Omit<VersionRow, 'definition'> & { readonly definition: null };

const VERSION_COLUMNS =
  'name, version, definition, floor(extract(epoch FROM created_at) * 1000)::double precision AS created_at_ms';
/** The newest version of each policy that was not removed. A removal is a version without a definition. */
const PRESENT = `SELECT * FROM (SELECT DISTINCT ON (name) ${VERSION_COLUMNS} FROM routing_policies
  ORDER BY name, version DESC) newest WHERE definition IS NOT NULL`;
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

/** Stores a definition as the next version, if it differs from the newest. False: it is the same. */
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
  const { rows } = await postgres.query<VersionRow | RemovedRow>(
    `SELECT ${VERSION_COLUMNS} FROM routing_policies WHERE name = $1 ORDER BY version DESC LIMIT ${VERSIONS_SHOWN_MAX}`,
    [name],
  );
  if (rows[0] === undefined || rows[0].definition === null) return NOT_FOUND;
  const versions = rows.filter(isDefined).map(toVersion);
  const present = versions[0] as PolicyVersion;
  const users = await postgres.query<{ organizations: number }>(
    'SELECT count(*)::integer AS organizations FROM organizations WHERE auto_routing_policy = $1',
    [name],
  );
  return { ...present, name, organizations: users.rows[0]?.organizations ?? 0, versions };
}

function isDefined(row: VersionRow | RemovedRow): row is VersionRow {
  return row.definition !== null;
}

function toVersion({ version, definition, created_at_ms }: VersionRow): PolicyVersion {
  return { version, definition, createdAtMs: created_at_ms };
}

/**
 * Stores a definition as the next version. A definition with mistakes is `invalid`, with the first mistake as reason. A
 * model that the present version names may be inactive: requests pass over it, and it may become active again. The same
 * definition again changes nothing. Must run inside changeCatalog.
 */
export async function putPolicy(
  client: PostgresClient,
  name: string,
  definition: PolicyDefinition,
): Promise<Refused | null> {
  const present = await getPolicy(client, name);
  const named = 'refused' in present ? [] : modelsNamedBy(present.definition);
  const refused = await refuseDefinition(client, definition, await billedOrganizationsOf(client, name), named);
  if (refused === null) await putPolicyVersion(client, name, definition);
  return refused;
}

/** Refuses if an organization routes by the policy. Must run inside changeCatalog. */
export async function removePolicy(client: PostgresClient, name: string): Promise<Refused | null> {
  const { rows } = await client.query<{ slug: string }>(
    'SELECT slug FROM organizations WHERE auto_routing_policy = $1 ORDER BY slug LIMIT 1',
    [name],
  );
  if (rows[0] !== undefined) return contradicts(`the organization "${rows[0].slug}" routes by it`);
  const { rowCount } = await client.query(
    `INSERT INTO routing_policies (name, version, definition)
     SELECT name, version + 1, NULL FROM (${PRESENT}) p WHERE name = $1`,
    [name],
  );
  return rowCount === 0 ? NOT_FOUND : null;
}

/** The policies that name a model, by its id or an alias of it. */
export async function policiesNaming(client: PostgresClient, modelId: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT p.name FROM (${PRESENT}) p
      WHERE EXISTS (
        SELECT FROM (SELECT $1 AS called UNION ALL SELECT alias FROM model_aliases WHERE model_id = $1) names
         WHERE p.definition -> 'classifier' ->> 'model' = called
            OR p.definition @> jsonb_build_object('tiers', jsonb_build_array(jsonb_build_object('models',
                 jsonb_build_array(jsonb_build_object('id', called)))))) ORDER BY p.name`,
    [modelId],
  );
  return rows.map(({ name }) => name);
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
    const { result } = await changeCatalog(client, actor, async () => {
      const before = await getOrganizationRouting(client, organizationId);
      if ('refused' in before || before.policy === policy) return before;
      const refused = policy === null ? null : await refuseUse(client, organizationId, policy);
      if (refused !== null) return refused;
      await client.query('UPDATE organizations SET auto_routing_policy = $2 WHERE id = $1', [organizationId, policy]);
      const target = { kind: 'organization', id: organizationId } as const;
      const after = { policy };
      await recordAudit(client, actor, { organizationId, action: 'organization.routing', target, before, after });
      return after;
    });
    return result;
  });
}

/**
 * null: the definition could serve the organization; `organizationId` null: any organization. Its models may be
 * inactive, since requests pass over inactive models.
 */
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
    null,
  );
}

async function billedOrganizationsOf(client: PostgresClient, policy: string): Promise<string[]> {
  const { rows } = await client.query<{ slug: string }>(
    `SELECT slug FROM organizations WHERE auto_routing_policy = $1 AND billing = 'prepaid' ORDER BY slug LIMIT 1`,
    [policy],
  );
  return rows.map(({ slug }) => slug);
}

/** null: the organization could route by the policy. */
export async function refuseUse(client: PostgresClient, organizationId: string, name: string): Promise<Refused | null> {
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
  named: readonly string[] | null,
): Promise<Refused | null> {
  const problems = checkPolicy(entryOf(definition), {
    models: await policyModels(client, named),
    where: 'the catalog',
    billedOrganizations,
  });
  const first = problems[0];
  if (first === undefined) return null;
  return invalid(first.place.join('.'), `is not possible: ${first.message}`);
}

function modelsNamedBy({ classifier, tiers }: PolicyDefinition): readonly string[] {
  return [classifier.model, ...tiers.flatMap(({ models }) => models.map(({ id }) => id))];
}

/** The active models by each of their names, and inactive ones that are in `named`; null: all models. */
export async function policyModels(
  client: PostgresClient,
  named: readonly string[] | null,
): Promise<Map<string, PolicyModel>> {
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
      WHERE m.active OR $1::text[] IS NULL OR named.name = ANY ($1)`,
    [named],
  );
  return new Map(
    rows.map((row) => [
      row.name,
      { kind: row.kind, isPriced: row.is_priced, isAskedByLogprobs: row.is_asked_by_logprobs },
    ]),
  );
}
