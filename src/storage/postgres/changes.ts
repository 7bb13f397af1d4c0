// What is told to every process when identity or catalog change; delivered when the transaction commits.

import type { PostgresClient } from './pool.ts';

const CHANGES_CHANNEL = 'tollgate_changed';

/** The catalog has a new version. */
export async function notifyCatalogChanged(client: PostgresClient): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, 'catalog']);
}

/** What is remembered of these keys no longer holds. */
export async function notifyKeysChanged(client: PostgresClient, keyHashes: readonly Buffer[]): Promise<void> {
  if (keyHashes.length === 0) return;
  await client.query(`SELECT pg_notify($1, 'key:' || hash) FROM unnest($2::text[]) AS hash`, [CHANGES_CHANNEL, keyHashes.map((hash) => hash.toString('hex'))]);
}

/** Roles, scopes or policies are different: what is remembered of any credential may no longer hold. */
export async function notifyIdentityChanged(client: PostgresClient): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [CHANGES_CHANNEL, 'identity']);
}
