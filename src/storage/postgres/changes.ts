// The notifications that every process gets when identities, the catalog, guardrails or own keys change. Postgres
// delivers them when the transaction commits.

import type { PostgresClient } from './pool.ts';

export const CHANGES_CHANNEL = 'tollgate_changed';

const CATALOG = 'catalog';
const PRINCIPALS = 'principals:';
const GUARDRAILS = 'guardrails:';
const OWN_KEYS = 'byok:';

/**
 * `catalog`: the catalog has a new version. `guardrailsOf`: guardrail policies or assignments of an organization have
 * changed; null: those of the platform. `id`: credentials under this id must be looked up again. `ownKeysOf`: the own
 * provider keys of this organization, its settings for them or its prices have changed. null: a notification that this
 * version does not know.
 */
export type Change =
  | { readonly catalog: true }
  | { readonly guardrailsOf: string | null }
  | { readonly id: string }
  | { readonly ownKeysOf: string }
  | null;

export function readChange(payload: string): Change {
  if (payload === CATALOG) return { catalog: true };
  if (payload.startsWith(GUARDRAILS)) return { guardrailsOf: payload.slice(GUARDRAILS.length) || null };
  if (payload.startsWith(OWN_KEYS)) return { ownKeysOf: payload.slice(OWN_KEYS.length) };
  return payload.startsWith(PRINCIPALS) ? { id: payload.slice(PRINCIPALS.length) } : null;
}

/** Notifies of a new version of the catalog. It does not affect credentials. */
export async function notifyCatalogChanged(client: PostgresClient): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, CATALOG]);
}

/** Notifies of changed guardrail policies or assignments: of an organization, or of the platform (null). */
export async function notifyGuardrailsChanged(client: PostgresClient, organizationId: string | null): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, `${GUARDRAILS}${organizationId ?? ''}`]);
}

/**
 * Notifies that credentials must be looked up again. Each id is that of a credential (an inference key or an access
 * token), or of a user, a team or an organization with all its credentials. New credentials need no notification, since
 * nobody has looked them up yet.
 */
export async function notifyPrincipalsChanged(client: PostgresClient, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await client.query('SELECT pg_notify($1, $2 || id) FROM unnest($3::text[]) AS id', [
    CHANGES_CHANNEL,
    PRINCIPALS,
    ids,
  ]);
}

/** Notifies that an organization's own provider keys, its settings for them or its prices were changed. */
export async function notifyOwnKeysChanged(client: PostgresClient, organizationId: string): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, `${OWN_KEYS}${organizationId}`]);
}
