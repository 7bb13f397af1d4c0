// Reads the names that are already stored. A configuration file may refer to them without defining them.

import type { StoredNames } from '../../../domain/configuration/check-references.ts';
import { isRefused } from '../../../domain/refusals/refused.ts';
import { readCatalogStates } from '../catalog/catalog-states.ts';
import { listPolicies } from '../guardrails/policies.ts';
import type { PostgresClient } from '../pool.ts';
import { policyModels } from '../routing/policies.ts';

interface OrganizationRow extends Record<string, unknown> {
  readonly slug: string;
  readonly teams: string[];
  readonly users: string[];
}

export async function readStoredNames(client: PostgresClient): Promise<StoredNames> {
  const states = await readCatalogStates(client);
  const idsOf = (kind: string) => states.filter((state) => state.kind === kind).map(({ id }) => id);
  const { rows } = await client.query<OrganizationRow>(
    `SELECT slug, ARRAY(SELECT team.slug FROM teams team WHERE team.organization_id = o.id) AS teams,
            ARRAY(SELECT lower(email) FROM memberships JOIN users ON users.id = user_id
                   WHERE organization_id = o.id AND team_id IS NULL) AS users
       FROM organizations o`,
  );
  const guardrails = await listPolicies(client, null);
  return {
    guardrails: isRefused(guardrails) ? [] : guardrails.map(({ name }) => name),
    providers: idsOf('provider'),
    // These include inactive models, since a routing policy may name an inactive model, stored or in the file.
    models: await policyModels(client, null),
    modelIds: idsOf('model'),
    policies: idsOf('routing_policy'),
    organizations: new Map(rows.map(({ slug, teams, users }) => [slug, { teams, users }])),
  };
}
