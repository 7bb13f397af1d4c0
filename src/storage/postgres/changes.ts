// What is told to every process when identity or catalog change; delivered when the transaction commits.

import type { PostgresClient } from './pool.ts';

export const CHANGES_CHANNEL = 'tollgate_changed';

const CATALOG = 'catalog';
const PRINCIPALS = 'principals:';

/**
 * `catalog`: it has a new version. `id`: whose credentials are different. null: something that this version does not
 * know.
 */
export type Change = { readonly catalog: true } | { readonly id: string } | null;

export function readChange(payload: string): Change {
  if (payload === CATALOG) return { catalog: true };
  return payload.startsWith(PRINCIPALS) ? { id: payload.slice(PRINCIPALS.length) } : null;
}

/** The catalog has a new version. No credential stands for anything else because of it. */
export async function notifyCatalogChanged(client: PostgresClient): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, CATALOG]);
}

/**
 * What is remembered of these credentials no longer holds: each id is that of a credential (an inference key or an
 * access token), or of a user, a team or an organization, all of whose credentials are meant. A credential that is new
 * needs no word: nobody has been asked about it.
 */
export async function notifyPrincipalsChanged(client: PostgresClient, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await client.query('SELECT pg_notify($1, $2 || id) FROM unnest($3::text[]) AS id', [
    CHANGES_CHANNEL,
    PRINCIPALS,
    ids,
  ]);
}
