// Runs every change of the catalog, by a file, a command or a request. Changes run one after the other, each difference
// gets an audit entry, and gateways are notified of the new version.

import { type CatalogKind, type Difference, findDifferences } from '../../../domain/configuration/difference.ts';
import type { Actor } from '../../../domain/identity/actor.ts';
import { notifyCatalogChanged } from '../changes.ts';
import { recordAudit } from '../identity/audit.ts';
import type { PostgresClient } from '../pool.ts';
import { readCatalogStates } from './catalog-states.ts';

export interface ChangedCatalog<T> {
  readonly result: T;
  readonly differences: readonly Difference[];
  readonly version: number;
  readonly changed: boolean;
}

/**
 * Runs `work` in the transaction of `client`. Until its end, nobody else can change the catalog or an organization's
 * routing policy. Readers are not blocked.
 */
export async function changeCatalog<T>(
  client: PostgresClient,
  actor: Actor,
  work: () => Promise<T>,
): Promise<ChangedCatalog<T>> {
  await client.query('SELECT version FROM catalog_version FOR UPDATE');
  const before = await readCatalogStates(client);
  const routesBefore = await readRoutes(client);
  const result = await work();
  const differences = findDifferences(before, await readCatalogStates(client));
  const changed = differences.length > 0 || routesBefore !== (await readRoutes(client));
  const { rows } = await client.query<{ version: string }>(
    'UPDATE catalog_version SET version = version + $1 RETURNING version',
    [changed ? 1 : 0],
  );
  const version = Number(rows[0]?.version);
  for (const difference of differences) await recordDifference(client, actor, difference);
  await stampVersion(client, differences, version);
  if (changed) await notifyCatalogChanged(client);
  return { result, differences, version, changed };
}

/** Each organization's routing policy, as text. Gateways load these with the catalog, so a change is a new version. */
async function readRoutes(client: PostgresClient): Promise<string> {
  const { rows } = await client.query<{ routes: string | null }>(
    `SELECT string_agg(id || ' ' || auto_routing_policy, ',' ORDER BY id) AS routes
       FROM organizations WHERE auto_routing_policy IS NOT NULL`,
  );
  return rows[0]?.routes ?? '';
}

async function recordDifference(client: PostgresClient, actor: Actor, difference: Difference): Promise<void> {
  const { id, before, after } = difference;
  const kind = difference.kind as CatalogKind;
  await recordAudit(client, actor, {
    organizationId: null,
    action: `${kind}.${after === null ? 'remove' : 'put'}`,
    target: { kind, id },
    before,
    after,
  });
}

async function stampVersion(
  client: PostgresClient,
  differences: readonly Difference[],
  version: number,
): Promise<void> {
  const changedOf = (kind: CatalogKind) => differences.filter((found) => found.kind === kind).map(({ id }) => id);
  await client.query('UPDATE providers SET version = $1 WHERE id = ANY ($2)', [version, changedOf('provider')]);
  await client.query('UPDATE models SET version = $1 WHERE id = ANY ($2)', [version, changedOf('model')]);
}
