// Loads all guardrail policies and assignments, for a gateway to hold in memory.

import type { GuardrailTable, OrganizationGuardrails } from '../../../domain/guardrails/guardrail-table.ts';
import type { Policy } from '../../../domain/guardrails/policy.ts';
import { guardrailPolicyOf } from '../../../domain/guardrails/policy-definition.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';
import { sealedFor } from './detector-secrets.ts';
import { type PolicyRow, PRESENT_POLICIES } from './policies.ts';

export async function loadGuardrailTable(postgres: Postgres, box: SecretBox): Promise<GuardrailTable> {
  return postgres.transaction(async (client) => {
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
    const { rows } = await client.query<PolicyRow>(`${PRESENT_POLICIES} ORDER BY p.name`);
    if (rows.length === 0) return NONE;
    const secrets = await readSecrets(client, box);
    const policies = rows.map((row): [PolicyRow, Policy] => {
      const { id, name, version, organization_id: organizationId, definition } = row;
      return [row, guardrailPolicyOf({ id, name, version, organizationId }, definition, secrets.get(id) ?? new Map())];
    });
    const isFloor = ({ organization_id: organizationId, definition }: PolicyRow) =>
      organizationId === null && definition.floor === true;
    return {
      policies: new Map(policies.map(([{ id }, policy]) => [id, policy])),
      floor: policies.flatMap(([row, policy]) => (isFloor(row) ? [policy] : [])),
      organizations: await readOrganizations(client),
    };
  });
}

const NONE: GuardrailTable = { policies: new Map(), floor: [], organizations: new Map() };

async function readSecrets(client: PostgresClient, box: SecretBox): Promise<Map<string, Map<string, string>>> {
  const { rows } = await client.query<{ policy_id: string; detector: string; secret_sealed: Buffer }>(
    'SELECT policy_id, detector, secret_sealed FROM guardrail_secrets',
  );
  const found = new Map<string, Map<string, string>>();
  for (const { policy_id: id, detector, secret_sealed: sealed } of rows) {
    const secrets = found.get(id) ?? new Map<string, string>();
    found.set(id, secrets.set(detector, box.open(sealed, sealedFor(id, detector))));
  }
  return found;
}

async function readOrganizations(client: PostgresClient): Promise<Map<string, OrganizationGuardrails>> {
  const settings = await client.query<{
    organization_id: string;
    on_unavailable: 'refuse' | 'pass';
    teams: readonly string[];
    keys: readonly string[];
  }>(
    `SELECT organization_id, on_unavailable, excepted_team_ids::text[] AS teams, excepted_key_ids::text[] AS keys
       FROM guardrail_settings`,
  );
  const { rows } = await client.query<{
    organization_id: string;
    policy_id: string;
    team_id: string | null;
    api_key_id: string | null;
    set_by: 'platform' | 'organization';
  }>('SELECT organization_id, policy_id, team_id, api_key_id, set_by FROM guardrail_assignments');
  const assigned = Map.groupBy(rows, (row) => row.organization_id);
  return new Map(
    settings.rows.map((row) => [
      row.organization_id,
      {
        onUnavailable: row.on_unavailable,
        exceptedTeams: new Set(row.teams),
        exceptedKeys: new Set(row.keys),
        assignments: (assigned.get(row.organization_id) ?? []).map((found) => ({
          policyId: found.policy_id,
          teamId: found.team_id,
          keyId: found.api_key_id,
          setBy: found.set_by,
        })),
      },
    ]),
  );
}
