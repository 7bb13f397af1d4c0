// Binds own keys that are stored without it to where their providers are: keys of a version before
// deploy/postgres/0049, and those that a file gave before the catalog had their provider.

import type { Catalog } from '../../../domain/models/catalog.ts';
import { destinationOfKind } from '../../../domain/own-keys/key-kinds.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import type { Postgres } from '../pool.ts';
import { OWN_KEY_COLUMNS, type OwnKeyRow, toOwnKey } from './own-key-rows.ts';

/** Several processes do this at once: each row is one's. */
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
