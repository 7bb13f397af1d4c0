// Applies the guardrail policies of a configuration file, which become the platform's, and their assignments to
// organizations, teams and keys.

import type { Configuration, ConfiguredAssignments } from '../../../domain/configuration/configuration.ts';
import type { ConfiguredState } from '../../../domain/configuration/difference.ts';
import { isRefused } from '../../../domain/refusals/refused.ts';
import { resolveNames, storeAssignments } from '../guardrails/assignments.ts';
import { dropPolicy, type PolicyRow, PRESENT_POLICIES, storePolicy } from '../guardrails/policies.ts';
import type { PostgresClient } from '../pool.ts';
import { type Application, ConfigurationConflict } from './application.ts';
import { FILE } from './audit-application.ts';

export async function applyGuardrails({ client, box }: Application, { guardrails }: Configuration): Promise<void> {
  for (const { name, definition } of guardrails) {
    const refused = await storePolicy(client, box, FILE, { organizationId: null, name, definition });
    if (refused !== null) {
      const { field = '', reason = refused.refused } = refused;
      throw new ConfigurationConflict(`the guardrail policy "${name}": ${field} ${reason}`);
    }
  }
}

/** Must run after the organizations are applied, since a policy that the file no longer assigns may be removed then. */
export async function removeOtherGuardrails(
  { client, prune }: Application,
  { sections, guardrails }: Configuration,
): Promise<void> {
  if (!prune || !sections.includes('guardrails')) return;
  const listed = new Set(guardrails.map(({ name }) => name));
  for (const row of await readPlatformPolicies(client)) {
    const refused = listed.has(row.name) ? null : await dropPolicy(client, FILE, row);
    if (refused !== null)
      throw new ConfigurationConflict(
        `the guardrail policy "${row.name}" cannot be removed: ${refused.reason ?? refused.refused}`,
      );
  }
}

export async function applyAssignments(
  { client }: Application,
  organizationId: string,
  { onUnavailable, policies, teams, keys }: ConfiguredAssignments,
): Promise<void> {
  const params = {
    setBy: 'platform' as const,
    onUnavailable: onUnavailable ?? undefined,
    policies: policies ?? undefined,
    teams,
    keys: await keysByName(client, organizationId, keys),
  };
  const resolved = await resolveNames(client, organizationId, params);
  if (isRefused(resolved))
    throw new ConfigurationConflict(`guardrails: ${resolved.field ?? ''} ${resolved.reason ?? resolved.refused}`);
  await storeAssignments(client, FILE, organizationId, { ...params, ...resolved });
}

/** Replaces key names by ids. Only one key of a name is not revoked, and that key is meant. */
async function keysByName(
  client: PostgresClient,
  organizationId: string,
  keys: ConfiguredAssignments['keys'],
): Promise<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {};
  for (const [name, policies] of Object.entries(keys)) {
    const { rows } = await client.query<{ id: string }>(
      'SELECT id FROM api_keys WHERE organization_id = $1 AND name = $2 AND revoked_at IS NULL AND wallet_id IS NULL',
      [organizationId, name],
    );
    if (rows[0] !== undefined) found[rows[0].id] = policies;
  }
  return found;
}

async function readPlatformPolicies(client: PostgresClient): Promise<readonly PolicyRow[]> {
  const { rows } = await client.query<PolicyRow>(`${PRESENT_POLICIES} AND p.organization_id IS NULL ORDER BY p.name`);
  return rows;
}

/** The platform's policies in the terms of the configuration file. */
export async function readGuardrailStates(client: PostgresClient): Promise<readonly ConfiguredState[]> {
  return (await readPlatformPolicies(client)).map(({ name, version, definition }) => ({
    kind: 'guardrail_policy',
    id: name,
    fields: { version, ...definition },
  }));
}
