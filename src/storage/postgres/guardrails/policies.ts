// Stores guardrail policies in versions that never change.

import type { GuardrailDefinition } from '../../../domain/guardrails/policy-definition.ts';
import {
  type GuardrailHistory,
  type GuardrailVersion,
  LISTED_RULES_MAX,
  type ListedGuardrail,
  type StoredGuardrail,
} from '../../../domain/guardrails/stored-policy.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids } from '../../../domain/identity/names.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { notifyGuardrailsChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import { change, conflict, contradicts, invalid, NOT_FOUND } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';
import { refuseMovedSecrets, storeSecrets, withoutSecrets } from './detector-secrets.ts';

const POLICIES_MAX = 100;
/** Old versions are kept for the records that name them; at most this many are shown. */
const VERSIONS_SHOWN_MAX = 100;

const CREATED_AT_MS = 'floor(extract(epoch FROM v.created_at) * 1000)::double precision AS created_at_ms';
const POLICY_COLUMNS = `p.id, p.organization_id, p.name, v.version, ${CREATED_AT_MS}`;
const NEWEST_VERSION = 'SELECT * FROM guardrail_policy_versions WHERE policy_id = p.id ORDER BY version DESC LIMIT 1';
const NEWEST = `guardrail_policies p JOIN LATERAL (${NEWEST_VERSION}) v ON true`;
/** The newest version of each policy that was not removed. */
export const PRESENT_POLICIES = `SELECT ${POLICY_COLUMNS}, v.definition FROM ${NEWEST}
 WHERE v.definition IS NOT NULL`;
/** The columns of a list. Lists leave out definitions, since those of a hundred policies have many megabytes. */
const LISTED_POLICIES = `SELECT ${POLICY_COLUMNS}, coalesce(d.mode, 'enforce') AS mode,
  coalesce(d.floor, false) AS is_floor, jsonb_array_length(d.rules) AS rule_count,
  (SELECT jsonb_agg(jsonb_build_object('id', rule -> 'id', 'action', rule -> 'action', 'stage', rule -> 'stage')
            ORDER BY place)
     FROM jsonb_array_elements(d.rules) WITH ORDINALITY AS listed (rule, place)
    WHERE place <= ${LISTED_RULES_MAX}) AS rules
  FROM ${NEWEST}
 CROSS JOIN LATERAL jsonb_to_record(v.definition) AS d (mode text, floor boolean, rules jsonb)
 WHERE v.definition IS NOT NULL`;

interface NamedRow {
  readonly id: string;
  readonly organization_id: string | null;
  readonly name: string;
  readonly version: number;
  readonly created_at_ms: number;
}

export interface PolicyRow extends NamedRow {
  readonly definition: GuardrailDefinition;
}

interface ListedRow extends NamedRow {
  readonly mode: ListedGuardrail['mode'];
  readonly is_floor: boolean;
  readonly rule_count: number;
  readonly rules: ListedGuardrail['rules'];
}

interface VersionRow extends Pick<NamedRow, 'version' | 'created_at_ms'> {
  readonly rule_count: number;
}

/** `organizationId` null: a policy of the platform. */
export interface PolicyReference {
  readonly organizationId: string | null;
  readonly name: string;
}

export interface PutParams extends PolicyReference {
  readonly definition: GuardrailDefinition;
  /** The version that the change was made from; null: any, or none. */
  readonly version: number | null;
}

/** The organization's own policies and the platform's, which can also screen the organization. */
export async function listPolicies(
  postgres: PostgresClient,
  organizationId: string | null,
): Promise<ListedGuardrail[] | Refused> {
  if (organizationId !== null && !areUuids(organizationId)) return NOT_FOUND;
  const { rows } = await postgres.query<ListedRow>(
    `${LISTED_POLICIES} AND (p.organization_id IS NULL OR p.organization_id = $1)
      ORDER BY p.organization_id NULLS FIRST, p.name`,
    [organizationId],
  );
  return rows.map((row) => ({
    ...named(row),
    ...toVersion(row),
    mode: row.mode,
    isFloor: row.is_floor,
    rules: row.rules,
  }));
}

/** The organization's own policy of the name, or else the platform's. `version` null: the present version. */
export async function getPolicy(
  postgres: PostgresClient,
  { version, ...reference }: PolicyReference & { readonly version: number | null },
): Promise<GuardrailHistory | Refused> {
  const present = await findPresent(postgres, reference);
  const shown = present === null || version === null ? present : await findVersion(postgres, present, version);
  if (shown === null) return NOT_FOUND;
  const { rows } = await postgres.query<VersionRow>(
    `SELECT v.version, ${CREATED_AT_MS}, jsonb_array_length(v.definition -> 'rules') AS rule_count
       FROM guardrail_policy_versions v
      WHERE v.policy_id = $1 AND v.definition IS NOT NULL ORDER BY v.version DESC LIMIT ${VERSIONS_SHOWN_MAX}`,
    [shown.id],
  );
  return { ...toStored(shown), versions: rows.map(toVersion) };
}

/** null: the version does not exist, or stands for the removal of the policy. */
async function findVersion(client: PostgresClient, present: PolicyRow, version: number): Promise<PolicyRow | null> {
  if (version === present.version) return present;
  const { rows } = await client.query<Pick<PolicyRow, 'definition' | 'created_at_ms'>>(
    `SELECT v.definition, ${CREATED_AT_MS} FROM guardrail_policy_versions v
      WHERE v.policy_id = $1 AND v.version = $2 AND v.definition IS NOT NULL`,
    [present.id, version],
  );
  return rows[0] === undefined ? null : { ...present, ...rows[0], version };
}

export async function findPresent(
  client: PostgresClient,
  { organizationId, name }: PolicyReference,
): Promise<PolicyRow | null> {
  if (organizationId !== null && !areUuids(organizationId)) return null;
  const { rows } = await client.query<PolicyRow>(
    `${PRESENT_POLICIES} AND p.name = $2 AND (p.organization_id IS NULL OR p.organization_id = $1)
      ORDER BY p.organization_id NULLS LAST LIMIT 1`,
    [organizationId, name],
  );
  return rows[0] ?? null;
}

export async function putPolicy(
  postgres: Postgres,
  box: SecretBox,
  actor: Actor,
  params: PutParams,
): Promise<StoredGuardrail | Refused> {
  const { organizationId, name } = params;
  if (organizationId !== null && !areUuids(organizationId)) return NOT_FOUND;
  return change(postgres, 'name', async (client) => {
    const refused = await refusePut(client, params);
    if (refused !== null) return refused;
    const moved = await storePolicy(client, box, actor, params);
    if (moved !== null) return moved;
    const stored = await findPresent(client, { organizationId, name });
    return stored === null ? NOT_FOUND : toStored(stored);
  });
}

async function refusePut(
  client: PostgresClient,
  { organizationId, name, definition, version }: PutParams,
): Promise<Refused | null> {
  if (organizationId !== null && definition.floor === true)
    return invalid('floor', 'is the platform’s: everybody would be screened by it');
  const present = await findOwn(client, { organizationId, name });
  if (version !== null && version !== (present?.version ?? 0))
    return conflict('version', `is not the present one, ${present?.version ?? 0}`);
  if (present !== null) return null;
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(*)::integer AS count FROM guardrail_policies WHERE organization_id IS NOT DISTINCT FROM $1::uuid',
    [organizationId],
  );
  return (rows[0]?.count ?? 0) >= POLICIES_MAX ? conflict('name', `there are ${POLICIES_MAX} policies already`) : null;
}

