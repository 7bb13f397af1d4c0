// Selects rows of own provider keys, and turns them into plain data.

import type { KeyDestination } from '../../../domain/models/key-destination.ts';
import type { KeyFallback, KeyPlace, KeyState, OwnKey } from '../../../domain/own-keys/own-key.ts';

export const OWN_KEY_COLUMNS = `
  t.id, t.organization_id, t.kind, t.name, t.label, t.fingerprint, t.given_for, t.place, t.position, t.fallback,
  t.models, t.teams, t.api_keys, t.users, t.settings, t.base_url, t.model_map, t.generation, t.state, t.state_reason,
  floor(extract(epoch FROM t.state_until) * 1000)::double precision AS state_until_ms,
  floor(extract(epoch FROM t.verified_at) * 1000)::double precision AS verified_at_ms,
  floor(extract(epoch FROM t.last_used_at) * 1000)::double precision AS last_used_at_ms,
  floor(extract(epoch FROM t.expires_at) * 1000)::double precision AS expires_at_ms,
  floor(extract(epoch FROM t.rotated_at) * 1000)::double precision AS rotated_at_ms,
  floor(extract(epoch FROM t.previous_until) * 1000)::double precision AS previous_until_ms,
  floor(extract(epoch FROM t.created_at) * 1000)::double precision AS created_at_ms`;

export interface OwnKeyRow extends Record<string, unknown> {
  readonly id: string;
  readonly organization_id: string;
  readonly kind: string;
  readonly name: string;
  readonly label: string | null;
  readonly fingerprint: string;
  readonly given_for: KeyDestination | null;
  readonly place: KeyPlace;
  readonly position: number;
  readonly fallback: KeyFallback;
  readonly models: string[] | null;
  readonly teams: string[] | null;
  readonly api_keys: string[] | null;
  readonly users: string[] | null;
  readonly settings: Readonly<Record<string, string>>;
  readonly base_url: string | null;
  readonly model_map: Readonly<Record<string, string>>;
  readonly generation: number;
  readonly state: KeyState;
  readonly state_reason: string | null;
  readonly state_until_ms: number | null;
  readonly verified_at_ms: number | null;
  readonly last_used_at_ms: number | null;
  readonly expires_at_ms: number | null;
  readonly rotated_at_ms: number | null;
  readonly previous_until_ms: number | null;
  readonly created_at_ms: number;
}

export function toOwnKey(row: OwnKeyRow): OwnKey {
  return {
    id: row.id,
    organizationId: row.organization_id,
    kind: row.kind,
    name: row.name,
    label: row.label,
    fingerprint: row.fingerprint,
    givenFor: row.given_for,
    place: row.place,
    position: row.position,
    fallback: row.fallback,
    models: row.models,
    teams: row.teams,
    apiKeys: row.api_keys,
    users: row.users,
    settings: row.settings,
    baseUrl: row.base_url,
    modelMap: row.model_map,
    state: row.state,
    stateReason: row.state_reason,
    stateUntilMs: row.state_until_ms,
    verifiedAtMs: row.verified_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    expiresAtMs: row.expires_at_ms,
    rotatedAtMs: row.rotated_at_ms,
    previousUntilMs: row.previous_until_ms,
    createdAtMs: row.created_at_ms,
  };
}

/** The name to which a key's sealed secret is bound. It opens for no other organization, kind, key or generation. */
export function ownKeySecretName(
  { organizationId, kind, id }: Pick<OwnKey, 'organizationId' | 'kind' | 'id'>,
  generation: number,
): string {
  return `own key ${organizationId} ${kind} ${id} ${generation}`;
}

/** The same for the secret before a rotation. `generation` is that of the present secret. */
export function previousSecretName(key: Pick<OwnKey, 'organizationId' | 'kind' | 'id'>, generation: number): string {
  return `${ownKeySecretName(key, generation)} previous`;
}
