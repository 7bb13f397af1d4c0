// Stores which guardrail policies screen an organization, its teams and its keys, and what happens while they cannot be
// loaded.

import type {
  AssignedGuardrails,
  AssignParams,
  GuardrailAssignments,
} from '../../../domain/guardrails/stored-policy.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyGuardrailsChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { findPresent, PRESENT_POLICIES } from './policies.ts';

const ASSIGNED_MAX = 16;

interface AssignmentRow {
  readonly name: string;
  readonly team: string | null;
  readonly api_key_id: string | null;
  readonly set_by: 'platform' | 'organization';
}

interface SettingsRow {
  readonly on_unavailable: 'refuse' | 'pass';
  readonly teams: readonly string[];
  readonly keys: readonly string[];
}

export async function getAssignments(
  postgres: PostgresClient,
  organizationId: string,
): Promise<GuardrailAssignments | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  const found = await postgres.query('SELECT FROM organizations WHERE id = $1', [organizationId]);
  if (found.rowCount === 0) return NOT_FOUND;
  const { rows } = await postgres.query<AssignmentRow>(
    `SELECT p.name, t.slug AS team, a.api_key_id, a.set_by
       FROM guardrail_assignments a JOIN guardrail_policies p ON p.id = a.policy_id
       LEFT JOIN teams t ON t.id = a.team_id
      WHERE a.organization_id = $1 ORDER BY p.name`,
    [organizationId],
  );
  const floor = await postgres.query<{ name: string }>(
    `${PRESENT_POLICIES} AND p.organization_id IS NULL AND v.definition ->> 'floor' = 'true' ORDER BY p.name`,
  );
  const settings = await postgres.query<SettingsRow>(
    `SELECT on_unavailable, excepted_key_ids::text[] AS keys,
            ARRAY(SELECT slug FROM teams WHERE id = ANY (excepted_team_ids) ORDER BY slug) AS teams
       FROM guardrail_settings WHERE organization_id = $1`,
    [organizationId],
  );
  const { on_unavailable: onUnavailable = 'refuse', teams = [], keys = [] } = settings.rows[0] ?? {};
  return {
    onUnavailable,
    floor: floor.rows.map(({ name }) => name),
    platform: assignedBy(rows, 'platform'),
    organization: assignedBy(rows, 'organization'),
    except: { teams, keys },
  };
}

function assignedBy(rows: readonly AssignmentRow[], setBy: AssignmentRow['set_by']): AssignedGuardrails {
  const policies: string[] = [];
  const teams: Record<string, string[]> = {};
  const keys: Record<string, string[]> = {};
  for (const { name, team, api_key_id: keyId, set_by: by } of rows) {
    if (by !== setBy) continue;
    if (team !== null) (teams[team] ??= []).push(name);
    else if (keyId !== null) (keys[keyId] ??= []).push(name);
    else policies.push(name);
  }
  return { policies, teams, keys };
}

export async function setAssignments(
  postgres: Postgres,
  actor: Actor,
  organizationId: string,
  params: AssignParams,
): Promise<GuardrailAssignments | Refused> {
  if (!areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'policies', async (client) => {
    const organization = await client.query('SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE', [
      organizationId,
    ]);
    if (organization.rowCount === 0) return NOT_FOUND;
    const resolved = await resolveNames(client, organizationId, params);
    if (isRefused(resolved)) return resolved;
    await storeAssignments(client, actor, organizationId, { ...params, ...resolved });
    return getAssignments(client, organizationId);
  });
}

/** Assignments with ids instead of names. `scopes`: those whose policies are replaced. */
interface Resolved {
  readonly scopes: readonly AssignedScope[];
  readonly exceptedTeamIds: readonly string[] | null;
}

interface AssignedScope {
  readonly teamId: string | null;
  readonly keyId: string | null;
  readonly policyIds: readonly string[];
}

export async function resolveNames(
  client: PostgresClient,
  organizationId: string,
  { setBy, policies, teams = {}, keys = {}, except }: AssignParams,
): Promise<Resolved | Refused> {
  const scopes: AssignedScope[] = [];
  const add = async (field: string, names: readonly string[], scope: Omit<AssignedScope, 'policyIds'>) => {
    // The platform assigns only its own policies, so that an organization's policy of the same name cannot replace one.
    const owner = setBy === 'platform' ? null : organizationId;
    const policyIds = await policyIdsOf(client, owner, field, names);
    if (isRefused(policyIds)) return policyIds;
    scopes.push({ ...scope, policyIds });
    return null;
  };
  if (policies !== undefined) {
    const refused = await add('policies', policies, { teamId: null, keyId: null });
    if (refused !== null) return refused;
  }
  for (const [team, names] of Object.entries(teams)) {
    const teamId = await teamIdOf(client, organizationId, team);
    if (teamId === null) return invalid('teams', `there is no team ${JSON.stringify(team)}`);
    const refused = await add('teams', names, { teamId, keyId: null });
    if (refused !== null) return refused;
  }
  for (const [keyId, names] of Object.entries(keys)) {
    if (!(await isKey(client, organizationId, keyId)))
      return invalid('keys', `there is no key ${JSON.stringify(keyId)}`);
    const refused = await add('keys', names, { teamId: null, keyId });
    if (refused !== null) return refused;
  }
  return resolveExcepted(client, organizationId, scopes, except);
}