/**
 * The policy of exactly this owner, locked until the end of the transaction; null: there is none. A concurrent change
 * waits for the lock and then reads the new state.
 */
async function findOwn(client: PostgresClient, reference: PolicyReference): Promise<PolicyRow | null> {
  await lockPolicy(client, reference);
  const found = await findPresent(client, reference);
  return found?.organization_id === reference.organizationId ? found : null;
}

/**
 * Stores a definition as the next version, if it differs from the newest. A detector without a secret in the definition
 * keeps its stored secret, if its address is unchanged.
 */
export async function storePolicy(
  client: PostgresClient,
  box: SecretBox,
  actor: Actor,
  { organizationId, name, definition }: Omit<PutParams, 'version'>,
): Promise<Refused | null> {
  const before = await findOwn(client, { organizationId, name });
  const newest = before?.definition ?? null;
  const refused = before === null ? null : await refuseMovedSecrets(client, { id: before.id, newest }, definition);
  if (refused !== null) return refused;
  const id = await ensurePolicy(client, { organizationId, name });
  const secretsChanged = await storeSecrets(client, box, { id, newest }, definition);
  const shown = withoutSecrets(definition);
  const { rows } = await client.query<{ version: number }>(
    `INSERT INTO guardrail_policy_versions (policy_id, version, definition)
     SELECT $1, coalesce(max(version), 0) + 1, $2::jsonb FROM guardrail_policy_versions WHERE policy_id = $1
     HAVING (SELECT definition FROM guardrail_policy_versions WHERE policy_id = $1 ORDER BY version DESC LIMIT 1)
       IS DISTINCT FROM $2::jsonb
     RETURNING version`,
    [id, JSON.stringify(shown)],
  );
  const version = rows[0]?.version;
  if (version === undefined && !secretsChanged) return null;
  await recordAudit(client, actor, {
    organizationId,
    action: 'guardrail_policy.put',
    target: { kind: 'guardrail_policy', id: name },
    before: before === null ? undefined : { version: before.version, definition: before.definition },
    after: {
      version: version ?? before?.version,
      definition: shown,
      ...(secretsChanged ? { secrets: 'changed' } : {}),
    },
  });
  await notifyGuardrailsChanged(client, organizationId);
  return null;
}

