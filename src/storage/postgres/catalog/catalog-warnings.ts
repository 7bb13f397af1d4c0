// Finds warnings about the catalog. They depend on the catalog and on the organizations that are billed.

import type { ConfiguredState } from '../../../domain/configuration/difference.ts';
import { type BilledOrganization, findWarnings } from '../../../domain/configuration/find-warnings.ts';
import type { PostgresClient } from '../pool.ts';
import { readCatalogStates } from './catalog-states.ts';

/** `states`: the entries to check; absent: the whole catalog. */
export async function readWarnings(
  client: PostgresClient,
  states?: readonly ConfiguredState[],
): Promise<readonly string[]> {
  const { rows } = await client.query<BilledOrganization & Record<string, unknown>>(
    `SELECT slug, allowed_models AS "allowedModels" FROM organizations WHERE billing = 'prepaid' ORDER BY slug`,
  );
  return findWarnings(states ?? (await readCatalogStates(client)), rows);
}
