// Writes the audit entries of an applied configuration file: one for each organization that changed, with its state
// before and after and without secrets.

import { type ConfiguredState, type Difference, findDifferences } from '../../../domain/configuration/difference.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { formatUsdString } from '../../../domain/money/format.ts';
import { recordAudit } from '../identity/audit.ts';
import type { PostgresClient } from '../pool.ts';

export const FILE: Actor = { kind: 'cli', userId: null, label: 'configuration file' };

interface StoredState {
  readonly slug: string;
  readonly limits: readonly { readonly kind: string; readonly amount: string }[] | null;
}

interface Snapshot {
  readonly id: string;
  readonly state: string;
}

/**
 * An organization with everything that a configuration file can set, as text, so that two snapshots can be compared.
 */
const SNAPSHOT = `
  SELECT organization.id, jsonb_build_object(
           'slug', slug, 'display_name', display_name, 'billing', billing, 'auto_routing_policy', auto_routing_policy,
           'teams', (SELECT jsonb_agg(team.slug ORDER BY team.slug) FROM teams team
             WHERE team.organization_id = organization.id),
           'members', (SELECT jsonb_agg(jsonb_build_object('email', email, 'role', role, 'team', team.slug)
             ORDER BY email, team.slug)
                         FROM memberships member JOIN users ON users.id = member.user_id LEFT JOIN teams team
                           ON team.id = member.team_id
                        WHERE member.organization_id = organization.id),
           'keys', (SELECT jsonb_agg(jsonb_build_object('name', name, 'prefix', key_prefix, 'revoked',
             revoked_at IS NOT NULL, 'user', email, 'team', team.slug)
                                     ORDER BY name, key_prefix, key.id)
                      FROM api_keys key LEFT JOIN users ON users.id = key.user_id LEFT JOIN teams team
                        ON team.id = key.team_id
                     WHERE key.organization_id = organization.id),
           'limits', (SELECT jsonb_agg(jsonb_build_object('kind', kind, 'window', time_window, 'model', model,
             'amount', amount::text) ORDER BY kind, time_window, model)
                        FROM usage_limits WHERE usage_limits.organization_id = organization.id AND team_id IS NULL
                          AND user_id IS NULL AND api_key_id IS NULL AND set_by = 'platform'),
           'guardrails', (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('policy', policy.name,
             'team', team.slug, 'key', key.name, 'set_by', a.set_by))
             ORDER BY policy.name, team.slug, key.name, a.set_by)
                            FROM guardrail_assignments a JOIN guardrail_policies policy ON policy.id = a.policy_id
                            LEFT JOIN teams team ON team.id = a.team_id LEFT JOIN api_keys key ON key.id = a.api_key_id
                           WHERE a.organization_id = organization.id),
           'on_unavailable', (SELECT on_unavailable FROM guardrail_settings s
             WHERE s.organization_id = organization.id),
           'byok', (SELECT to_jsonb(settings) - 'organization_id' FROM byok_settings settings
             WHERE settings.organization_id = organization.id),
           'provider_credentials', (SELECT jsonb_agg(jsonb_build_object('kind', kind, 'name', name, 'fingerprint',
             fingerprint, 'place', place, 'fallback', fallback, 'models', models, 'settings', settings, 'base_url',
               base_url, 'model_map', model_map) ORDER BY name)
                        FROM own_keys WHERE own_keys.organization_id = organization.id AND removed_at IS NULL),
           'model_prices', (SELECT jsonb_object_agg(model_id, price) FROM own_model_prices
             WHERE own_model_prices.organization_id = organization.id),
           'webhook', (SELECT jsonb_build_object('url', url, 'active', active) FROM webhooks
             WHERE webhooks.organization_id = organization.id)
         )::text AS state
    FROM organizations organization WHERE slug = ANY($1)`;

/** Must be called before and after the changes, in their transaction. */
export async function readOrganizationStates(
  client: PostgresClient,
  slugs: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<Snapshot & Record<string, unknown>>(SNAPSHOT, [slugs]);
  return new Map(rows.map(({ id, state }) => [id, state]));
}

/** The differences of two snapshots, in the terms of the configuration file. */
export function organizationDifferences(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly Difference[] {
  const statesOf = (snapshots: ReadonlyMap<string, string>): ConfiguredState[] =>
    [...snapshots.values()].map((text) => {
      const { slug, ...fields } = showState(text);
      return { kind: 'organization', id: slug, fields };
    });
  return findDifferences(statesOf(before), statesOf(after));
}

function showState(text: string): { readonly slug: string; readonly limits: readonly object[] | null } {
  const { limits, ...fields } = JSON.parse(text) as StoredState;
  return { ...fields, limits: limits?.map(showLimit) ?? null };
}

function showLimit({ amount, ...limit }: NonNullable<StoredState['limits']>[number]): object {
  return { ...limit, limit: limit.kind === 'budget' ? formatUsdString(BigInt(amount)) : amount };
}

/** Writes an entry for each organization that changed. */
export async function auditApplication(
  client: PostgresClient,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Promise<void> {
  for (const [organizationId, state] of after) {
    const earlier = before.get(organizationId);
    if (earlier === state) continue;
    await recordAudit(client, FILE, {
      organizationId,
      action: 'configuration.apply',
      target: { kind: 'organization', id: organizationId },
      before: earlier === undefined ? undefined : showState(earlier),
      after: showState(state),
    });
  }
}