async function ensurePolicy(client: PostgresClient, reference: PolicyReference): Promise<string> {
  const { organizationId, name } = reference;
  await client.query('INSERT INTO guardrail_policies (organization_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    organizationId,
    name,
  ]);
  const id = await lockPolicy(client, reference);
  if (id === null) throw new Error(`the guardrail policy ${name} was not stored`);
  return id;
}

async function lockPolicy(client: PostgresClient, { organizationId, name }: PolicyReference): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM guardrail_policies WHERE organization_id IS NOT DISTINCT FROM $1::uuid AND name = $2 FOR UPDATE`,
    [organizationId, name],
  );
  return rows[0]?.id ?? null;
}

/** Refuses if the policy is assigned to an organization. */
export async function removePolicy(
  postgres: Postgres,
  actor: Actor,
  reference: PolicyReference,
): Promise<{ readonly removed: true } | Refused> {
  if (reference.organizationId !== null && !areUuids(reference.organizationId)) return NOT_FOUND;
  return change(postgres, 'name', async (client) => {
    const present = await findOwn(client, reference);
    if (present === null) return NOT_FOUND;
    const refused = await dropPolicy(client, actor, present);
    return isRefused(refused) ? refused : { removed: true };
  });
}

export async function dropPolicy(client: PostgresClient, actor: Actor, present: PolicyRow): Promise<Refused | null> {
  const { rows } = await client.query<{ slug: string }>(
    `SELECT o.slug FROM guardrail_assignments a JOIN organizations o ON o.id = a.organization_id
      WHERE a.policy_id = $1 ORDER BY o.slug LIMIT 1`,
    [present.id],
  );
  if (rows[0] !== undefined) return contradicts(`the organization "${rows[0].slug}" is screened by it`);
  await client.query('INSERT INTO guardrail_policy_versions (policy_id, version) VALUES ($1, $2)', [
    present.id,
    present.version + 1,
  ]);
  await client.query('DELETE FROM guardrail_secrets WHERE policy_id = $1', [present.id]);
  await recordAudit(client, actor, {
    organizationId: present.organization_id,
    action: 'guardrail_policy.remove',
    target: { kind: 'guardrail_policy', id: present.name },
    before: { version: present.version, definition: present.definition },
  });
  await notifyGuardrailsChanged(client, present.organization_id);
  return null;
}

function toStored(row: PolicyRow): StoredGuardrail {
  const { definition } = row;
  return { ...named(row), ...toVersion({ ...row, rule_count: definition.rules.length }), definition };
}

function named({ name, organization_id: organizationId }: NamedRow): Pick<StoredGuardrail, 'name' | 'setBy'> {
  return { name, setBy: organizationId === null ? 'platform' : 'organization' };
}

function toVersion({ version, created_at_ms: createdAtMs, rule_count: ruleCount }: VersionRow): GuardrailVersion {
  return { version, createdAtMs, ruleCount };
}