async function resolveExcepted(
  client: PostgresClient,
  organizationId: string,
  scopes: readonly AssignedScope[],
  except: AssignParams['except'],
): Promise<Resolved | Refused> {
  if (except === undefined) return { scopes, exceptedTeamIds: null };
  const exceptedTeamIds: string[] = [];
  for (const team of except.teams) {
    const teamId = await teamIdOf(client, organizationId, team);
    if (teamId === null) return invalid('except', `there is no team ${JSON.stringify(team)}`);
    exceptedTeamIds.push(teamId);
  }
  for (const keyId of except.keys)
    if (!(await isKey(client, organizationId, keyId)))
      return invalid('except', `there is no key ${JSON.stringify(keyId)}`);
  return { scopes, exceptedTeamIds };
}

async function policyIdsOf(
  client: PostgresClient,
  organizationId: string | null,
  field: string,
  names: readonly string[],
): Promise<string[] | Refused> {
  if (names.length > ASSIGNED_MAX) return invalid(field, `must be at most ${ASSIGNED_MAX} policies`);
  const ids: string[] = [];
  for (const name of new Set(names)) {
    const found = await findPresent(client, { organizationId, name });
    if (found === null)
      return invalid(field, `must be names of guardrail policies: there is no ${JSON.stringify(name)}`);
    ids.push(found.id);
  }
  return ids;
}

async function teamIdOf(client: PostgresClient, organizationId: string, slug: string): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>('SELECT id FROM teams WHERE organization_id = $1 AND slug = $2', [
    organizationId,
    slug,
  ]);
  return rows[0]?.id ?? null;
}

async function isKey(client: PostgresClient, organizationId: string, keyId: string): Promise<boolean> {
  if (!areUuids(keyId)) return false;
  const { rowCount } = await client.query('SELECT FROM api_keys WHERE organization_id = $1 AND id = $2', [
    organizationId,
    keyId,
  ]);
  return rowCount > 0;
}

/** Returns whether something changed. */
export async function storeAssignments(
  client: PostgresClient,
  actor: Actor,
  organizationId: string,
  params: AssignParams & Resolved,
): Promise<boolean> {
  const before = await getAssignments(client, organizationId);
  for (const { teamId, keyId, policyIds } of params.scopes) {
    await client.query(
      `DELETE FROM guardrail_assignments WHERE organization_id = $1 AND team_id IS NOT DISTINCT FROM $2::uuid
        AND api_key_id IS NOT DISTINCT FROM $3::uuid AND set_by = $4`,
      [organizationId, teamId, keyId, params.setBy],
    );
    await client.query(
      `INSERT INTO guardrail_assignments (organization_id, team_id, api_key_id, set_by, policy_id)
       SELECT $1, $2, $3, $4, id FROM unnest($5::uuid[]) AS id`,
      [organizationId, teamId, keyId, params.setBy, policyIds],
    );
  }
  await client.query(
    `INSERT INTO guardrail_settings AS s (organization_id, on_unavailable, excepted_team_ids, excepted_key_ids)
     VALUES ($1, coalesce($2, 'refuse'), coalesce($3::uuid[], '{}'), coalesce($4::uuid[], '{}'))
     ON CONFLICT (organization_id) DO UPDATE SET on_unavailable = coalesce($2, s.on_unavailable),
       excepted_team_ids = coalesce($3::uuid[], s.excepted_team_ids),
       excepted_key_ids = coalesce($4::uuid[], s.excepted_key_ids)`,
    [organizationId, params.onUnavailable ?? null, params.exceptedTeamIds, params.except?.keys ?? null],
  );
  const after = await getAssignments(client, organizationId);
  if (JSON.stringify(before) === JSON.stringify(after)) return false;
  const target = { kind: 'organization', id: organizationId } as const;
  await recordAudit(client, actor, { organizationId, action: 'organization.guardrails', target, before, after });
  await notifyGuardrailsChanged(client, organizationId);
  return true;
}
