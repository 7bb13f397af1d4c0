// Binds own keys that are stored without a destination to the destination of their provider. These are keys from before
// migration 0049, and keys that a configuration file gave before the catalog had their provider.

import type { Catalog } from '../../../domain/models/catalog.ts';
import type { KeyDestination } from '../../../domain/models/key-destination.ts';
import { destinationOfKind } from '../../../domain/own-keys/key-kinds.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { OWN_KEY_COLUMNS, type OwnKeyRow, toOwnKey } from './own-key-rows.ts';

/** Several processes may do this at once. Each unbound key is locked by one of them. */
const UNBOUND = `SELECT ${OWN_KEY_COLUMNS} FROM own_keys t WHERE t.given_for IS NULL AND t.removed_at IS NULL
  FOR UPDATE SKIP LOCKED`;

const BIND = `UPDATE own_keys t SET given_for = bound.given_for
  FROM unnest($1::uuid[], $2::jsonb[]) AS bound (id, given_for) WHERE t.id = bound.id`;

export async function bindOwnKeys(postgres: Postgres, catalog: Pick<Catalog, 'models'>): Promise<void> {
  await postgres.transaction(async (client) => {
    const { rows } = await client.query<OwnKeyRow>(UNBOUND);
    const bound = rows.map(toOwnKey).flatMap((key) => {
      const givenFor = destinationOfKind(catalog, key);
      return givenFor === null ? [] : [{ key, givenFor: JSON.stringify(givenFor) }];
    });
    if (bound.length === 0) return;
    await client.query(BIND, [bound.map(({ key }) => key.id), bound.map(({ givenFor }) => givenFor)]);
    const organizations = new Set(bound.map(({ key }) => key.organizationId));
    for (const organizationId of organizations) await notifyOwnKeysChanged(client, organizationId);
  });
}

/** A configured provider that serves no model is not a kind of own keys; a key of that name goes elsewhere. */
const BIND_OF_PROVIDER = `UPDATE own_keys SET given_for = $2
  WHERE kind = $1 AND settings = '{}' AND given_for IS NULL AND removed_at IS NULL
    AND EXISTS (SELECT FROM served_by WHERE provider_id = $1)
  RETURNING organization_id`;

/**
 * Must run in the transaction that changes a provider. Binds its unbound keys to its former destination, since no
 * gateway may have run since the keys were stored.
 */
export async function bindKeysOfProvider(client: PostgresClient, id: string, was: KeyDestination): Promise<void> {
  const { rows } = await client.query<{ organization_id: string }>(BIND_OF_PROVIDER, [id, JSON.stringify(was)]);
  const organizations = new Set(rows.map((row) => row.organization_id));
  for (const organizationId of organizations) await notifyOwnKeysChanged(client, organizationId);
}
